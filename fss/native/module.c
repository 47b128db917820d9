/* The boundary to Python: every size is checked here, then the GIL is released and the loops run.
 *
 * Arrays come by the buffer protocol. Nothing that they hold can lead a loop astray: words, alphas and payloads are only
 * ever data, and a point that another thread changes meanwhile moves an answer, never an address.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one binary for every Python from 3.11 on */
#include <Python.h>
#include <string.h>

#include "kernel.h"

static const struct set *sets[MAX_SETS], *chosen;
static int set_count;

/* Native or little-endian, which is the same here; numpy says `=` of an array that is not aligned. */
static int is_uint64(const Py_buffer *array)
{
    const char *format = array->format ? array->format : "B";
    if (*format == '=' || *format == '<' || *format == '@') format++;
    return array->itemsize == 8 && (!strcmp(format, "L") || !strcmp(format, "Q"));
}

/* An array of `ndim` dimensions of uint64, contiguous along the last one. */
static int get_array(PyObject *from, Py_buffer *to, int ndim, int flags, const char *name)
{
    if (PyObject_GetBuffer(from, to, PyBUF_STRIDES | PyBUF_FORMAT | flags) < 0) return -1;
    if (is_uint64(to) && to->ndim == ndim && (to->shape[ndim - 1] < 2 || to->strides[ndim - 1] == 8)) return 0;
    PyErr_Format(PyExc_ValueError, "%s must be a uint64 array of %d dimensions, contiguous along the last", name, ndim);
    PyBuffer_Release(to);
    return -1;
}

static int need(int fits, const char *what)
{
    if (!fits) PyErr_Format(PyExc_ValueError, "wrong size or value: %s", what);
    return fits ? 0 : -1;
}

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

enum { GEN_ARRAYS = 6 };

static int check_gen(struct gen_job *job, Py_buffer array[GEN_ARRAYS])
{
    Py_ssize_t n = array[0].shape[0], rows = key_words(&job->shape);
    if (need(array[1].shape[0] == n && array[1].shape[1] == 4, "rand must have shape (keys, 4)")) return -1;
    if (need(n < 2 || array[1].strides[0] == 32, "rand must be contiguous")) return -1;
    if (need(array[2].shape[0] == n, "beta must have one word a key")) return -1;
    for (int b = 0; b < 2; b++)
        if (need(array[3 + b].shape[0] == rows && array[3 + b].shape[1] == n, "words must have shape (words, keys)"))
            return -1;
    if (need(array[5].shape[0] == 4 && array[5].shape[1] == n, "ends must have shape (4, keys)")) return -1;
    job->keys = n;
    job->alphas = array[0].buf, job->rand = array[1].buf, job->beta = array[2].buf;
    for (int b = 0; b < 2; b++) job->words[b] = (struct rows){array[3 + b].buf, array[3 + b].strides[0]};
    job->ends = (struct rows){array[5].buf, array[5].strides[0]};
    return 0;
}

PyDoc_STRVAR(gen_doc,
             "gen(has_values, bits, keys, alphas, rand, beta, words0, words1, ends): fill both parties' words, and "
             "lo and hi of both where their paths end");
static PyObject *py_gen(PyObject *self, PyObject *args)
{
    static const char *names[] = {"alphas", "rand", "beta", "words0", "words1", "ends"};
    static const int dimensions[] = {1, 2, 1, 2, 2, 2};
    struct gen_job job;
    struct schedule schedule;
    Py_buffer keys, array[GEN_ARRAYS];
    PyObject *given[GEN_ARRAYS];
    int has_values, bits, got = 0, failed = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "piy*OOOOOO", &has_values, &bits, &keys, given, given + 1, given + 2, given + 3, given + 4,
                          given + 5))
        return NULL;
    while (got < GEN_ARRAYS && !get_array(given[got], array + got, dimensions[got], got < 3 ? 0 : PyBUF_WRITABLE, names[got]))
        got++;
    if (got == GEN_ARRAYS && !get_shape(&job.shape, &schedule, has_values, bits, &keys) && !check_gen(&job, array)) {
        const struct set *use = chosen;
        job.schedule = &schedule;
        Py_BEGIN_ALLOW_THREADS failed = use->gen(&job);
        Py_END_ALLOW_THREADS
    }
    while (got) PyBuffer_Release(array + --got);
    PyBuffer_Release(&keys);
    return finished(failed);
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
    if (!need(fits, "weights must have shape (nodes, 13) and be contiguous, seen (2 + leaves, keys)")) return 0;
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

PyDoc_STRVAR(hash_alone_doc, "hash_alone(stripes): hash some blocks so many times, to time it; how many they are");
static PyObject *py_hash_alone(PyObject *self, PyObject *args)
{
    static const uint8_t keys[HASHES][16];
    const struct set *use = chosen;
    struct schedule schedule;
    Py_ssize_t stripes;
    volatile uint64_t sum; /* or the compiler would see that nobody asks for it */
    (void)self;
    if (!PyArg_ParseTuple(args, "n", &stripes) || need(stripes >= 0, "stripes must not be negative")) return NULL;
    fss_schedule(&schedule, keys);
    Py_BEGIN_ALLOW_THREADS sum = use->hash_alone(&schedule, stripes);
    Py_END_ALLOW_THREADS
    (void)sum;
    return PyLong_FromLong(use->blocks);
}

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
    {"each", py_each, METH_VARARGS, each_doc},
    {"add", py_add, METH_VARARGS, add_doc},
    {"observe", py_observe, METH_VARARGS, observe_doc},
    {"canonical", py_canonical, METH_O, canonical_doc},
    {"hash_alone", py_hash_alone, METH_VARARGS, hash_alone_doc},
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
