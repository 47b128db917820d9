/* The boundary to Python: every size is checked here, then the GIL is released and the loops run.
 *
 * Arrays come by the buffer protocol. Nothing that they hold can lead a loop astray: words, alphas and payloads are only
 * ever data, and a point that another thread changes meanwhile moves an answer, never an address.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one binary for every Python from 3.11 on */
#include <Python.h>
#include <string.h>

#include "arrays.h"

static const struct set *sets[MAX_SETS], *chosen;
static int set_count;

static int get_shape(struct shape *shape, struct schedule *schedule, int has_values, int bits, const Py_buffer *keys)
{
    *shape = (struct shape){has_values != 0, bits};
    if (need(bits >= 1 && bits <= MAX_BITS, "bits must be 1 to 32")) return -1;
    if (need(keys->len == 16 * HASHES, "there must be 160 bytes of AES keys")) return -1;
    fss_schedule(schedule, keys->buf);
    return 0;
}

static PyObject *finished(int failed)
{
    if (PyErr_Occurred()) return NULL;
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Parse shape, AES keys and six arrays, and run the loop on them. */
static PyObject *on_arrays(PyObject *args, const struct arrays *about,
                           int (*run)(struct shape, const struct schedule *, Py_buffer[]))
{
    struct shape shape;
    struct schedule schedule;
    Py_buffer keys, array[ARRAYS];
    PyObject *a[ARRAYS];
    int has_values, bits, failed = 0;
    if (!PyArg_ParseTuple(args, "piy*OOOOOO", &has_values, &bits, &keys, a, a + 1, a + 2, a + 3, a + 4, a + 5)) return NULL;
    if (!get_arrays(about, a, array)) {
        if (!get_shape(&shape, &schedule, has_values, bits, &keys)) failed = run(shape, &schedule, array);
        for (int i = 0; i < ARRAYS; i++) PyBuffer_Release(array + i);
    }
    PyBuffer_Release(&keys);
    return finished(failed);
}

static int run_gen(struct shape shape, const struct schedule *schedule, Py_buffer array[])
{
    Py_ssize_t n = array[0].shape[0], rows = key_words(&shape);
    if (need(is_key_by_key(array + 1, n, 4), "rand must have shape (keys, 4) and be contiguous")) return 0;
    if (need(array[2].shape[0] == n, "beta must have one word a key")) return 0;
    if (need(has_size(array + 3, rows, n) && has_size(array + 4, rows, n), "words must have shape (words, keys)")) return 0;
    if (need(has_size(array + 5, 4, n), "ends must have shape (4, keys)")) return 0;
    struct gen_job job = {shape, schedule, n, array[0].buf, array[1].buf, array[2].buf,
                          {rows_of(array + 3), rows_of(array + 4)}, rows_of(array + 5)};
    const struct set *use = chosen;
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = use->gen(&job);
    Py_END_ALLOW_THREADS
    return failed;
}

PyDoc_STRVAR(gen_doc,
             "gen(has_values, bits, keys, alphas, rand, beta, words0, words1, ends): fill both parties' words, and "
             "lo and hi of both where their paths end");
static PyObject *py_gen(PyObject *self, PyObject *args)
{
    static const struct arrays about = {3, {"alphas", "rand", "beta", "words0", "words1", "ends"}, {1, 2, 1, 2, 2, 2}};
    (void)self;
    return on_arrays(args, &about, run_gen);
}

static int run_prove(struct shape shape, const struct schedule *schedule, Py_buffer array[])
{
    Py_ssize_t n = array[0].shape[0], m = leaves(&shape), rows = PROOF_WORDS + m;
    if (need(is_key_by_key(array + 1, n, PROOF_RAND), "rand must have shape (keys, 19) and be contiguous")) return 0;
    if (need(has_size(array + 2, 4, n), "ends must have shape (4, keys)")) return 0;
    int fits = array[3].shape[0] == 1 + m * m && (uintptr_t)array[3].buf % 8 == 0;
    if (need(fits, "constants must be aligned, 1 + leaves x leaves words")) return 0;
    if (need(has_size(array + 4, rows, n) && has_size(array + 5, rows, n), "words must have shape (words, keys)")) return 0;
    struct prove_job job = {shape, schedule, n, array[0].buf, array[1].buf, rows_of(array + 2), array[3].buf,
                            {rows_of(array + 4), rows_of(array + 5)}};
    const struct set *use = chosen;
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = use->prove(&job);
    Py_END_ALLOW_THREADS
    return failed;
}

PyDoc_STRVAR(prove_doc, "prove(has_values, bits, keys, alphas, rand, ends, constants, words0, words1): fill both proofs");
static PyObject *py_prove(PyObject *self, PyObject *args)
{
    static const struct arrays about = {2, {"alphas", "rand", "ends", "constants", "words0", "words1"}, {1, 2, 2, 1, 2, 2}};
    (void)self;
    return on_arrays(args, &about, run_prove);
}

/* The points, or every point of the domain for None. */
static int get_points(struct eval_job *job, PyObject *given, Py_buffer *points)
{
    int bits = job->shape.bits;
    job->points = NULL;
    job->answers = UINT64_C(1) << bits;
    if (given == Py_None) return 0;
    if (get_array(given, points, 1, 0, "points")) return -1;
    job->points = points->buf;
    job->answers = points->shape[0];
    int sorted = job->answers > 0 && (uintptr_t)points->buf % 8 == 0;
    for (uint64_t i = 0; sorted && i < job->answers; i++)
        sorted = job->points[i] >> bits == 0 && (!i || job->points[i - 1] < job->points[i]);
    if (!need(sorted, "points must be aligned, in the domain, sorted and distinct")) return 0;
    PyBuffer_Release(points);
    return -1;
}

static int get_out(struct eval_job *job, PyObject *given, Py_buffer *out, int summed)
{
    if (get_array(given, out, summed ? 1 : 2, PyBUF_WRITABLE, "out")) return -1;
    int fits = (uint64_t)out->shape[0] == job->answers;
    fits = fits && (summed ? (uintptr_t)out->buf % 8 == 0 : (size_t)out->shape[1] == job->keys);
    job->sums = summed ? out->buf : NULL;
    job->each = (struct rows){out->buf, summed ? 0 : out->strides[0]};
    if (!need(fits, "out must be aligned and have one row for each point")) return 0;
    PyBuffer_Release(out);
    return -1;
}

/* For a check: the weights of the terminal nodes, and what is seen of each key. */
static int get_check(struct eval_job *job, PyObject *given_weights, PyObject *given_seen, Py_buffer check[2])
{
    Py_buffer *weights = check, *seen = check + 1;
    if (get_array(given_weights, weights, 2, 0, "weights")) return -1;
    if (get_array(given_seen, seen, 2, PyBUF_WRITABLE, "seen")) {
        PyBuffer_Release(weights);
        return -1;
    }
    int fits = weights->shape[0] == (Py_ssize_t)1 << depth(&job->shape) && weights->shape[1] == WEIGHTS;
    fits = fits && (uintptr_t)weights->buf % 8 == 0 && weights->strides[0] == 8 * WEIGHTS;
    fits = fits && seen->shape[0] == SEEN_ROWS + leaves(&job->shape) && (size_t)seen->shape[1] == job->keys;
    job->weights = weights->buf;
    job->seen = (struct rows){seen->buf, seen->strides[0]};
    if (!need(fits, "weights must have shape (nodes, 22) and be contiguous, seen (2 + leaves, keys)")) return 0;
    PyBuffer_Release(weights);
    PyBuffer_Release(seen);
    return -1;
}

static int run(struct eval_job *job)
{
    const struct set *use = chosen; /* read while the GIL is held */
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = use->eval(job);
    Py_END_ALLOW_THREADS
    return failed;
}

/* `given` are points and out or, for a check, weights, sums and what is seen. */
static int run_eval(struct eval_job *job, PyObject *given[3], int summed)
{
    Py_buffer points = {0}, out, check[2];
    PyObject *given_points = given[2] ? Py_None : given[0];
    int failed = 0;
    job->weights = NULL;
    if (get_points(job, given_points, &points)) return 0;
    if (!get_out(job, given[1], &out, summed)) {
        if (!given[2]) failed = run(job);
        else if (!get_check(job, given[0], given[2], check)) {
            failed = run(job);
            for (int i = 0; i < 2; i++) PyBuffer_Release(check + i);
        }
        PyBuffer_Release(&out);
    }
    PyBuffer_Release(&points);
    return failed;
}

static PyObject *py_eval(PyObject *args, const char *format, int summed)
{
    struct eval_job job;
    struct schedule schedule;
    Py_buffer keys, words;
    PyObject *words_given, *given[3] = {0};
    int has_values, bits, failed = 0;
    if (!PyArg_ParseTuple(args, format, &has_values, &bits, &keys, &words_given, given, given + 1, given + 2)) return NULL;
    if (!get_array(words_given, &words, 2, 0, "words")) {
        job.keys = words.shape[1];
        job.words = (struct rows){words.buf, words.strides[0]};
        job.schedule = &schedule;
        if (!get_shape(&job.shape, &schedule, has_values, bits, &keys) &&
            !need(words.shape[0] == key_words(&job.shape), "words must have shape (words, keys)"))
            failed = run_eval(&job, given, summed);
        PyBuffer_Release(&words);
    }
    PyBuffer_Release(&keys);
    return finished(failed);
}

PyDoc_STRVAR(each_doc, "each(has_values, bits, keys, words, points, out): every key's share, out[point, key]");
static PyObject *py_each(PyObject *self, PyObject *args)
{
    (void)self;
    return py_eval(args, "piy*OOO", 0);
}

PyDoc_STRVAR(add_doc, "add(has_values, bits, keys, words, points, out): add all keys' shares to out[point] < 2^63");
static PyObject *py_add(PyObject *self, PyObject *args)
{
    (void)self;
    return py_eval(args, "piy*OOO", 1);
}

PyDoc_STRVAR(observe_doc, "observe(has_values, bits, keys, words, weights, out, seen): add over the whole domain, and check");
static PyObject *py_observe(PyObject *self, PyObject *args)
{
    (void)self;
    return py_eval(args, "piy*OOOO", 1);
}

PyDoc_STRVAR(canonical_doc, "canonical(words): bring every word of this array into [0, p), in place");
static PyObject *py_canonical(PyObject *self, PyObject *given)
{
    Py_buffer array;
    (void)self;
    if (get_array(given, &array, 1, PyBUF_WRITABLE, "words")) return NULL;
    if (!need((uintptr_t)array.buf % 8 == 0, "words must be aligned")) {
        const struct set *use = chosen;
        Py_BEGIN_ALLOW_THREADS use->make_canonical(array.buf, array.shape[0]);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&array);
    return finished(0);
}

PyDoc_STRVAR(hash_alone_doc, "hash_alone(keys, seeds, times): the sum of the hashes of 32 seeds, lo and hi, to time it");
static PyObject *py_hash_alone(PyObject *self, PyObject *args)
{
    struct shape shape;
    struct schedule schedule;
    Py_buffer keys, seeds;
    PyObject *given;
    Py_ssize_t times;
    uint64_t sum = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*On", &keys, &given, &times)) return NULL;
    if (!get_array(given, &seeds, 1, 0, "seeds")) {
        int fits = seeds.shape[0] == 2 * HASHED && (uintptr_t)seeds.buf % 8 == 0;
        if (!need(fits && times >= 0, "seeds must be aligned, 64 words; times must not be negative") &&
            !get_shape(&shape, &schedule, 0, 1, &keys)) {
            const struct set *use = chosen;
            const uint64_t *lo = seeds.buf;
            Py_BEGIN_ALLOW_THREADS sum = use->hash_alone(&schedule, lo, lo + HASHED, times);
            Py_END_ALLOW_THREADS
        }
        PyBuffer_Release(&seeds);
    }
    PyBuffer_Release(&keys);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(sum);
}

#include "table_module.h"

PyDoc_STRVAR(sets_doc, "sets(): the instruction sets that this processor has, best first");
static PyObject *py_sets(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    PyObject *names = PyTuple_New(set_count);
    for (int i = 0; names && i < set_count; i++) {
        PyObject *name = PyUnicode_FromString(sets[i]->name);
        if (!name || PyTuple_SetItem(names, i, name)) Py_CLEAR(names);
    }
    return names;
}

PyDoc_STRVAR(choose_doc, "choose(name): use this instruction set instead of the best one");
static PyObject *py_choose(PyObject *self, PyObject *args)
{
    const char *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    for (int i = 0; i < set_count; i++)
        if (!strcmp(sets[i]->name, name)) {
            chosen = sets[i];
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "this processor has no instruction set %s", name);
}

static PyMethodDef methods[] = {
    {"gen", py_gen, METH_VARARGS, gen_doc},
    {"prove", py_prove, METH_VARARGS, prove_doc},
    {"each", py_each, METH_VARARGS, each_doc},
    {"add", py_add, METH_VARARGS, add_doc},
    {"observe", py_observe, METH_VARARGS, observe_doc},
    {"canonical", py_canonical, METH_O, canonical_doc},
    {"hash_alone", py_hash_alone, METH_VARARGS, hash_alone_doc},
    {"table_expand", py_table_expand, METH_VARARGS, table_expand_doc},
    {"table_dot", py_table_dot, METH_VARARGS, table_dot_doc},
    {"table_add", py_table_add, METH_VARARGS, table_add_doc},
    {"sets", py_sets, METH_NOARGS, sets_doc},
    {"choose", py_choose, METH_VARARGS, choose_doc},
    {0},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "fss._native", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__native(void)
{
    set_count = fss_sets(sets);
    chosen = sets[0];
    if (!set_count) {
        PyErr_SetString(PyExc_ImportError, "this processor has no AES instructions");
        return NULL;
    }
    return PyModule_Create(&module);
}
