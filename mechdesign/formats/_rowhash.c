/* Keyed hashes of rows, by which data sets are known again: a row is the sum of hashes of its cells, mixed by SipHash.
 *
 * A sum does not depend on the order of the columns. A cell counts by what it says, so that a table has the same
 * hashes as CSV and as Parquet: a decimal number counts as the double nearest to it ("1.50" as 1.5, "007" as 7; whole
 * numbers of more than 15 digits as their digits), truth values without regard to case, and an empty cell not at all.
 * The hash of a cell is two multiplications (enough that no two cells meet by accident); SipHash-1-3 of their sum, with
 * a key of its own, is what keeps a reader who lacks the key from testing guesses.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdlib.h>

#include "_blake.h"
#include "_bytes.h"

#define PRIME_1 0xa0761d6478bd642fULL
#define PRIME_2 0xe7037ed1a0b428dbULL
#define PRIME_3 0x8ebc6af09c88c6e3ULL
#define NUMBER 0x589965cc75374cc3ULL

/* Digits that a double always holds, powers of ten that are doubles, and the longest number that is looked at. */
#define EXACT_DIGITS 15
#define EXACT_POWER 22
#define LONGEST 64

static uint64_t folded(uint64_t a, uint64_t b)
{
#if defined(_MSC_VER) && !defined(__clang__)
    uint64_t high, low = _umul128(a, b, &high);
    return low ^ high;
#else
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

static uint64_t hash_bytes(uint64_t seed, const unsigned char *p, Py_ssize_t n)
{
    uint64_t h = seed ^ folded((uint64_t)n ^ PRIME_1, PRIME_2);
    while (n > 16) {
        h = folded(read64(p) ^ PRIME_3 ^ h, read64(p + 8) ^ PRIME_1 ^ (h >> 32 | h << 32));
        p += 16;
        n -= 16;
    }
    uint64_t a = 0, b = 0; /* all of the last 1 to 16 bytes, some of them twice */
    if (n >= 8) {
        a = read64(p);
        b = read64(p + n - 8);
    } else if (n >= 4) {
        a = read32(p);
        b = read32(p + n - 4);
    } else if (n > 0) {
        a = (uint64_t)p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    }
    h = folded(a ^ PRIME_1 ^ h, b ^ PRIME_2 ^ seed);
    return folded(h ^ PRIME_3, seed ^ PRIME_1);
}

static uint64_t hash_double(uint64_t seed, double value)
{
    uint64_t bits;
    value += 0.0; /* -0.0 is 0.0 */
    memcpy(&bits, &value, 8);
    return folded(folded(bits ^ PRIME_3 ^ seed, NUMBER), seed ^ PRIME_2);
}

static const double TENS[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Whether the first n (1 to 8) of eight bytes are digits, and their value: all at once, most cells are such. */
static int few_digits(uint64_t v, Py_ssize_t n, double *value)
{
    v <<= 64 - 8 * n;
    v |= n < 8 ? '0' * EACH >> 8 * n : 0;
    if ((v & 0xf0 * EACH) != '0' * EACH || ((v + 6 * EACH) & 0xf0 * EACH) != '0' * EACH)
        return 0;
    v = (v & 0x0f * EACH) * (10 * 256 + 1) >> 8; /* pairs of digits, then fours, then all */
    v = (v & 0x00ff00ff00ff00ffULL) * (100 * 65536 + 1) >> 16;
    *value = (double)((v & 0x0000ffff0000ffffULL) * (10000 * 4294967296ULL + 1) >> 32);
    return 1;
}

/* Whether the text is a decimal number that counts as a double. */
static int number_of(const unsigned char *p, Py_ssize_t n, double *value)
{
    Py_ssize_t i = 0;
    uint64_t mantissa = 0;
    int digits = 0, significant = 0, power = 0, plain = 1, negative = 0;
    if (n == 0 || n >= LONGEST || p[0] > '9')
        return 0;
    if (n <= EXACT_DIGITS) { /* most are short and whole */
        unsigned digit;
        for (; i < n && (digit = (unsigned)p[i] - '0') <= 9; i++)
            mantissa = 10 * mantissa + digit;
        if (i == n) {
            *value = (double)mantissa;
            return 1;
        }
        i = 0;
        mantissa = 0;
    }
    if (p[0] == '-' || p[0] == '+')
        negative = p[i++] == '-';
    for (int fraction = 0; i < n; i++) {
        unsigned char c = p[i];
        if (c >= '0' && c <= '9') {
            digits++;
            if (significant || c != '0')
                significant++;
            if (significant <= EXACT_DIGITS)
                mantissa = 10 * mantissa + (uint64_t)(c - '0');
            power -= fraction;
        } else if (c == '.' && !fraction) {
            fraction = 1;
            plain = 0;
        } else {
            break;
        }
    }
    if (!digits)
        return 0;
    if (i < n) {
        int sign = 1, exponent = 0, any = 0;
        if (p[i] != 'e' && p[i] != 'E')
            return 0;
        plain = 0;
        i++;
        if (i < n && (p[i] == '-' || p[i] == '+'))
            sign = p[i++] == '-' ? -1 : 1;
        for (; i < n && p[i] >= '0' && p[i] <= '9' && exponent < 10000; i++, any = 1)
            exponent = 10 * exponent + (p[i] - '0');
        if (i < n || !any)
            return 0;
        power += sign * exponent;
    }
    if (significant > EXACT_DIGITS && plain)
        return 0;
    if (significant <= EXACT_DIGITS && power >= -EXACT_POWER && power <= EXACT_POWER) {
        double exact = power < 0 ? (double)mantissa / TENS[-power] : (double)mantissa * TENS[power];
        *value = negative ? -exact : exact;
        return 1;
    }
    char text[LONGEST];
    memcpy(text, p, (size_t)n);
    text[n] = 0;
    PyGILState_STATE held = PyGILState_Ensure(); /* the hashing threads let go of it */
    *value = PyOS_string_to_double(text, NULL, NULL);
    int failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    PyGILState_Release(held);
    return !failed && isfinite(*value);
}

static int is_word(const unsigned char *p, Py_ssize_t n, const char *word)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if ((p[i] | 0x20) != (unsigned char)word[i])
            return 0;
    return 1;
}

/* Of a cell of n bytes; `room` bytes can be read. */
static uint64_t hash_cell(uint64_t seed, const unsigned char *p, Py_ssize_t n, Py_ssize_t room)
{
    double value;
    if (n == 0)
        return 0;
    if ((n <= 8 && room >= 8 && few_digits(read64(p), n, &value)) || number_of(p, n, &value))
        return hash_double(seed, value);
    if (n == 4 && is_word(p, n, "true"))
        return hash_bytes(seed, (const unsigned char *)"true", 4);
    if (n == 5 && is_word(p, n, "false"))
        return hash_bytes(seed, (const unsigned char *)"false", 5);
    return hash_bytes(seed, p, n);
}

static int same_length(Py_ssize_t bytes, Py_ssize_t rows, Py_ssize_t each)
{
    if (bytes == rows * each)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the arrays have different lengths");
    return 0;
}

static PyObject *add_rows(PyObject *self, PyObject *args)
{
    Py_buffer sums, text, starts, ends;
    unsigned long long seed;
    Py_ssize_t width;
    int quote;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ky*y*y*ni", &sums, &seed, &text, &starts, &ends, &width, &quote))
        return NULL;
    uint64_t *sum = sums.buf;
    const int64_t *first = starts.buf, *end = ends.buf;
    const unsigned char *bytes = text.buf;
    Py_ssize_t rows = sums.len / 8;
    unsigned char *scratch = NULL;
    int outside = 0, memory = 1;
    if (!same_length(starts.len, rows, 8) || !same_length(ends.len, rows * width, 8))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < rows && memory && !outside; i++) {
        int64_t from = first[i];
        for (Py_ssize_t k = 0; k < width; k++) {
            int64_t to = end[i * width + k], next = to + 1;
            if (from < 0 || to < from || to > text.len) {
                outside = 1;
                break;
            }
            if (quote >= 0 && to - from >= 2 && bytes[from] == quote) {
                from++, to--;
                if (memchr(bytes + from, quote, (size_t)(to - from))) { /* two quotes stand for one */
                    Py_ssize_t size = 0;
                    unsigned char *larger = realloc(scratch, (size_t)(to - from));
                    if (!larger) {
                        memory = 0;
                        break;
                    }
                    scratch = larger;
                    for (int64_t at = from; at < to; at++) {
                        scratch[size++] = bytes[at];
                        at += bytes[at] == quote;
                    }
                    sum[i] += hash_cell(seed, scratch, size, size);
                    from = next;
                    continue;
                }
            }
            sum[i] += hash_cell(seed, bytes + from, to - from, text.len - from);
            from = next;
        }
    }
    Py_END_ALLOW_THREADS
    if (!memory)
        PyErr_NoMemory();
    else if (outside)
        PyErr_SetString(PyExc_ValueError, "a cell lies outside of the text");
    else
        result = Py_NewRef(Py_None);
done:
    free(scratch);
    PyBuffer_Release(&sums);
    PyBuffer_Release(&text);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&ends);
    return result;
}

static PyObject *add_texts(PyObject *self, PyObject *args)
{
    Py_buffer sums, text, offsets;
    unsigned long long seed;
    int plain;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ky*y*p", &sums, &seed, &text, &offsets, &plain))
        return NULL;
    uint64_t *sum = sums.buf;
    const int64_t *at = offsets.buf;
    const unsigned char *bytes = text.buf;
    Py_ssize_t rows = sums.len / 8;
    if (!same_length(offsets.len, rows + 1, 8))
        goto done;
    int outside = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < rows && !outside; i++) {
        Py_ssize_t size = at[i + 1] - at[i];
        outside = at[i] < 0 || size < 0 || at[i + 1] > text.len;
        if (!outside)
            sum[i] +=
                plain ? hash_bytes(seed, bytes + at[i], size) : hash_cell(seed, bytes + at[i], size, text.len - at[i]);
    }
    Py_END_ALLOW_THREADS
    if (outside)
        PyErr_SetString(PyExc_ValueError, "a cell lies outside of the text");
    else
        result = Py_NewRef(Py_None);
done:
    PyBuffer_Release(&sums);
    PyBuffer_Release(&text);
    PyBuffer_Release(&offsets);
    return result;
}

static PyObject *add_doubles(PyObject *self, PyObject *args)
{
    Py_buffer sums, values;
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
    PyBuffer_Release(&sums);
    PyBuffer_Release(&values);
    return result;
}

#define ROTATED(x, b) ((x) << (b) | (x) >> (64 - (b)))
#define ROUND                                                                                                          \
    v0 += v1, v1 = ROTATED(v1, 13) ^ v0, v0 = ROTATED(v0, 32);                                                         \
    v2 += v3, v3 = ROTATED(v3, 16) ^ v2;                                                                               \
    v0 += v3, v3 = ROTATED(v3, 21) ^ v0;                                                                               \
    v2 += v1, v1 = ROTATED(v1, 17) ^ v2, v2 = ROTATED(v2, 32);

static PyObject *mix(PyObject *self, PyObject *args)
{
    Py_buffer words;
    unsigned long long k0, k1;
    if (!PyArg_ParseTuple(args, "w*KK", &words, &k0, &k1))
        return NULL;
    uint64_t *word = words.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < words.len / 8; i++) {
        uint64_t v0 = k0 ^ 0x736f6d6570736575ULL, v1 = k1 ^ 0x646f72616e646f6dULL;
        uint64_t v2 = k0 ^ 0x6c7967656e657261ULL, v3 = k1 ^ 0x7465646279746573ULL;
        uint64_t last = 8ULL << 56;
        v3 ^= word[i];
        ROUND v0 ^= word[i];
        v3 ^= last;
        ROUND v0 ^= last;
        v2 ^= 0xff;
        ROUND ROUND ROUND word[i] = v0 ^ v1 ^ v2 ^ v3;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&words);
    Py_RETURN_NONE;
}

static PyObject *chain(PyObject *self, PyObject *args)
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

typedef struct {
    Py_buffer ends, text;
} Column;

static PyObject *words(PyObject *self, PyObject *args)
{
    Py_buffer out, key, person;
    PyObject *columns, *result = NULL;
    Column *column = NULL;
    BlakeTexts *texts = NULL;
    Py_ssize_t open = 0;
    int lanes = BLAKE_LANES;
    if (!PyArg_ParseTuple(args, "w*y*y*O!|i", &out, &key, &person, &PyList_Type, &columns, &lanes))
        return NULL;
    Py_ssize_t rows = out.len / 8, count = PyList_GET_SIZE(columns);
    if (count < 1 || !same_length(key.len, 1, BLAKE_KEY) || !same_length(person.len, 1, BLAKE_PERSON))
        goto done;
    column = PyMem_Calloc((size_t)count, sizeof *column);
    texts = PyMem_Calloc((size_t)count, sizeof *texts);
    if (!column || !texts) {
        PyErr_NoMemory();
        goto done;
    }
    for (; open < count; open++) {
        Column *one = column + open;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(columns, open), "y*y*", &one->ends, &one->text))
            goto done;
        const int64_t *end = one->ends.buf;
        int fits = same_length(one->ends.len, rows + 1, 8);
        for (Py_ssize_t i = 0; fits && i < rows; i++)
            if (end[i] < 0 || end[i + 1] < end[i] || end[i + 1] > one->text.len) {
                PyErr_SetString(PyExc_ValueError, "a cell lies outside of the text");
                fits = 0;
            }
        if (!fits) {
            open++;
            goto done;
        }
        texts[open] = (BlakeTexts){end, one->text.buf};
    }
    Py_BEGIN_ALLOW_THREADS
    blake_words(out.buf, (size_t)rows, key.buf, person.buf, texts, (size_t)count, lanes);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    while (open--) {
        PyBuffer_Release(&column[open].ends);
        PyBuffer_Release(&column[open].text);
    }
    PyMem_Free(column);
    PyMem_Free(texts);
    PyBuffer_Release(&out);
    PyBuffer_Release(&key);
    PyBuffer_Release(&person);
    return result;
}

static uint64_t slot_of(uint64_t hash, uint64_t slots)
{
#if defined(_MSC_VER) && !defined(__clang__)
    return __umulh(hash, slots);
#else
    return (uint64_t)((__uint128_t)hash * slots >> 64);
#endif
}

/* How far ahead of its use a slot is asked for, and the most of five slots that are filled. */
#define AHEAD 12
#define FILLED 4

/* A table of hashes in open addressing, each near its place in their order; 0 marks an empty slot. */
static PyObject *look(PyObject *self, PyObject *args)
{
    Py_buffer keys, values, hashes, codes, news, founds;
    Py_ssize_t used, room, i;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*w*nny*y*w*w*n", &keys, &values, &used, &room, &hashes, &codes, &news, &founds, &i))
        return NULL;
    uint64_t *key = keys.buf, slots = (uint64_t)keys.len / 8;
    int32_t *value = values.buf;
    const uint64_t *hash = hashes.buf;
    const int64_t *code = codes.buf;
    unsigned char *fresh = news.buf;
    int64_t *found = founds.buf;
    Py_ssize_t count = hashes.len / 8;
    if (!same_length(values.len, (Py_ssize_t)slots, 4) || !same_length(codes.len, count, 8) ||
        !same_length(news.len, count, 1) || !same_length(founds.len, count, 8))
        goto done;
    if (used < 0 || i < 0 || (uint64_t)used >= slots) {
        PyErr_SetString(PyExc_ValueError, "the table is full");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (; i < count; i++) {
#if defined(__GNUC__)
        if (i + AHEAD < count)
        {
            uint64_t next = slot_of(hash[i + AHEAD], slots);
            __builtin_prefetch(key + next);
            __builtin_prefetch(value + next, 1);
        }
#endif
        uint64_t h = hash[i] ? hash[i] : UINT64_MAX, at = slot_of(h, slots);
        while (key[at] && key[at] != h)
            at = at + 1 == slots ? 0 : at + 1;
        fresh[i] = !key[at];
        found[i] = key[at] ? value[at] : code[i];
        if (key[at] || room < 0)
            continue;
        if (used >= room || code[i] != (int32_t)code[i]) {
            fresh[i] = 2;
            continue;
        }
        if (((uint64_t)used + 1) * 5 > slots * FILLED) /* some stay empty, where a search ends */
            break;
        key[at] = h;
        value[at] = (int32_t)code[i];
        used++;
    }
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("(nn)", i, used);
done:
    PyBuffer_Release(&keys);
    PyBuffer_Release(&values);
    PyBuffer_Release(&hashes);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&news);
    PyBuffer_Release(&founds);
    return result;
}

static PyMethodDef METHODS[] = {
    {"add_rows", add_rows, METH_VARARGS,
     "add_rows(sums, seed, text, starts, ends, width, quote): the cells of CSV rows; quote is a byte, or -1."},
    {"add_texts", add_texts, METH_VARARGS,
     "add_texts(sums, seed, text, offsets, plain): one text each; plain ones count byte for byte."},
    {"add_doubles", add_doubles, METH_VARARGS, "add_doubles(sums, seed, values): one number each; NaN is empty."},
    {"mix", mix, METH_VARARGS, "mix(words, k0, k1): SipHash-1-3 of every word of 8 bytes, in its place."},
    {"chain", chain, METH_VARARGS,
     "chain(words, a, b): a and b after words of 8 bytes, which are random, in their order."},
    {"words", words, METH_VARARGS,
     "words(out, key, person, columns, lanes=8): BLAKE2b of each record, with key and person, as a word; columns are "
     "pairs of offsets and text, and of several the length stands before each text; at most so many at once."},
    {"look", look, METH_VARARGS,
     "look(keys, values, used, room, hashes, codes, new, found, start): find hashes in a table, or keep them with "
     "their codes while there is room (none is kept if room is below 0, and 2 marks what is not). Ends where the table "
     "has to grow; where that is, and how many are kept."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_rowhash", "Keyed hashes of rows.", -1, METHODS};

PyMODINIT_FUNC PyInit__rowhash(void) { return PyModule_Create(&MODULE); }
