/* The hash of one cell by its value (`_cellhash.h`): a number as the double nearest to it, a truth
 * value in lower case, any other text by its bytes.
 *
 * `hash_cell` tries the cheap cases first: (1) up to eight digits, read in one word
 * (`few_digits`); (2) any decimal number (`read_number`); (3) true and false in any case; (4) text
 * (`hash_bytes`). So "7", "007" and "7.0" have the same hash, and "1234567890123456" is text.
 *
 * Decimals. With at most 15 digits the mantissa is an exact double, and so is a power of ten up to
 * 10^22. One multiplication or division then rounds once, to the nearest double: "1.25" is 125 /
 * 10^2. Other numbers go to Python's own conversion (`convert`).
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>

#include "_cellhash.h"

/* Most decimal digits that every double keeps. */
#define EXACT_DIGITS 15
/* Powers of ten up to this one are doubles: with at most EXACT_DIGITS digits, one multiplication or
 * division then gives the nearest double. */
#define EXACT_POWER 22
/* Texts of so many bytes or more are not read as numbers. */
#define LONGEST 64
/* Exponents beyond this are not read any further: such numbers are zero or infinite anyway. */
#define LARGEST_EXPONENT 10000

static const double TENS[EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* Sixteen bytes a round; the last 1 to 16 in two words, some of them twice. */
uint64_t hash_bytes(uint64_t seed, const unsigned char *p, ptrdiff_t n)
{
    uint64_t hash = seed ^ folded((uint64_t)n ^ PRIME_1, PRIME_2);
    while (n > 16) {
        uint64_t turned = hash >> 32 | hash << 32;
        hash = folded(read64(p) ^ PRIME_3 ^ hash, read64(p + 8) ^ PRIME_1 ^ turned);
        p += 16;
        n -= 16;
    }
    uint64_t first = 0;
    uint64_t last = 0;
    if (n >= 8) {
        first = read64(p);
        last = read64(p + n - 8);
    } else if (n >= 4) {
        first = read32(p);
        last = read32(p + n - 4);
    } else if (n > 0) {
        first = (uint64_t)p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    }
    hash = folded(first ^ PRIME_1 ^ hash, last ^ PRIME_2 ^ seed);
    return folded(hash ^ PRIME_3, seed ^ PRIME_1);
}

/* ---------------------------------------------------------------- numbers */

/* Whether the first n (1 to 8) of eight bytes are digits, and their value. All bytes are tested
 * together, because most cells are such numbers. The digits are shifted to the top and filled up
 * with zeros from below; then pairs of digits, fours, and all eight are joined, each step one
 * multiplication. */
static int few_digits(uint64_t word, ptrdiff_t n, double *value)
{
    const uint64_t high = 0xf0 * EACH; /* the high half of every byte: 3 for a digit */
    const uint64_t zeros = '0' * EACH;
    word <<= 64 - 8 * n;
    if (n < 8)
        word |= zeros >> 8 * n;
    if ((word & high) != zeros ||
        ((word + 6 * EACH) & high) != zeros) /* and still 3 if 6 is added, unlike ':' to '?' */
        return 0;
    word = (word & 0x0f * EACH) * (10 * 256 + 1) >> 8;
    word = (word & 0x00ff00ff00ff00ffULL) * (100 * 65536 + 1) >> 16;
    *value = (double)((word & 0x0000ffff0000ffffULL) * (10000 * 4294967296ULL + 1) >> 32);
    return 1;
}

/* Whether at most EXACT_DIGITS bytes are all digits, and their value. */
static int short_whole(const unsigned char *p, ptrdiff_t n, double *value)
{
    uint64_t mantissa = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        unsigned decimal = (unsigned)p[i] - '0'; /* huge below '0' */
        if (decimal > 9)
            return 0;
        mantissa = 10 * mantissa + decimal;
    }
    *value = (double)mantissa;
    return 1;
}

/* A decimal number as it is written. */
typedef struct {
    uint64_t mantissa; /* the digits, if they are at most EXACT_DIGITS */
    int significant;   /* digits from the first that is not zero */
    int power;         /* of ten by which the digits are multiplied */
    int negative;
    int plain; /* without point and exponent */
} Decimal;

/* Read sign, digits and point. Returns the bytes read, or 0 if there is no digit. */
static ptrdiff_t read_digits(const unsigned char *p, ptrdiff_t n, Decimal *number)
{
    ptrdiff_t i = 0;
    int digits = 0;
    int fraction = 0;
    if (p[0] == '-' || p[0] == '+')
        number->negative = p[i++] == '-';
    for (; i < n; i++) {
        unsigned char c = p[i];
        if (c >= '0' && c <= '9') {
            digits++;
            if (number->significant || c != '0')
                number->significant++;
            if (number->significant <= EXACT_DIGITS)
                number->mantissa = 10 * number->mantissa + (uint64_t)(c - '0');
            number->power -= fraction;
        } else if (c == '.' && !fraction) {
            fraction = 1;
            number->plain = 0;
        } else {
            break;
        }
    }
    return digits ? i : 0;
}

/* Read n bytes as an exponent. Returns 0 if they are something else. */
static int read_exponent(const unsigned char *p, ptrdiff_t n, Decimal *number)
{
    ptrdiff_t i = 1;
    int sign = 1;
    int exponent = 0;
    if (p[0] != 'e' && p[0] != 'E')
        return 0;
    number->plain = 0;
    if (i < n && (p[i] == '-' || p[i] == '+'))
        sign = p[i++] == '-' ? -1 : 1;
    ptrdiff_t first = i;
    for (; i < n && p[i] >= '0' && p[i] <= '9' && exponent < LARGEST_EXPONENT; i++)
        exponent = 10 * exponent + (p[i] - '0');
    number->power += sign * exponent;
    return i == n && i > first;
}

/* The double nearest to a long number, by Python's own conversion. Returns 0 if it is no finite
 * number. */
static int convert(const unsigned char *p, ptrdiff_t n, double *value)
{
    char text[LONGEST];
    memcpy(text, p, (size_t)n);
    text[n] = 0;
    PyGILState_STATE held = PyGILState_Ensure(); /* the hashing threads run without it */
    *value = PyOS_string_to_double(text, NULL, NULL);
    int failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    PyGILState_Release(held);
    return !failed && isfinite(*value);
}

/* Whether the text is a decimal number, and the double nearest to it. A whole number of more than
 * EXACT_DIGITS digits is not one: identifiers of that length must stay distinct. */
static int read_number(const unsigned char *p, ptrdiff_t n, double *value)
{
    if (n == 0 || n >= LONGEST || p[0] > '9')
        return 0;
    /* Most numbers are short and whole. */
    if (n <= EXACT_DIGITS && short_whole(p, n, value))
        return 1;
    Decimal number = {.plain = 1};
    ptrdiff_t end = read_digits(p, n, &number);
    if (end == 0)
        return 0;
    if (end < n && !read_exponent(p + end, n - end, &number))
        return 0;
    if (number.significant > EXACT_DIGITS && number.plain)
        return 0;
    int power = number.power;
    if (number.significant > EXACT_DIGITS || power < -EXACT_POWER || power > EXACT_POWER)
        return convert(p, n, value);
    /* Both factors are exact doubles, so the result is rounded only once. */
    double mantissa = (double)number.mantissa;
    double exact = power < 0 ? mantissa / TENS[-power] : mantissa * TENS[power];
    *value = number.negative ? -exact : exact;
    return 1;
}

/* ---------------------------------------------------------------- cells */

/* Whether n bytes are this lower-case word, in any case. */
static int is_word(const unsigned char *p, ptrdiff_t n, const char *word)
{
    for (ptrdiff_t i = 0; i < n; i++)
        if ((p[i] | 0x20) != (unsigned char)word[i])
            return 0;
    return 1;
}

/* Numbers first, because most cells are numbers; then truth values, then texts. */
uint64_t hash_cell(uint64_t seed, const unsigned char *p, ptrdiff_t n, ptrdiff_t room)
{
    double value;
    if (n == 0)
        return 0;
    if (n <= 8 && room >= 8 && few_digits(read64(p), n, &value))
        return hash_double(seed, value);
    if (read_number(p, n, &value))
        return hash_double(seed, value);
    if (n == 4 && is_word(p, n, "true"))
        return hash_bytes(seed, (const unsigned char *)"true", 4);
    if (n == 5 && is_word(p, n, "false"))
        return hash_bytes(seed, (const unsigned char *)"false", 5);
    return hash_bytes(seed, p, n);
}
