/* The module `mechdesign.formats._rowhash`: keyed hashes of rows, by which data sets are
 * recognised.
 *
 * The hash of a row takes two steps. (1) The hashes of its cells (`_cellhash.h`) are added up,
 * modulo 2^64: row by row for CSV text (`add_rows`), else column by column (`add_texts`,
 * `add_doubles`). So the row "a,7" in CSV has the sum of the column "a" and the column 7.0, and a
 * sum does not depend on the order of the columns. (2) `mix` takes each sum through SipHash.
 *
 * The hash of a cell is a few multiplications, which suffice against accidental collisions.
 * SipHash-1-3 of their sum has a secret key, so a reader without the key cannot test guesses.
 *
 * Further functions: `chain` hashes a sequence of words in their order; `words` is BLAKE2b of
 * records of texts (`_blake.h`); `look` numbers hashes (`_hashtable.h`). METHODS, at the end, has
 * their arguments.
 *
 * All functions work on buffers in place and without the interpreter's lock. Hashes are stored in
 * ledgers and in jobs: none of them may ever change.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdlib.h>

#include "_blake.h"
#include "_cellhash.h"
#include "_hashtable.h"

/* How a loop over cells ended. */
enum { LOOP_DONE, LOOP_OUTSIDE, LOOP_MEMORY };

/* Whether an array of `rows` items of this size has so many bytes; else an exception is set. */
static int same_length(Py_ssize_t bytes, Py_ssize_t rows, Py_ssize_t item)
{
    if (bytes == rows * item)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the arrays have different lengths");
    return 0;
}

/* None, or NULL with the exception of this ending. */
static PyObject *loop_result(int ending)
{
    if (ending == LOOP_MEMORY)
        return PyErr_NoMemory();
    if (ending == LOOP_OUTSIDE) {
        PyErr_SetString(PyExc_ValueError, "a cell lies outside of the text");
        return NULL;
    }
    return Py_NewRef(Py_None);
}

/* Release some buffers. */
static void release(Py_buffer *const *buffers, int count)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(buffers[i]);
}

/* ---------------------------------------------------------------- sums of cells */

/* CSV text, of which some cells may be quoted. */
typedef struct {
    const unsigned char *bytes;
    int64_t length;
    int quote; /* a byte, or -1 */
    uint64_t seed;
    unsigned char *scratch; /* a cell with doubled quotes, unquoted */
} CsvText;

/* Hash the inside [from, to) of a quoted cell with quotes in it, each written twice. */
static int hash_doubled(CsvText *text, int64_t from, int64_t to, uint64_t *hash)
{
    unsigned char *larger = realloc(text->scratch, (size_t)(to - from));
    if (!larger)
        return LOOP_MEMORY;
    text->scratch = larger;
    Py_ssize_t size = 0;
    for (int64_t at = from; at < to; at++) {
        text->scratch[size++] = text->bytes[at];
        if (text->bytes[at] == text->quote)
            at++;
    }
    *hash = hash_cell(text->seed, text->scratch, size, size);
    return LOOP_DONE;
}

/* Hash the cell [from, to) as it is written in the text. */
static int hash_written(CsvText *text, int64_t from, int64_t to, uint64_t *hash)
{
    const unsigned char *bytes = text->bytes;
    if (text->quote >= 0 && to - from >= 2 && bytes[from] == text->quote) {
        from++;
        to--;
        if (memchr(bytes + from, text->quote, (size_t)(to - from)))
            return hash_doubled(text, from, to, hash);
    }
    *hash = hash_cell(text->seed, bytes + from, to - from, text->length - from);
    return LOOP_DONE;
}

/* Add the cells of one row, each of which ends one byte before the next one starts. The bounds
 * come from outside, so they are checked before anything is read. */
static int add_row(CsvText *text, int64_t from, const int64_t *ends, Py_ssize_t width,
                   uint64_t *sum)
{
    for (Py_ssize_t k = 0; k < width; k++) {
        int64_t to = ends[k];
        uint64_t hash;
        if (from < 0 || to < from || to > text->length)
            return LOOP_OUTSIDE;
        int ending = hash_written(text, from, to, &hash);
        if (ending != LOOP_DONE)
            return ending;
        *sum += hash;
        from = to + 1;
    }
    return LOOP_DONE;
}

static PyObject *add_rows(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer sums, text, starts, ends;
    Py_buffer *const buffers[] = {&sums, &text, &starts, &ends};
    unsigned long long seed;
    Py_ssize_t width;
    int quote;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ky*y*y*ni", &sums, &seed, &text, &starts, &ends, &width, &quote))
        return NULL;
    Py_ssize_t rows = sums.len / 8;
    if (same_length(starts.len, rows, 8) && same_length(ends.len, rows * width, 8)) {
        uint64_t *sum = sums.buf;
        const int64_t *start = starts.buf;
        const int64_t *end = ends.buf;
        CsvText csv = {text.buf, text.len, quote, seed, NULL};
        int ending = LOOP_DONE;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < rows && ending == LOOP_DONE; i++)
            ending = add_row(&csv, start[i], end + i * width, width, sum + i);
        free(csv.scratch);
        Py_END_ALLOW_THREADS
        result = loop_result(ending);
    }
    release(buffers, 4);
    return result;
}

/* Add one text to each sum: text i is bytes[offsets[i]] to bytes[offsets[i + 1]]. */
static int add_each_text(uint64_t *sum, Py_ssize_t rows, uint64_t seed, const unsigned char *bytes,
                         int64_t length, const int64_t *offsets, int plain)
{
    for (Py_ssize_t i = 0; i < rows; i++) {
        int64_t from = offsets[i];
        int64_t to = offsets[i + 1];
        if (from < 0 || to < from || to > length)
            return LOOP_OUTSIDE;
        if (plain)
            sum[i] += hash_bytes(seed, bytes + from, to - from);
        else
            sum[i] += hash_cell(seed, bytes + from, to - from, length - from);
    }
    return LOOP_DONE;
}

static PyObject *add_texts(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer sums, text, offsets;
    Py_buffer *const buffers[] = {&sums, &text, &offsets};
    unsigned long long seed;
    int plain;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ky*y*p", &sums, &seed, &text, &offsets, &plain))
        return NULL;
    Py_ssize_t rows = sums.len / 8;
    if (same_length(offsets.len, rows + 1, 8)) {
        int ending;
        Py_BEGIN_ALLOW_THREADS
        ending = add_each_text(sums.buf, rows, seed, text.buf, text.len, offsets.buf, plain);
        Py_END_ALLOW_THREADS
        result = loop_result(ending);
    }
    release(buffers, 3);
    return result;
}

static PyObject *add_doubles(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer sums, values;
    Py_buffer *const buffers[] = {&sums, &values};
    unsigned long long seed;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ky*", &sums, &seed, &values))
        return NULL;
    uint64_t *sum = sums.buf;
    const double *value = values.buf;
    Py_ssize_t rows = sums.len / 8;
    if (same_length(values.len, rows, 8)) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < rows; i++)
            if (!isnan(value[i]))
                sum[i] += hash_double(seed, value[i]);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release(buffers, 2);
    return result;
}

/* ---------------------------------------------------------------- SipHash */

/* The state of SipHash (Aumasson and Bernstein 2012). */
typedef struct {
    uint64_t v0, v1, v2, v3;
} Sip;

/* x turned left. */
static inline uint64_t rotated(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* SipRound: four additions, rotations and exclusive ors in two pairs. */
static inline void sip_round(Sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v2 = rotated(s->v2, 32);
}

/* SipHash-1-3 of eight bytes: one round a word, the last word with the length, three to finish.
 * The constants are those of the paper. */
static inline uint64_t siphash(uint64_t word, uint64_t k0, uint64_t k1)
{
    const uint64_t last = 8ULL << 56;
    Sip s = {
        k0 ^ 0x736f6d6570736575ULL,
        k1 ^ 0x646f72616e646f6dULL,
        k0 ^ 0x6c7967656e657261ULL,
        k1 ^ 0x7465646279746573ULL,
    };
    s.v3 ^= word;
    sip_round(&s);
    s.v0 ^= word;
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static PyObject *mix(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer words;
    unsigned long long k0, k1;
    if (!PyArg_ParseTuple(args, "w*KK", &words, &k0, &k1))
        return NULL;
    uint64_t *word = words.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < words.len / 8; i++)
        word[i] = siphash(word[i], k0, k1);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&words);
    Py_RETURN_NONE;
}

/* Unlike the sums, this hash depends on the order of the words. Its words are keyed hashes, so it
 * needs no key of its own. */
static PyObject *chain(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer words;
    unsigned long long a, b;
    if (!PyArg_ParseTuple(args, "y*KK", &words, &a, &b))
        return NULL;
    const uint64_t *word = words.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < words.len / 8; i++) {
        a = folded(a ^ word[i], PRIME_1);
        b = folded(b ^ word[i], PRIME_2) + a;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&words);
    return Py_BuildValue("(KK)", a, b);
}

/* ---------------------------------------------------------------- BLAKE2 of records */

/* The buffers of one column of texts. */
typedef struct {
    Py_buffer ends, text;
} Column;

/* Whether `rows` texts lie within their column; else an exception is set. */
static int texts_fit(const Column *column, Py_ssize_t rows)
{
    const int64_t *end = column->ends.buf;
    if (!same_length(column->ends.len, rows + 1, 8))
        return 0;
    for (Py_ssize_t i = 0; i < rows; i++) {
        if (end[i] < 0 || end[i + 1] < end[i] || end[i + 1] > column->text.len) {
            PyErr_SetString(PyExc_ValueError, "a cell lies outside of the text");
            return 0;
        }
    }
    return 1;
}

/* Open the columns of a list of (offsets, text), and check them. Returns how many were opened,
 * all of which have to be released; fewer than the list has, or the last one unfit, with an
 * exception. */
static Py_ssize_t open_columns(PyObject *list, Py_ssize_t rows, Column *columns, BlakeTexts *texts)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    for (Py_ssize_t k = 0; k < count; k++) {
        Column *column = columns + k;
        PyObject *pair = PyList_GET_ITEM(list, k);
        if (!PyArg_ParseTuple(pair, "y*y*", &column->ends, &column->text))
            return k;
        if (!texts_fit(column, rows))
            return k + 1;
        texts[k].ends = column->ends.buf;
        texts[k].text = column->text.buf;
    }
    return count;
}

/* Hash the records of a list of columns into `out`; None, or NULL with an exception. */
static PyObject *hash_records(PyObject *list, const Py_buffer *out, const Py_buffer *key,
                              const Py_buffer *person, int lanes)
{
    Py_ssize_t rows = out->len / 8;
    size_t count = (size_t)PyList_GET_SIZE(list);
    Column *columns = PyMem_Calloc(count, sizeof *columns);
    BlakeTexts *texts = PyMem_Calloc(count, sizeof *texts);
    Py_ssize_t opened = 0;
    PyObject *result = NULL;
    if (columns && texts)
        opened = open_columns(list, rows, columns, texts);
    else
        PyErr_NoMemory();
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        blake_words(out->buf, (size_t)rows, key->buf, person->buf, texts, count, lanes);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    for (Py_ssize_t k = 0; k < opened; k++) {
        PyBuffer_Release(&columns[k].ends);
        PyBuffer_Release(&columns[k].text);
    }
    PyMem_Free(columns);
    PyMem_Free(texts);
    return result;
}

static PyObject *words(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer out, key, person;
    Py_buffer *const buffers[] = {&out, &key, &person};
    PyObject *list;
    PyObject *result = NULL;
    int lanes = BLAKE_LANES;
    if (!PyArg_ParseTuple(args, "w*y*y*O!|i", &out, &key, &person, &PyList_Type, &list, &lanes))
        return NULL;
    if (PyList_GET_SIZE(list) < 1)
        PyErr_SetString(PyExc_ValueError, "there must be at least one column");
    else if (same_length(key.len, 1, BLAKE_KEY) && same_length(person.len, 1, BLAKE_PERSON))
        result = hash_records(list, &out, &key, &person, lanes);
    release(buffers, 3);
    return result;
}

/* ---------------------------------------------------------------- a table of hashes */

static PyObject *look(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer keys, values, hashes, codes, news, founds;
    Py_buffer *const buffers[] = {&keys, &values, &hashes, &codes, &news, &founds};
    Table table;
    Py_ssize_t first;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*w*nny*y*w*w*n", &keys, &values, &table.used, &table.room,
                          &hashes, &codes, &news, &founds, &first))
        return NULL;
    table.key = keys.buf;
    table.value = values.buf;
    table.slots = (uint64_t)keys.len / 8;
    Lookup lookup = {hashes.len / 8, hashes.buf, codes.buf, news.buf, founds.buf};
    int fits = same_length(values.len, (Py_ssize_t)table.slots, 4) &&
               same_length(codes.len, lookup.count, 8) && same_length(news.len, lookup.count, 1) &&
               same_length(founds.len, lookup.count, 8);
    if (fits && (table.used < 0 || first < 0 || (uint64_t)table.used >= table.slots)) {
        PyErr_SetString(PyExc_ValueError, "the table is full");
    } else if (fits) {
        Py_ssize_t next;
        Py_BEGIN_ALLOW_THREADS
        next = look_up(&table, &lookup, first);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("(nn)", next, table.used);
    }
    release(buffers, 6);
    return result;
}

static PyMethodDef METHODS[] = {
    {"add_rows", add_rows, METH_VARARGS,
     "add_rows(sums, seed, text, starts, ends, width, quote): add the hashes of the cells of CSV "
     "rows; quote is a byte, or -1."},
    {"add_texts", add_texts, METH_VARARGS,
     "add_texts(sums, seed, text, offsets, plain): add the hash of one text to each sum; of plain "
     "texts the bytes are hashed, of others the values."},
    {"add_doubles", add_doubles, METH_VARARGS,
     "add_doubles(sums, seed, values): add the hash of one number to each sum; NaN is empty."},
    {"mix", mix, METH_VARARGS,
     "mix(words, k0, k1): SipHash-1-3 of every word of 8 bytes, in its place."},
    {"chain", chain, METH_VARARGS,
     "chain(words, a, b): the state (a, b) of the hash of a sequence, after further words of 8 "
     "bytes."},
    {"words", words, METH_VARARGS,
     "words(out, key, person, columns, lanes=8): BLAKE2b of each record, with key and person, as a "
     "word. columns are pairs of offsets and text; with several, each text has its length before "
     "it. At most `lanes` records are hashed at once."},
    {"look", look, METH_VARARGS,
     "look(keys, values, used, room, hashes, codes, new, found, start): find hashes in a table, or "
     "keep them with their codes while there is room (none is kept if room is below 0, and new is "
     "2 for those without room). Stops where the table has to grow; returns that place, and the "
     "number of hashes in the table."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_rowhash", .m_doc = "Keyed hashes of rows.",
    .m_size = -1,          .m_methods = METHODS,
};

PyMODINIT_FUNC PyInit__rowhash(void)
{
    return PyModule_Create(&MODULE);
}
