/* BLAKE2b of many short messages: as many at once as the vectors of the processor hold, others one
 * by one. The constants and the order of words are those of RFC 7693; hashes are stored in jobs
 * and must never change.
 *
 * A record is one text, or several, each with its length in 8 bytes before it: "ab", "c" are
 * 00..02 "ab" 00..01 "c". All records begin with the same block, that of the key, so it is
 * compressed once (`keyed_state`). Records of 1 to 128 bytes then need one more block. They are
 * gathered in lanes, 4 or 8 of them (`enter_lane`), word w of all lanes side by side, and
 * compressed together (`last_blocks`). Empty and longer records are hashed by themselves
 * (`hash_record`). Both ways run the same rounds, which are macros (ALL_ROUNDS), and give the same
 * words.
 */

#include "_blake.h"

#include <string.h>

#include "_bytes.h"

/* Bytes and words of a block. */
#define BLOCK 128
#define WORDS (BLOCK / 8)
/* Bytes of the length before a text. */
#define LENGTH 8

/* Vectors are chosen while the program runs; elsewhere there is the plain code alone. */
#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#define VECTORS 1
#else
#define VECTORS 0
#endif

/* The state of one message. */
typedef struct {
    uint64_t h[8];              /* chaining value */
    uint64_t bytes;             /* taken in so far */
    unsigned char block[BLOCK]; /* not compressed yet */
    size_t filled;              /* bytes in the block */
} Blake;

/* The initial chaining value, as in SHA-512. */
static const uint64_t START[8] = {
    0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
    0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL, 0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL,
};

/* Order of the words of a block in each round (RFC 7693, 2.7); rounds 10 and 11 repeat 0 and 1. */
static const unsigned char ORDER[10][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

/* The rounds are macros because their words are numbers in one place and vectors in others. */
#define TURNED(x, b) ((x) >> (b) | (x) << (64 - (b)))

/* The mixing function G of the RFC on four words of v, with the words `one` and `two` of the
 * block. */
#define MIX_WORDS(a, b, c, d, one, two) \
    {                                   \
        a += b + (one);                 \
        d = TURNED(d ^ a, 32);          \
        c += d;                         \
        b = TURNED(b ^ c, 24);          \
        a += b + (two);                 \
        d = TURNED(d ^ a, 16);          \
        c += d;                         \
        b = TURNED(b ^ c, 63);          \
    }

/* One round on v with the block m: columns, then diagonals. */
#define ROUND(round)                                            \
    {                                                           \
        const unsigned char *s = ORDER[(round) % 10];           \
        MIX_WORDS(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]])    \
        MIX_WORDS(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]])    \
        MIX_WORDS(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]])   \
        MIX_WORDS(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]])   \
        MIX_WORDS(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]])   \
        MIX_WORDS(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]) \
        MIX_WORDS(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]])  \
        MIX_WORDS(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]])  \
    }

/* clang-format off */
/* All rounds in a row and not in a loop, so that the order of the words is known to the
 * compiler. */
#define ALL_ROUNDS                      \
    ROUND(0) ROUND(1) ROUND(2) ROUND(3) \
    ROUND(4) ROUND(5) ROUND(6) ROUND(7) \
    ROUND(8) ROUND(9) ROUND(10) ROUND(11)
/* clang-format on */

/* Take the block into the chaining value. */
static void compress(Blake *state, int last)
{
    uint64_t v[16];
    uint64_t m[WORDS];
    memcpy(v, state->h, sizeof state->h);
    memcpy(v + 8, START, sizeof START);
    for (int i = 0; i < WORDS; i++)
        m[i] = read64(state->block + 8 * i);
    v[12] ^= state->bytes;
    if (last)
        v[14] = ~v[14];
    ALL_ROUNDS
    for (int i = 0; i < 8; i++)
        state->h[i] ^= v[i] ^ v[8 + i];
}

/* Take in n bytes. A full block waits, because the last block is compressed in another way. */
static void add_bytes(Blake *state, const unsigned char *p, size_t n)
{
    while (n) {
        if (state->filled == BLOCK) {
            compress(state, 0);
            state->filled = 0;
        }
        size_t room = BLOCK - state->filled;
        size_t part = n < room ? n : room;
        memcpy(state->block + state->filled, p, part);
        state->filled += part;
        state->bytes += part;
        p += part;
        n -= part;
    }
}

/* The first word of the hash; the message is over. */
static uint64_t finish(Blake *state)
{
    memset(state->block + state->filled, 0, BLOCK - state->filled);
    compress(state, 1);
    return state->h[0];
}

/* Write a length, the highest byte first. */
static void put_length(unsigned char *p, uint64_t length)
{
    for (int b = 0; b < LENGTH; b++)
        p[b] = (unsigned char)(length >> (56 - 8 * b));
}

/* ---------------------------------------------------------------- several messages at once */

/* Messages of one block each, which comes last, side by side. */
typedef struct {
    uint64_t m[WORDS * BLAKE_LANES]; /* word i of lane l is m[i * lanes + l] */
    uint64_t bytes[BLAKE_LANES];     /* of each message, with the key's block */
    uint64_t *word[BLAKE_LANES];     /* where each hash goes */
    size_t used[BLAKE_LANES];        /* words of each lane that are not zero */
    int lanes;                       /* 4 or 8, or 1 without vectors */
    int filled;                      /* lanes with a message */
} Lanes;

#if VECTORS

/* Compress the last blocks of `count` messages, all with the chaining value h, in vectors. */
#define LAST_BLOCKS(name, count, isa)                                                              \
    typedef uint64_t name##_vector __attribute__((vector_size(8 * count), aligned(8), may_alias)); \
    __attribute__((target(isa))) static void name(const uint64_t h[8], Lanes *lanes)               \
    {                                                                                              \
        const name##_vector *m = (const name##_vector *)lanes->m;                                  \
        const name##_vector none = {0};                                                            \
        name##_vector v[16];                                                                       \
        for (int i = 0; i < 8; i++) {                                                              \
            v[i] = none + h[i];                                                                    \
            v[8 + i] = none + START[i];                                                            \
        }                                                                                          \
        v[12] ^= *(const name##_vector *)lanes->bytes;                                             \
        v[14] = ~v[14];                                                                            \
        ALL_ROUNDS                                                                                 \
        v[0] ^= v[8] ^ h[0];                                                                       \
        for (int i = 0; i < lanes->filled; i++)                                                    \
            *lanes->word[i] = v[0][i];                                                             \
        lanes->filled = 0;                                                                         \
    }

LAST_BLOCKS(last_blocks_of_4, 4, "avx2")
LAST_BLOCKS(last_blocks_of_8, 8, "avx512f")

/* How many messages this machine hashes at once, at most `most`. */
static int lanes_for(int most)
{
    if (most >= 8 && __builtin_cpu_supports("avx512f"))
        return 8;
    if (most >= 4 && __builtin_cpu_supports("avx2"))
        return 4;
    return 1;
}

/* Hash the messages of all lanes, which are empty afterwards. */
static void last_blocks(const uint64_t h[8], Lanes *lanes)
{
    if (lanes->lanes == 8)
        last_blocks_of_8(h, lanes);
    else
        last_blocks_of_4(h, lanes);
}

#else

/* Without vectors, messages are hashed one by one. */
static int lanes_for(int most)
{
    (void)most;
    return 1;
}

/* Never called: without vectors no lane is filled. */
static void last_blocks(const uint64_t h[8], Lanes *lanes)
{
    (void)h;
    (void)lanes;
}

#endif

/* ---------------------------------------------------------------- records */

/* Bytes of text i of a column. */
static size_t text_length(const BlakeTexts *column, size_t i)
{
    return (size_t)(column->ends[i + 1] - column->ends[i]);
}

/* Bytes of record i, or some number above BLOCK if it has more. */
static size_t record_size(const BlakeTexts *column, size_t columns, size_t i)
{
    size_t size = columns > 1 ? LENGTH * columns : 0;
    for (size_t k = 0; k < columns && size <= BLOCK; k++)
        size += text_length(column + k, i);
    return size;
}

/* Record i of `size` bytes, at least one and at most those of a block, takes the next lane. */
static void enter_lane(Lanes *lanes, uint64_t *word, size_t i, const BlakeTexts *column,
                       size_t columns, size_t size)
{
    unsigned char block[BLOCK + 8];
    int lane = lanes->filled++;
    uint64_t *m = lanes->m + lane;
    size_t stride = (size_t)lanes->lanes;
    size_t words = (size + 7) / 8;
    size_t at = 0;
    for (size_t k = 0; k < columns; k++) {
        size_t length = text_length(column + k, i);
        if (columns > 1) {
            put_length(block + at, length);
            at += LENGTH;
        }
        if (length)
            memcpy(block + at, column[k].text + column[k].ends[i], length);
        at += length;
    }
    memset(block + at, 0, 8);
    for (size_t w = 0; w < words; w++)
        m[w * stride] = read64(block + 8 * w);
    for (size_t w = words; w < lanes->used[lane]; w++) /* left by the message before */
        m[w * stride] = 0;
    lanes->used[lane] = words;
    lanes->bytes[lane] = BLOCK + size;
    lanes->word[lane] = word;
}

/* The hash of record i by itself, from the state before its first byte. */
static uint64_t hash_record(Blake state, const BlakeTexts *column, size_t columns, size_t i)
{
    for (size_t k = 0; k < columns; k++) {
        size_t length = text_length(column + k, i);
        if (columns > 1) {
            unsigned char prefix[LENGTH];
            put_length(prefix, length);
            add_bytes(&state, prefix, LENGTH);
        }
        add_bytes(&state, column[k].text + column[k].ends[i], length);
    }
    return finish(&state);
}

/* The state after the key's block was taken in, but not compressed: the parameters (digest of 8
 * bytes, length of the key, fanout and depth 1) and the person are mixed into the chaining
 * value. */
static Blake keyed_state(const unsigned char *key, const unsigned char *person)
{
    Blake state = {.bytes = BLOCK, .filled = BLOCK};
    memcpy(state.h, START, sizeof state.h);
    state.h[0] ^= 8 | BLAKE_KEY << 8 | 1 << 16 | 1 << 24;
    state.h[6] ^= read64(person);
    state.h[7] ^= read64(person + 8);
    memcpy(state.block, key, BLAKE_KEY);
    return state;
}

/* Records of one block go into lanes, which are hashed when all are filled; longer ones, and empty
 * ones, are hashed by themselves. */
void blake_words(uint64_t *word, size_t rows, const unsigned char *key, const unsigned char *person,
                 const BlakeTexts *column, size_t columns, int most)
{
    Lanes lanes = {.lanes = lanes_for(most)};
    /* For a record without bytes the key's block is the last one, which is compressed in another
     * way. All other records begin with the compressed key, so that is done once for all. */
    Blake empty = keyed_state(key, person);
    Blake begun = empty;
    compress(&begun, 0);
    begun.filled = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t size = record_size(column, columns, i);
        if (lanes.lanes > 1 && size > 0 && size <= BLOCK) {
            enter_lane(&lanes, word + i, i, column, columns, size);
            if (lanes.filled == lanes.lanes)
                last_blocks(begun.h, &lanes);
        } else {
            word[i] = hash_record(size > 0 ? begun : empty, column, columns, i);
        }
    }
    if (lanes.filled)
        last_blocks(begun.h, &lanes);
    memset(&begun, 0, sizeof begun); /* states of a secret key */
    memset(&empty, 0, sizeof empty);
}
