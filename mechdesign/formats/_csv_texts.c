/* The texts of CSV cells, and numbers for the different texts of a column.
 *
 * `csv_unquote` writes the texts one after the other, with Arrow's offsets: the cells a and "b""c"
 * become the bytes ab"c with the offsets 0, 1, 4.
 *
 * `csv_number` numbers texts in the order in which they come: x, y, x have the codes 0, 1, 0, and
 * the first rows 0 and 1. A hash table with open addressing has the texts so far. Each slot holds
 * half of the hash, to tell texts apart without reading them, and the code; the text itself is
 * that of the code's first row.
 */

#include <stdlib.h>

#include "_csv.h"

/* Odd multipliers that spread bits: 2^64 over the golden ratio, and one of David Stafford's. */
#define GOLDEN 0x9e3779b97f4a7c15ULL
#define STAFFORD 0xd6e8feb86659fd93ULL
/* A slot of the table holds the upper half of a text's hash, which tells most different texts apart
 * without a look at them, and one more than its code, so that 0 is a free slot. */
#define MARK 0xffffffff00000000ULL
#define CODE 0xffffffffULL
/* Slots of the first table, and how many times larger the next one is. At most half are filled. */
#define FIRST_SLOTS 256
#define GROWTH 4

/* Write the text of the cell [from, end). Returns the place of the next one. */
static inline unsigned char *unquote(const unsigned char *from, const unsigned char *end, int quote,
                                     unsigned char *to)
{
    if (end - from >= 2 && *from == quote) {
        from++;
        end--;
        const unsigned char *next = memchr(from, quote, (size_t)(end - from));
        while (next) { /* copy up to and with the first of two quotes, and skip the second */
            memcpy(to, from, (size_t)(next + 1 - from));
            to += next + 1 - from;
            from = next + 2 < end ? next + 2 : end;
            next = memchr(from, quote, (size_t)(end - from));
        }
    }
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* A text is never longer than its cell, so `out`, which has room for all cells, is not checked
 * again. */
ptrdiff_t csv_unquote(const unsigned char *text, ptrdiff_t cells, const int64_t *starts,
                      const int64_t *ends, int quote, int32_t *offsets, unsigned char *out)
{
    unsigned char *to = out;
    offsets[0] = 0;
    for (ptrdiff_t i = 0; i < cells; i++) {
        to = unquote(text + starts[i], text + ends[i], quote, to);
        offsets[i + 1] = (int32_t)(to - out);
    }
    return to - out;
}

/* The cells of a column, and the table of those that were numbered. */
typedef struct {
    const CsvCells *cells;
    int32_t *firsts; /* first row of each code */
    uint64_t *slots; /* open addressing; 0 is free */
    uint64_t mask;   /* number of slots, a power of two, less one */
    ptrdiff_t count; /* number of codes */
} Numbering;

/* The last one to eight bytes of a text of n bytes, as a word: those beyond its end are cut off,
 * and not even read at the end of all texts. */
static inline uint64_t last_bytes(const unsigned char *p, ptrdiff_t n, ptrdiff_t room)
{
    uint64_t word = 0;
    if (n == 8)
        return read64(p);
    if (room >= 8)
        return read64(p) & ((1ULL << 8 * n) - 1);
    for (ptrdiff_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

/* Where the cell of a row starts and ends. */
static inline void find_cell(const CsvCells *cells, ptrdiff_t row, const unsigned char **start,
                             const unsigned char **end)
{
    const int64_t *own_end = cells->ends + row * cells->width + cells->place;
    *start = cells->text + (cells->place ? own_end[-1] + 1 : cells->starts[row]);
    *end = cells->text + *own_end;
}

/* Whether the cells of all rows lie within the text. */
int csv_cells_fit(const CsvCells *cells)
{
    for (ptrdiff_t row = 0; row < cells->rows; row++) {
        const int64_t *own_end = cells->ends + row * cells->width + cells->place;
        int64_t start = cells->place ? own_end[-1] : cells->starts[row];
        if (start < 0 || start > *own_end - (cells->place > 0) || *own_end > cells->size)
            return 0;
    }
    return 1;
}

/* A hash of the text of a row. It is stored nowhere, so it may change. */
static inline uint64_t hash_of(const Numbering *all, ptrdiff_t row)
{
    const unsigned char *p, *end;
    find_cell(all->cells, row, &p, &end);
    ptrdiff_t n = end - p;
    uint64_t hash = (uint64_t)n * EACH;
    for (; n > 8; n -= 8) {
        hash = (hash ^ read64(p)) * GOLDEN;
        hash ^= hash >> 29;
        p += 8;
    }
    hash = (hash ^ last_bytes(p, n, all->cells->text + all->cells->size - p)) * GOLDEN;
    hash = (hash ^ hash >> 32) * STAFFORD;
    return hash ^ hash >> 32;
}

/* Whether two rows have the same text. */
static inline int is_same(const Numbering *all, ptrdiff_t row, ptrdiff_t other)
{
    const unsigned char *p, *p_end, *q, *q_end;
    find_cell(all->cells, row, &p, &p_end);
    find_cell(all->cells, other, &q, &q_end);
    ptrdiff_t n = p_end - p;
    if (n != q_end - q)
        return 0;
    for (; n > 8; n -= 8) {
        if (read64(p) != read64(q))
            return 0;
        p += 8;
        q += 8;
    }
    const unsigned char *end = all->cells->text + all->cells->size;
    return last_bytes(p, n, end - p) == last_bytes(q, n, end - q);
}

/* The slot of the text of a row, or the free slot where it belongs. */
static uint64_t find_slot(const Numbering *all, ptrdiff_t row, uint64_t hash)
{
    uint64_t slot = hash & all->mask;
    for (;; slot = (slot + 1) & all->mask) {
        uint64_t entry = all->slots[slot];
        if (entry == 0)
            return slot;
        int same_mark = (entry & MARK) == (hash & MARK);
        if (same_mark && is_same(all, row, all->firsts[(entry & CODE) - 1]))
            return slot;
    }
}

/* An empty table of so many slots, into which the codes are entered again; -1 without memory. */
static int resize(Numbering *all, uint64_t slots)
{
    free(all->slots);
    all->slots = calloc((size_t)slots, sizeof(uint64_t));
    all->mask = slots - 1;
    if (!all->slots)
        return -1;
    for (ptrdiff_t code = 0; code < all->count; code++) {
        uint64_t hash = hash_of(all, all->firsts[code]);
        uint64_t slot = hash & all->mask;
        while (all->slots[slot]) /* all are different */
            slot = (slot + 1) & all->mask;
        all->slots[slot] = (hash & MARK) | (uint64_t)(code + 1);
    }
    return 0;
}

/* The texts so far are in a hash table. Their number is unknown before, so the table grows with
 * them; a column of few texts keeps a small one, which stays in the cache. */
ptrdiff_t csv_number(const CsvCells *cells, int32_t *codes, int32_t *firsts)
{
    Numbering all = {.cells = cells, .firsts = firsts};
    int failed = resize(&all, FIRST_SLOTS);
    for (ptrdiff_t i = 0; i < cells->rows && !failed; i++) {
        uint64_t hash = hash_of(&all, i);
        uint64_t slot = find_slot(&all, i, hash);
        uint64_t entry = all.slots[slot];
        if (entry) {
            codes[i] = (int32_t)((entry & CODE) - 1);
            continue;
        }
        firsts[all.count] = (int32_t)i;
        codes[i] = (int32_t)all.count;
        all.count++;
        all.slots[slot] = (hash & MARK) | (uint64_t)all.count;
        if (2 * (uint64_t)all.count > all.mask)
            failed = resize(&all, GROWTH * (all.mask + 1));
    }
    free(all.slots);
    return failed ? -1 : all.count;
}
