/* The boundary of table.h, for module.c: every size is checked here. */

PyDoc_STRVAR(table_expand_doc, "table_expand(key, seed, first, out): fill out with the elements of a seed from block first on");
static PyObject *py_table_expand(PyObject *self, PyObject *args)
{
    struct schedule schedule;
    uint8_t keys[HASHES][16] = {{0}};
    uint64_t words[2];
    Py_buffer key, seed, out;
    PyObject *given;
    unsigned long long first;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*KO", &key, &seed, &first, &given)) return NULL;
    if (!need(key.len == 16 && seed.len == 16, "key and seed must have 16 bytes") &&
        !get_array(given, &out, 1, PyBUF_WRITABLE, "out")) {
        if (!need((uintptr_t)out.buf % 8 == 0, "out must be aligned")) {
            const struct set *use = chosen;
            memcpy(keys[0], key.buf, 16);
            memcpy(words, seed.buf, 16);
            fss_schedule(&schedule, (const uint8_t(*)[16])keys);
            Py_BEGIN_ALLOW_THREADS use->table_expand(&schedule, words, first, out.buf, out.shape[0]);
            Py_END_ALLOW_THREADS
        }
        PyBuffer_Release(&out);
    }
    PyBuffer_Release(&seed);
    PyBuffer_Release(&key);
    return finished(0);
}

/* Two arrays of equal length, of which the second is aligned. */
static int get_pair(PyObject *given[2], Py_buffer array[2], int flags, const char *name)
{
    if (get_array(given[0], array, 1, 0, "words")) return -1;
    if (!get_array(given[1], array + 1, 1, flags, name)) {
        int fits = array[0].shape[0] == array[1].shape[0] && (uintptr_t)array[1].buf % 8 == 0;
        if (!need(fits, "both arrays must be of one length, the second aligned")) return 0;
        PyBuffer_Release(array + 1);
    }
    PyBuffer_Release(array);
    return -1;
}

PyDoc_STRVAR(table_dot_doc, "table_dot(words, weights): the sum of their products, and the sum of the words");
static PyObject *py_table_dot(PyObject *self, PyObject *args)
{
    Py_buffer array[2];
    PyObject *given[2];
    uint64_t sums[2];
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", given, given + 1) || get_pair(given, array, 0, "weights")) return NULL;
    const struct set *use = chosen;
    Py_BEGIN_ALLOW_THREADS use->table_dot(array[0].buf, array[1].buf, array[0].shape[0], sums);
    Py_END_ALLOW_THREADS
    for (int i = 0; i < 2; i++) PyBuffer_Release(array + i);
    return Py_BuildValue("KK", (unsigned long long)sums[0], (unsigned long long)sums[1]);
}

PyDoc_STRVAR(table_add_doc, "table_add(words, factor, sums): add factor times words to sums");
static PyObject *py_table_add(PyObject *self, PyObject *args)
{
    Py_buffer array[2];
    PyObject *given[2];
    unsigned long long factor;
    (void)self;
    if (!PyArg_ParseTuple(args, "OKO", given, &factor, given + 1)) return NULL;
    if (need(factor < P, "factor must be an element")) return NULL;
    if (get_pair(given, array, PyBUF_WRITABLE, "sums")) return NULL;
    const struct set *use = chosen;
    Py_BEGIN_ALLOW_THREADS use->table_add(array[0].buf, factor, array[1].buf, array[0].shape[0]);
    Py_END_ALLOW_THREADS
    for (int i = 0; i < 2; i++) PyBuffer_Release(array + i);
    return finished(0);
}
