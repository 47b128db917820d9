/* Arrays of uint64 from Python, by the buffer protocol, and what is asked of their sizes. */
#include "kernel.h"

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

/* Arrays that a function takes, the last of them to write to. */
enum { ARRAYS = 6 };

struct arrays {
    int written;
    const char *names[ARRAYS];
    int dimensions[ARRAYS];
};

/* Get all of them, or none. */
static int get_arrays(const struct arrays *about, PyObject *given[], Py_buffer array[])
{
    for (int got = 0; got < ARRAYS; got++) {
        int flags = got < ARRAYS - about->written ? 0 : PyBUF_WRITABLE;
        if (!get_array(given[got], array + got, about->dimensions[got], flags, about->names[got])) continue;
        while (got) PyBuffer_Release(array + --got);
        return -1;
    }
    return 0;
}

static int has_size(const Py_buffer *array, Py_ssize_t rows, Py_ssize_t columns)
{
    return array->shape[0] == rows && array->shape[1] == columns;
}

/* `columns` words a key, one key after the other. */
static int is_key_by_key(const Py_buffer *array, Py_ssize_t keys, Py_ssize_t columns)
{
    return has_size(array, keys, columns) && (keys < 2 || array->strides[0] == 8 * columns);
}

static struct rows rows_of(const Py_buffer *array) { return (struct rows){array->buf, array->strides[0]}; }
