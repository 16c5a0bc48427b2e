/* The module `mechdesign.formats._csv`: buffers in, every index checked, bytes out.
 *
 * Each function takes apart its arguments, refuses indices that lie outside of the buffers, and
 * calls the function of _csv.h that does the work. METHODS, at the end, says what each one returns
 * to Python. The items of all arrays are int64, except for codes, Arrow's offsets and what
 * `numbered` returns: those are int32. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_csv.h"

/* Bytes of one item. */
enum { INT32_SIZE = sizeof(int32_t), INT64_SIZE = sizeof(int64_t) };

#define OUTSIDE "a cell lies outside of the text, or they are too long together"

static void release(Py_buffer *const *buffers, int count)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(buffers[i]);
}

/* `csv_split`. The arrays are the caller's, so that their memory is used again for the next
 * text. */
static PyObject *split(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer text, ends, last, starts;
    Py_buffer *const buffers[] = {&text, &ends, &last, &starts};
    int delimiter, quote;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*iiw*w*w*", &text, &delimiter, &quote, &ends, &last, &starts))
        return NULL;
    Py_ssize_t room = Py_MIN(Py_MIN(ends.len, last.len), starts.len) / INT64_SIZE;
    /* No text has more cells or rows than bytes, so this is room enough for any. */
    if (room < text.len || delimiter < 0 || delimiter > 255) {
        PyErr_SetString(PyExc_ValueError,
                        "there is no room for a cell at every byte, or the delimiter is no byte");
    } else {
        CsvRows rows;
        Py_BEGIN_ALLOW_THREADS
        rows = csv_split(text.buf, text.len, delimiter, quote, ends.buf, last.buf, starts.buf);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("nnnnn", (Py_ssize_t)rows.cells, (Py_ssize_t)rows.rows,
                               (Py_ssize_t)rows.bytes, (Py_ssize_t)rows.lines,
                               (Py_ssize_t)rows.misquoted);
    }
    release(buffers, 4);
    return result;
}

/* Bytes of the cells [starts[i], ends[i]) together, or -1 if one lies outside of the text. */
static int64_t cells_length(const Py_buffer *text, const Py_buffer *starts, const Py_buffer *ends)
{
    const int64_t *start = starts->buf;
    const int64_t *end = ends->buf;
    int64_t total = 0;
    if (starts->len != ends->len)
        return -1;
    for (Py_ssize_t i = 0; i < starts->len / INT64_SIZE; i++) {
        if (start[i] < 0 || end[i] < start[i] || end[i] > text->len)
            return -1;
        total += end[i] - start[i];
        if (total > INT32_MAX) /* the offsets of Arrow's strings have 32 bits */
            return -1;
    }
    return total;
}

/* `csv_unquote`, into new offsets and bytes. */
static PyObject *texts(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer text, starts, ends;
    Py_buffer *const buffers[] = {&text, &starts, &ends};
    int quote;
    PyObject *offsets = NULL;
    PyObject *data = NULL;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*i", &text, &starts, &ends, &quote))
        return NULL;
    Py_ssize_t rows = starts.len / INT64_SIZE;
    int64_t total = cells_length(&text, &starts, &ends);
    if (total < 0) {
        PyErr_SetString(PyExc_IndexError, OUTSIDE);
        goto done;
    }
    offsets = PyBytes_FromStringAndSize(NULL, INT32_SIZE * (rows + 1));
    if (!offsets)
        goto done;
    data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (!data)
        goto done;
    ptrdiff_t size = csv_unquote(text.buf, rows, starts.buf, ends.buf, quote,
                                 (int32_t *)PyBytes_AS_STRING(offsets),
                                 (unsigned char *)PyBytes_AS_STRING(data));
    /* Room was taken for the quotes, too. */
    if (_PyBytes_Resize(&data, size) == 0)
        result = Py_BuildValue("OO", offsets, data);
done:
    Py_XDECREF(offsets);
    Py_XDECREF(data);
    release(buffers, 3);
    return result;
}

/* Whether offsets ascend within `length` bytes; there are `count` + 1 of them. An empty buffer has
 * not even the first, and so a count of -1. */
static int offsets_fit(const int32_t *offsets, Py_ssize_t count, Py_ssize_t length)
{
    if (count < 0 || offsets[0] < 0 || offsets[count] > length)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (offsets[i + 1] < offsets[i])
            return 0;
    return 1;
}

/* `csv_number`, into new codes and first rows. */
static PyObject *numbered(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer text, starts, ends;
    Py_buffer *const buffers[] = {&text, &starts, &ends};
    PyObject *codes = NULL;
    PyObject *firsts = NULL;
    PyObject *result = NULL;
    Py_ssize_t width, place;
    if (!PyArg_ParseTuple(args, "y*y*y*nn", &text, &starts, &ends, &width, &place))
        return NULL;
    Py_ssize_t rows = starts.len / INT64_SIZE;
    CsvCells cells = {text.buf, text.len, rows, width, place, starts.buf, ends.buf};
    int fit = place >= 0 && place < width && rows <= INT32_MAX &&
              ends.len == INT64_SIZE * rows * width && csv_cells_fit(&cells);
    if (!fit) {
        PyErr_SetString(PyExc_IndexError, OUTSIDE);
        goto done;
    }
    codes = PyBytes_FromStringAndSize(NULL, INT32_SIZE * rows);
    if (!codes)
        goto done;
    firsts = PyBytes_FromStringAndSize(NULL, INT32_SIZE * rows);
    if (!firsts)
        goto done;
    int32_t *code = (int32_t *)PyBytes_AS_STRING(codes);
    int32_t *first = (int32_t *)PyBytes_AS_STRING(firsts);
    Py_ssize_t count;
    Py_BEGIN_ALLOW_THREADS
    count = csv_number(&cells, code, first);
    Py_END_ALLOW_THREADS
    if (count < 0)
        PyErr_NoMemory();
    else if (_PyBytes_Resize(&firsts, INT32_SIZE * count) == 0)
        result = Py_BuildValue("OO", codes, firsts);
done:
    Py_XDECREF(codes);
    Py_XDECREF(firsts);
    release(buffers, 3);
    return result;
}

/* Set the sizes of an exchange whose pointers and `size` are set, from those of the buffers; 0
 * if they contradict each other. Cuts and codes themselves are checked while they are used. */
static int exchange_fits(CsvExchange *e, const Py_buffer *text, const Py_buffer *cuts,
                         const Py_buffer *codes, const Py_buffer *counts, const Py_buffer *offsets,
                         const Py_buffer *data)
{
    e->edits = counts->len / INT64_SIZE;
    e->texts = offsets->len / INT32_SIZE - 1;
    e->rows = 0;
    if (e->edits > 0)
        e->rows = cuts->len / (2 * INT64_SIZE * e->edits); /* each cut has two ends */
    e->written = 0;
    for (Py_ssize_t k = 0; k < e->edits; k++) {
        /* A count above the bytes of all codes is wrong, and could make the sum overflow. */
        if (e->counts[k] < 0 || e->counts[k] > codes->len)
            return 0;
        e->written += (Py_ssize_t)e->counts[k];
    }
    if (e->size < 0 || e->size > text->len || codes->len != INT32_SIZE * e->rows * e->written)
        return 0;
    return offsets_fit(e->offsets, e->texts, data->len);
}

/* `csv_exchange`. It measures first, so that the result is allocated once. */
static PyObject *exchanged(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer text, cuts, codes, counts, offsets, data;
    Py_buffer *const buffers[] = {&text, &cuts, &codes, &counts, &offsets, &data};
    Py_ssize_t size;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*y*y*", &text, &size, &cuts, &codes, &counts, &offsets,
                          &data))
        return NULL;
    CsvExchange exchange = {
        .text = text.buf,
        .size = size,
        .cuts = cuts.buf,
        .counts = counts.buf,
        .codes = codes.buf,
        .offsets = offsets.buf,
        .data = data.buf,
    };
    Py_ssize_t total = -1;
    if (exchange_fits(&exchange, &text, &cuts, &codes, &counts, &offsets, &data))
        total = csv_exchange(&exchange, NULL);
    if (total < 0) {
        PyErr_SetString(PyExc_IndexError,
                        "cuts must ascend within the text, and codes be those of texts");
    } else {
        result = PyBytes_FromStringAndSize(NULL, total);
        if (result)
            csv_exchange(&exchange, (unsigned char *)PyBytes_AS_STRING(result));
    }
    release(buffers, 6);
    return result;
}

static PyMethodDef METHODS[] = {
    {"split", split, METH_VARARGS,
     "split(text, delimiter, quote, ends, last, starts): numbers of cells, rows, bytes and lines "
     "of the complete rows, and the place of text behind a closing quote or -1. Fills in the end "
     "of each cell, the last cell of each row and the start of each row. quote is a byte or -1."},
    {"texts", texts, METH_VARARGS,
     "texts(text, starts, ends, quote): offsets and bytes of cells without the quotes around "
     "them."},
    {"numbered", numbered, METH_VARARGS,
     "numbered(text, starts, ends, width, place): a code for the cell at this place of every row, "
     "and for every code the first row that has it. Cells are compared byte for byte, with their "
     "quotes."},
    {"exchanged", exchanged, METH_VARARGS,
     "exchanged(text, size, cuts, codes, counts, offsets, data): the text where, in every row, the "
     "k-th cut is replaced by counts[k] of the texts. cuts has for each edit the beginnings and the "
     "ends in all rows, codes for each written text that of all rows, with 32 bits."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_csv",     .m_doc = "Cells of CSV text.",
    .m_size = -1,          .m_methods = METHODS,
};

PyMODINIT_FUNC PyInit__csv(void)
{
    return PyModule_Create(&MODULE);
}
