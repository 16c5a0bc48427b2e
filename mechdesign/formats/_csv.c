/* Cells of CSV text: where they end, what they say, and lines in which some are exchanged.
 *
 * The rules are those of Python's csv.reader in its strict mode, on UTF-8, in which delimiters, quotes and line breaks
 * are bytes of their own.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>

#include "_bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LF 10
#define CR 13

/* Place of the lowest bit that is set. */
static int lowest(uint64_t bits)
{
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long place;
    _BitScanForward64(&place, bits);
    return (int)place;
#else
    return __builtin_ctzll(bits);
#endif
}

#if !defined(__SSE2__)
/* The top bit of every byte that is zero. */
static uint64_t zeros(uint64_t v) { return ~(((v & 0x7f * EACH) + 0x7f * EACH) | v) & 0x80 * EACH; }
#endif

/* What a text is searched for, beside line breaks, and where it was found in the 64 bytes from `base` on. */
typedef struct {
    const unsigned char *p;
    Py_ssize_t n, base;
    uint64_t found;
    unsigned char sought;
} Search;

/* A bit for every byte from `base` on, as many as fit, that is sought or a line break. */
static uint64_t found_at(const Search *s, Py_ssize_t base)
{
    uint64_t bits = 0;
    Py_ssize_t left = s->n - base, k = 0;
#if defined(__SSE2__)
    if (left >= 64) {
        const __m128i sought = _mm_set1_epi8((char)s->sought), lf = _mm_set1_epi8(LF), cr = _mm_set1_epi8(CR);
        for (; k < 64; k += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(s->p + base + k));
            __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, sought), _mm_or_si128(_mm_cmpeq_epi8(v, lf), _mm_cmpeq_epi8(v, cr)));
            bits |= (uint64_t)(unsigned)_mm_movemask_epi8(hit) << k;
        }
    }
#else
    for (; k < 64 && k + 8 <= left; k += 8) { /* top bits of the bytes, gathered by a product */
        uint64_t v = read64(s->p + base + k);
        uint64_t hit = zeros(v ^ s->sought * EACH) | zeros(v ^ LF * EACH) | zeros(v ^ CR * EACH);
        bits |= ((hit >> 7) * 0x0102040810204080ULL >> 56) << k;
    }
#endif
    for (; k < left && k < 64; k++) {
        unsigned char c = s->p[base + k];
        bits |= (uint64_t)(c == s->sought || c == LF || c == CR) << k;
    }
    return bits;
}

/* The next byte from i on that is sought or a line break, or n. */
static Py_ssize_t next_end(Search *s, Py_ssize_t i)
{
    while (i < s->n) {
        if (i - s->base >= 64 || i < s->base) {
            s->base = i;
            s->found = found_at(s, i);
        }
        uint64_t bits = s->found >> (i - s->base);
        if (bits)
            return i + lowest(bits);
        i = s->base + 64;
    }
    return s->n;
}

typedef struct {
    Py_ssize_t cells, rows, size, lines, misquoted;
} Found;

/* All complete rows at the beginning of a text. */
static Found rows_of(const unsigned char *p, Py_ssize_t n, int delimiter, int quote, int64_t *ends, int64_t *last,
                     int64_t *starts)
{
    Found found = {0, 0, 0, 0, -1};
    Search cell = {p, n, -64, 0, (unsigned char)delimiter}, quoted = {p, n, -64, 0, (unsigned char)quote};
    Py_ssize_t i = 0, k = 0, breaks = 0; /* line breaks within the quotes of this row */
    while (i < n) {
        if (p[i] == quote) {
            do { /* a doubled quote is one within the cell */
                while ((i = next_end(&quoted, i + 1)) < n && p[i] != quote)
                    breaks += p[i] == CR || p[i - 1] != CR;
                if (i == n)
                    return found;
                i++;
            } while (i < n && p[i] == quote);
            if (i < n && p[i] != delimiter && p[i] != LF && p[i] != CR) {
                found.misquoted = i;
                return found;
            }
        } else {
            i = next_end(&cell, i);
        }
        if (i == n)
            return found;
        ends[k++] = i;
        if (p[i] == delimiter) {
            i++;
            continue;
        }
        i += p[i] == CR && i + 1 < n && p[i + 1] == LF ? 2 : 1;
        last[found.rows] = k - 1;
        starts[found.rows++] = found.size;
        found.size = i;
        found.cells = k;
        found.lines += breaks + 1;
        breaks = 0;
    }
    return found;
}

static PyObject *split(PyObject *self, PyObject *args)
{
    Py_buffer text, ends, last, starts;
    int delimiter, quote;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*iiw*w*w*", &text, &delimiter, &quote, &ends, &last, &starts))
        return NULL;
    Py_ssize_t room = Py_MIN(Py_MIN(ends.len, last.len), starts.len) / 8;
    if (room < text.len || delimiter < 0 || delimiter > 255) {
        PyErr_SetString(PyExc_ValueError, "there is no room for a cell at every byte, or the delimiter is no byte");
    } else {
        Found found;
        Py_BEGIN_ALLOW_THREADS
        found = rows_of(text.buf, text.len, delimiter, quote, ends.buf, last.buf, starts.buf);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("nnnnn", found.cells, found.rows, found.size, found.lines, found.misquoted);
    }
    PyBuffer_Release(&text);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&last);
    PyBuffer_Release(&starts);
    return result;
}

static PyObject *texts(PyObject *self, PyObject *args)
{
    Py_buffer text, starts, ends;
    int quote;
    PyObject *offsets = NULL, *data = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*i", &text, &starts, &ends, &quote))
        return NULL;
    const unsigned char *bytes = text.buf;
    const int64_t *first = starts.buf, *end = ends.buf;
    Py_ssize_t rows = starts.len / 8, total = 0;
    int outside = starts.len != ends.len;
    for (Py_ssize_t i = 0; i < rows && !outside; i++) {
        outside = first[i] < 0 || end[i] < first[i] || end[i] > text.len;
        total += outside ? 0 : end[i] - first[i];
    }
    if (outside || total > INT32_MAX) {
        PyErr_SetString(PyExc_IndexError, "a cell lies outside of the text, or they are too long together");
        goto done;
    }
    offsets = PyBytes_FromStringAndSize(NULL, 4 * (rows + 1));
    data = PyBytes_FromStringAndSize(NULL, total);
    if (!offsets || !data)
        goto done;
    int32_t *at = (int32_t *)PyBytes_AS_STRING(offsets);
    unsigned char *out = (unsigned char *)PyBytes_AS_STRING(data), *begin = out;
    at[0] = 0;
    for (Py_ssize_t i = 0; i < rows; i++) {
        const unsigned char *from = bytes + first[i], *to = bytes + end[i];
        if (to - from >= 2 && *from == quote) {
            from++, to--;
            for (const unsigned char *next; (next = memchr(from, quote, (size_t)(to - from)));) {
                memcpy(out, from, (size_t)(next + 1 - from)); /* two quotes stand for one */
                out += next + 1 - from;
                from = next + 2 < to ? next + 2 : to;
            }
        }
        memcpy(out, from, (size_t)(to - from));
        out += to - from;
        at[i + 1] = (int32_t)(out - begin);
    }
    if (_PyBytes_Resize(&data, out - begin) == 0)
        result = Py_BuildValue("OO", offsets, data);
done:
    Py_XDECREF(offsets);
    Py_XDECREF(data);
    PyBuffer_Release(&text);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&ends);
    return result;
}

/* A number for the n bytes of a text, which differs for nearly all texts. */
static uint64_t hash_text(const unsigned char *p, Py_ssize_t n)
{
    uint64_t h = (uint64_t)n * EACH, v = 0;
    for (; n > 8; p += 8, n -= 8)
        h = (h ^ read64(p)) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
    if (n == 8)
        v = read64(p);
    else if (n >= 4) /* the middle twice */
        v = read32(p) << 32 | read32(p + n - 4);
    else if (n > 0)
        v = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
    h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
    return h ^ h >> 32;
}

/* Number the different texts in the order in which they come; how many there are, or -1 without memory. */
static Py_ssize_t number_texts(const int32_t *at, const unsigned char *data, Py_ssize_t rows, int32_t *codes, int32_t *firsts)
{
    Py_ssize_t room = 256, known = 0;
    uint64_t *slots = calloc((size_t)room, 8); /* the upper half of the hash, and one more than the code */
    for (Py_ssize_t i = 0; slots && i < rows; i++) {
        const unsigned char *p = data + at[i];
        Py_ssize_t n = at[i + 1] - at[i];
        uint64_t h = hash_text(p, n), mark = h & 0xffffffff00000000ULL, slot, seen;
        for (slot = h & (uint64_t)(room - 1); (seen = slots[slot]); slot = (slot + 1) & (uint64_t)(room - 1)) {
            int32_t first = firsts[(seen & 0xffffffffULL) - 1];
            if ((seen & 0xffffffff00000000ULL) == mark && at[first + 1] - at[first] == n && !memcmp(data + at[first], p, (size_t)n))
                break;
        }
        if (seen) {
            codes[i] = (int32_t)((seen & 0xffffffffULL) - 1);
            continue;
        }
        firsts[known] = (int32_t)i;
        codes[i] = (int32_t)known;
        slots[slot] = mark | (uint64_t)++known;
        if (2 * known < room)
            continue;
        free(slots);
        room *= 4;
        slots = calloc((size_t)room, 8);
        for (Py_ssize_t k = 0; slots && k < known; k++) {
            h = hash_text(data + at[firsts[k]], at[firsts[k] + 1] - at[firsts[k]]);
            for (slot = h & (uint64_t)(room - 1); slots[slot]; slot = (slot + 1) & (uint64_t)(room - 1))
                ;
            slots[slot] = (h & 0xffffffff00000000ULL) | (uint64_t)(k + 1);
        }
    }
    Py_ssize_t found = slots ? known : -1;
    free(slots);
    return found;
}

static PyObject *numbered(PyObject *self, PyObject *args)
{
    Py_buffer offsets, data;
    PyObject *codes = NULL, *firsts = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*", &offsets, &data))
        return NULL;
    const int32_t *at = offsets.buf;
    Py_ssize_t rows = offsets.len / 4 - 1, known = -1;
    int outside = rows < 0 || at[0] < 0 || at[rows] > data.len;
    for (Py_ssize_t i = 0; i < rows && !outside; i++)
        outside = at[i + 1] < at[i];
    if (outside) {
        PyErr_SetString(PyExc_IndexError, "a text lies outside of the data");
        goto done;
    }
    codes = PyBytes_FromStringAndSize(NULL, 4 * rows);
    firsts = PyBytes_FromStringAndSize(NULL, 4 * rows);
    if (!codes || !firsts)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    known = number_texts(at, data.buf, rows, (int32_t *)PyBytes_AS_STRING(codes), (int32_t *)PyBytes_AS_STRING(firsts));
    Py_END_ALLOW_THREADS
    if (known < 0)
        PyErr_NoMemory();
    else if (_PyBytes_Resize(&firsts, 4 * known) == 0)
        result = Py_BuildValue("OO", codes, firsts);
done:
    Py_XDECREF(codes);
    Py_XDECREF(firsts);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    return result;
}

/* What is to be written: `cuts` has, for every row and edit, where the text is left and where it goes on. */
typedef struct {
    const unsigned char *text, *data;
    Py_ssize_t size, rows, edits, written, known;
    const int64_t *cuts, *codes, *counts;
    const int32_t *offsets;
} Exchange;

/* Write the text with its edits, or measure it where there is no `out`; -1 if something lies outside. */
static Py_ssize_t write_exchange(const Exchange *e, unsigned char *out)
{
    Py_ssize_t total = 0, at = 0;
    for (Py_ssize_t row = 0; row < e->rows; row++) {
        const int64_t *cut = e->cuts + row * 2 * e->edits, *code = e->codes + row * e->written;
        for (Py_ssize_t k = 0; k < e->edits; k++) {
            Py_ssize_t leave = (Py_ssize_t)cut[2 * k], again = (Py_ssize_t)cut[2 * k + 1];
            if (leave < at || again < leave || again > e->size)
                return -1;
            if (out)
                memcpy(out + total, e->text + at, (size_t)(leave - at));
            total += leave - at;
            at = again;
            for (int64_t j = 0; j < e->counts[k]; j++, code++) {
                if (*code < 0 || *code >= e->known)
                    return -1;
                Py_ssize_t from = e->offsets[*code], size = e->offsets[*code + 1] - from;
                if (out)
                    memcpy(out + total, e->data + from, (size_t)size);
                total += size;
            }
        }
    }
    if (out)
        memcpy(out + total, e->text + at, (size_t)(e->size - at));
    return total + e->size - at;
}

static PyObject *exchanged(PyObject *self, PyObject *args)
{
    Py_buffer text, cuts, codes, counts, offsets, data;
    Exchange e;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*ny*y*y*y*y*", &text, &e.size, &cuts, &codes, &counts, &offsets, &data))
        return NULL;
    e.text = text.buf, e.data = data.buf;
    e.cuts = cuts.buf, e.codes = codes.buf, e.counts = counts.buf, e.offsets = offsets.buf;
    e.edits = counts.len / 8, e.known = offsets.len / 4 - 1, e.written = 0;
    int fits = 1;
    for (Py_ssize_t k = 0; k < e.edits; k++) {
        fits = fits && 0 <= e.counts[k] && e.counts[k] <= codes.len;
        e.written += fits ? (Py_ssize_t)e.counts[k] : 0;
    }
    e.rows = e.edits ? cuts.len / (16 * e.edits) : 0;
    fits = fits && 0 <= e.size && e.size <= text.len && e.known >= 0 && codes.len == 8 * e.rows * e.written;
    for (Py_ssize_t k = 0; k < e.known && fits; k++)
        fits = 0 <= e.offsets[k] && e.offsets[k] <= e.offsets[k + 1] && e.offsets[k + 1] <= data.len;
    Py_ssize_t total = fits ? write_exchange(&e, NULL) : -1;
    if (total < 0)
        PyErr_SetString(PyExc_IndexError, "cuts must ascend within the text, and codes be those of texts");
    else if ((result = PyBytes_FromStringAndSize(NULL, total)))
        write_exchange(&e, (unsigned char *)PyBytes_AS_STRING(result));
    PyBuffer_Release(&text);
    PyBuffer_Release(&cuts);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&counts);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef METHODS[] = {
    {"split", split, METH_VARARGS,
     "split(text, delimiter, quote, ends, last, starts): cells, rows, bytes and lines of the rows, and where text "
     "follows a closing quote or -1; fills where cells end, the last cell of rows, and where these start. quote is a "
     "byte or -1."},
    {"texts", texts, METH_VARARGS,
     "texts(text, starts, ends, quote): offsets and bytes of cells without the quotes around them."},
    {"numbered", numbered, METH_VARARGS,
     "numbered(offsets, data): a code for every text, and for every code the first row that has it."},
    {"exchanged", exchanged, METH_VARARGS,
     "exchanged(text, size, cuts, codes, counts, offsets, data): the text where, in every row, the k-th cut gives way "
     "to counts[k] of the texts."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_csv", "Cells of CSV text.", -1, METHODS};

PyMODINIT_FUNC PyInit__csv(void) { return PyModule_Create(&MODULE); }
