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

/* A hash of the n bytes of a text. It is stored nowhere, so it may change. */
static uint64_t hash_text(const unsigned char *p, ptrdiff_t n)
{
    uint64_t hash = (uint64_t)n * EACH;
    uint64_t rest = 0;
    for (; n > 8; n -= 8) {
        hash = (hash ^ read64(p)) * GOLDEN;
        hash ^= hash >> 29;
        p += 8;
    }
    if (n == 8)
        rest = read64(p);
    else if (n >= 4) /* its first four bytes and its last four, which may overlap */
        rest = read32(p) << 32 | read32(p + n - 4);
    else if (n > 0) /* one to three bytes: the first, the middle and the last */
        rest = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
    hash = (hash ^ rest) * GOLDEN;
    hash = (hash ^ hash >> 32) * STAFFORD;
    return hash ^ hash >> 32;
}

/* The texts of a column, and the table of those that were numbered. */
typedef struct {
    const int32_t *offsets;
    const unsigned char *data;
    int32_t *firsts; /* first row of each code */
    uint64_t *slots; /* open addressing; 0 is free */
    uint64_t mask;   /* number of slots, a power of two, less one */
    ptrdiff_t count; /* number of codes */
} Numbering;

/* Bytes of the text of a row. */
static ptrdiff_t length_of(const Numbering *all, ptrdiff_t row)
{
    return all->offsets[row + 1] - all->offsets[row];
}

/* Hash of the text of a row. */
static uint64_t hash_of(const Numbering *all, ptrdiff_t row)
{
    return hash_text(all->data + all->offsets[row], length_of(all, row));
}

/* Whether two rows have the same text. */
static int is_same(const Numbering *all, ptrdiff_t row, ptrdiff_t other)
{
    ptrdiff_t length = length_of(all, row);
    if (length != length_of(all, other))
        return 0;
    return !memcmp(all->data + all->offsets[row], all->data + all->offsets[other], (size_t)length);
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
ptrdiff_t csv_number(const int32_t *offsets, const unsigned char *data, ptrdiff_t rows,
                     int32_t *codes, int32_t *firsts)
{
    Numbering all = {.offsets = offsets, .data = data, .firsts = firsts};
    int failed = resize(&all, FIRST_SLOTS);
    for (ptrdiff_t i = 0; i < rows && !failed; i++) {
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
