/* BLAKE2b of many short messages: as many at once as the vectors of the processor hold, others one by one. */
#include "_blake.h"

#include <string.h>

#include "_bytes.h"

#define BLOCK 128
#define WORDS (BLOCK / 8)
#define ROUNDS 12

/* Vectors are chosen while the program runs; elsewhere there is the plain code alone. */
#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#define VECTORS 1
#else
#define VECTORS 0
#endif

typedef struct {
    uint64_t h[8], bytes;
    unsigned char block[BLOCK];
    size_t filled;
} Blake;

static const uint64_t START[8] = {0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL,
                                  0xa54ff53a5f1d36f1ULL, 0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL,
                                  0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};

static const unsigned char ORDER[10][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

#define TURNED(x, b) ((x) >> (b) | (x) << (64 - (b)))
#define G(i, a, b, c, d)                                                                                               \
    a += b + m[s[2 * i]], d = TURNED(d ^ a, 32), c += d, b = TURNED(b ^ c, 24);                                        \
    a += b + m[s[2 * i + 1]], d = TURNED(d ^ a, 16), c += d, b = TURNED(b ^ c, 63);

/* One round on v, be its words numbers or vectors. */
#define MIXED(round)                                                                                                   \
    {                                                                                                                  \
        const unsigned char *s = ORDER[(round) % 10];                                                                  \
        G(0, v[0], v[4], v[8], v[12]) G(1, v[1], v[5], v[9], v[13])                                                    \
        G(2, v[2], v[6], v[10], v[14]) G(3, v[3], v[7], v[11], v[15])                                                  \
        G(4, v[0], v[5], v[10], v[15]) G(5, v[1], v[6], v[11], v[12])                                                  \
        G(6, v[2], v[7], v[8], v[13]) G(7, v[3], v[4], v[9], v[14])                                                    \
    }

/* All rounds in a row, so that the order of the words is known to the compiler. */
#define ALL_MIXED                                                                                                      \
    MIXED(0) MIXED(1) MIXED(2) MIXED(3) MIXED(4) MIXED(5) MIXED(6) MIXED(7) MIXED(8) MIXED(9) MIXED(10) MIXED(11)

static void compress(Blake *state, int last)
{
    uint64_t v[16], m[WORDS];
    for (int i = 0; i < 8; i++)
        v[i] = state->h[i], v[8 + i] = START[i];
    for (int i = 0; i < WORDS; i++)
        m[i] = read64(state->block + 8 * i);
    v[12] ^= state->bytes;
    if (last)
        v[14] = ~v[14];
    ALL_MIXED
    for (int i = 0; i < 8; i++)
        state->h[i] ^= v[i] ^ v[8 + i];
}

static void add(Blake *state, const unsigned char *p, size_t n)
{
    while (n) {
        if (state->filled == BLOCK) { /* only now is it known that more comes */
            compress(state, 0);
            state->filled = 0;
        }
        size_t part = n < BLOCK - state->filled ? n : BLOCK - state->filled;
        memcpy(state->block + state->filled, p, part);
        state->filled += part, state->bytes += part, p += part, n -= part;
    }
}

static uint64_t ended(Blake *state)
{
    memset(state->block + state->filled, 0, BLOCK - state->filled);
    compress(state, 1);
    return state->h[0];
}

/* The length of a text, the highest byte first, so that no two records of several texts read alike. */
static void put_length(unsigned char *p, uint64_t size)
{
    for (int b = 0; b < 8; b++)
        p[b] = (unsigned char)(size >> (56 - 8 * b));
}

/* Some messages of one block each, which comes last: words that lie side by side, and bytes so far. */
typedef struct {
    uint64_t m[WORDS * BLAKE_LANES], bytes[BLAKE_LANES];
    uint64_t *word[BLAKE_LANES];
    size_t used[BLAKE_LANES];
    int lanes, filled;
} Lanes;

#if VECTORS

#define LAST_BLOCKS(name, count, isa)                                                                                  \
    typedef uint64_t name##_vector __attribute__((vector_size(8 * count), aligned(8), may_alias));                     \
    __attribute__((target(isa))) static void name(const uint64_t h[8], Lanes *lanes)                                   \
    {                                                                                                                  \
        const name##_vector *m = (const name##_vector *)lanes->m, none = {0};                                          \
        name##_vector v[16];                                                                                           \
        for (int i = 0; i < 8; i++)                                                                                    \
            v[i] = none + h[i], v[8 + i] = none + START[i];                                                            \
        v[12] ^= *(const name##_vector *)lanes->bytes;                                                                 \
        v[14] = ~v[14];                                                                                                \
        ALL_MIXED                                                                                                      \
        v[0] ^= v[8] ^ h[0];                                                                                           \
        for (int i = 0; i < lanes->filled; i++)                                                                        \
            *lanes->word[i] = v[0][i];                                                                                 \
        lanes->filled = 0;                                                                                             \
    }

LAST_BLOCKS(last_4, 4, "avx2")
LAST_BLOCKS(last_8, 8, "avx512f")

static int lanes_for(int most)
{
    if (most >= 8 && __builtin_cpu_supports("avx512f"))
        return 8;
    return most >= 4 && __builtin_cpu_supports("avx2") ? 4 : 1;
}

static void last_blocks(const uint64_t h[8], Lanes *lanes)
{
    lanes->lanes == 8 ? last_8(h, lanes) : last_4(h, lanes);
}

#else

static int lanes_for(int most)
{
    (void)most;
    return 1;
}

static void last_blocks(const uint64_t h[8], Lanes *lanes)
{
    (void)h, (void)lanes;
}

#endif

/* A record of `size` bytes, at most those of a block and not none, takes the next lane. */
static void enter(Lanes *lanes, uint64_t *word, size_t row, const BlakeTexts *column, size_t columns, size_t size)
{
    unsigned char block[BLOCK + 8];
    uint64_t *m = lanes->m + lanes->filled;
    size_t at = 0, words = (size + 7) / 8, stride = (size_t)lanes->lanes;
    for (size_t k = 0; k < columns; k++) {
        const int64_t *end = column[k].ends + row;
        size_t length = (size_t)(end[1] - end[0]);
        if (columns > 1) {
            put_length(block + at, length);
            at += 8;
        }
        if (length)
            memcpy(block + at, column[k].text + end[0], length);
        at += length;
    }
    memset(block + at, 0, 8);
    for (size_t i = 0; i < words; i++)
        m[i * stride] = read64(block + 8 * i);
    for (size_t i = words; i < lanes->used[lanes->filled]; i++) /* of the one before it */
        m[i * stride] = 0;
    lanes->used[lanes->filled] = words;
    lanes->bytes[lanes->filled] = BLOCK + size;
    lanes->word[lanes->filled++] = word;
}

void blake_words(uint64_t *word, size_t rows, const unsigned char *key, const unsigned char *person,
                 const BlakeTexts *column, size_t columns, int most)
{
    Blake start = {.bytes = BLOCK, .filled = BLOCK};
    Lanes lanes = {.lanes = lanes_for(most)};
    memcpy(start.h, START, sizeof start.h);
    start.h[0] ^= 8 | BLAKE_KEY << 8 | 1 << 16 | 1 << 24;
    start.h[6] ^= read64(person);
    start.h[7] ^= read64(person + 8);
    memcpy(start.block, key, BLAKE_KEY);
    Blake keyed = start; /* after the first block, unless nothing follows it */
    compress(&keyed, 0);
    keyed.filled = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t size = columns > 1 ? 8 * columns : 0;
        for (size_t k = 0; k < columns && size <= BLOCK; k++)
            size += (size_t)(column[k].ends[i + 1] - column[k].ends[i]);
        if (lanes.lanes > 1 && size && size <= BLOCK) {
            enter(&lanes, word + i, i, column, columns, size);
            if (lanes.filled == lanes.lanes)
                last_blocks(keyed.h, &lanes);
            continue;
        }
        Blake one = size ? keyed : start;
        for (size_t k = 0; k < columns; k++) {
            const int64_t *end = column[k].ends + i;
            size_t length = (size_t)(end[1] - end[0]);
            if (columns > 1) {
                unsigned char prefix[8];
                put_length(prefix, length);
                add(&one, prefix, 8);
            }
            add(&one, column[k].text + end[0], length);
        }
        word[i] = ended(&one);
    }
    if (lanes.filled)
        last_blocks(keyed.h, &lanes);
    memset(&keyed, 0, sizeof keyed);
    memset(&start, 0, sizeof start);
}
