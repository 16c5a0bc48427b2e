/* The ends of the cells and rows of a CSV text, for `csv_split` of `_csv.h`.
 *
 * For example, the text "a,b\n1,2\n" with the delimiter "," has cells that end at the bytes 1, 3,
 * 5 and 7, two rows whose last cells are 1 and 3, and row starts 0 and 4.
 *
 * The text is searched for delimiters and line breaks 64 bytes at a time: one bit for each byte
 * tells whether it is one (`hits_in_window`), and the lowest bit set is the next hit (`next_hit`).
 * So a long cell costs some instructions for 64 bytes. A cell that opens with a quote is skipped
 * by a second search, for quotes (`skip_quoted`), as delimiters and line breaks within it count
 * for nothing. A last row without a line break is left for the next block of text.
 */

#include "_csv.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LF 10
#define CR 13
/* Bytes that are searched at a time: one bit of a word for each. */
#define WINDOW 64

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

/* The search of a text for a byte and for line breaks, and its hits in the window from `base`. */
typedef struct {
    const unsigned char *p;
    ptrdiff_t n;
    ptrdiff_t base;
    uint64_t hits; /* a bit for each byte of the window */
    unsigned char sought;
} Search;

/* Whether a byte ends the search. */
static int is_hit(const Search *s, unsigned char c)
{
    return c == s->sought || c == LF || c == CR;
}

#if defined(__SSE2__)

/* Bits of the hits among the first bytes from `base` on, sixteen at a time. `*done` receives the
 * number of bytes that were searched. */
static uint64_t hits_at_once(const Search *s, ptrdiff_t base, ptrdiff_t *done)
{
    const __m128i sought = _mm_set1_epi8((char)s->sought);
    const __m128i lf = _mm_set1_epi8(LF);
    const __m128i cr = _mm_set1_epi8(CR);
    uint64_t bits = 0;
    *done = 0;
    if (s->n - base < WINDOW)
        return 0;
    for (; *done < WINDOW; *done += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(s->p + base + *done));
        __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, lf), _mm_cmpeq_epi8(bytes, cr));
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, sought), ends);
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(hit) << *done;
    }
    return bits;
}

#else

/* The top bit of every byte that is zero. */
static uint64_t zeros(uint64_t v)
{
    return ~(((v & 0x7f * EACH) + 0x7f * EACH) | v) & 0x80 * EACH;
}

/* The same as with vectors, eight bytes at a time: their top bits are gathered by a product. */
static uint64_t hits_at_once(const Search *s, ptrdiff_t base, ptrdiff_t *done)
{
    uint64_t bits = 0;
    for (*done = 0; *done < WINDOW && *done + 8 <= s->n - base; *done += 8) {
        uint64_t v = read64(s->p + base + *done);
        uint64_t hit = zeros(v ^ s->sought * EACH) | zeros(v ^ LF * EACH) | zeros(v ^ CR * EACH);
        bits |= ((hit >> 7) * 0x0102040810204080ULL >> 56) << *done;
    }
    return bits;
}

#endif

/* A bit for every hit in the window from `base` on, up to the end of the text. */
static uint64_t hits_in_window(const Search *s, ptrdiff_t base)
{
    ptrdiff_t k;
    uint64_t bits = hits_at_once(s, base, &k);
    for (; k < s->n - base && k < WINDOW; k++)
        bits |= (uint64_t)is_hit(s, s->p[base + k]) << k;
    return bits;
}

/* The next hit from i on, or n. */
static ptrdiff_t next_hit(Search *s, ptrdiff_t i)
{
    while (i < s->n) {
        if (i - s->base >= WINDOW || i < s->base) {
            s->base = i;
            s->hits = hits_in_window(s, i);
        }
        uint64_t bits = s->hits >> (i - s->base);
        if (bits)
            return i + lowest(bits);
        i = s->base + WINDOW;
    }
    return s->n;
}

/* The byte after the closing quote of the cell that opens at i, or n if it does not close. A
 * doubled quote is one within the cell. Counts the line breaks within the quotes, CR LF as one. */
static ptrdiff_t skip_quoted(Search *quoted, ptrdiff_t i, ptrdiff_t *breaks)
{
    const unsigned char *p = quoted->p;
    for (;;) {
        i = next_hit(quoted, i + 1);
        if (i == quoted->n)
            return i;
        if (p[i] != quoted->sought) {
            *breaks += p[i] == CR || p[i - 1] != CR;
            continue;
        }
        i++;
        if (i == quoted->n || p[i] != quoted->sought)
            return i;
    }
}

/* Cell by cell. Only rows with a line break at their end are counted. */
CsvRows csv_split(const unsigned char *p, ptrdiff_t n, int delimiter, int quote, int64_t *ends,
                  int64_t *last, int64_t *starts)
{
    CsvRows rows = {.misquoted = -1};
    Search cell = {.p = p, .n = n, .base = -WINDOW, .sought = (unsigned char)delimiter};
    Search quoted = {.p = p, .n = n, .base = -WINDOW, .sought = (unsigned char)quote};
    ptrdiff_t i = 0;
    ptrdiff_t cells = 0;
    ptrdiff_t breaks = 0; /* line breaks within the quotes of this row */
    while (i < n) {
        if (p[i] == quote) {
            i = skip_quoted(&quoted, i, &breaks);
            if (i < n && p[i] != delimiter && p[i] != LF && p[i] != CR) {
                rows.misquoted = i;
                return rows;
            }
        } else {
            i = next_hit(&cell, i);
        }
        if (i == n)
            return rows; /* the last row is not complete */
        ends[cells++] = i;
        if (p[i] == delimiter) {
            i++;
            continue;
        }
        i += p[i] == CR && i + 1 < n && p[i + 1] == LF ? 2 : 1;
        last[rows.rows] = cells - 1;
        starts[rows.rows] = rows.bytes;
        rows.rows++;
        rows.bytes = i;
        rows.cells = cells;
        rows.lines += breaks + 1;
        breaks = 0;
    }
    return rows;
}
