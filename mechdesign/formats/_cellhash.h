/* Hashes of single cells. A cell is hashed by its value, so that a table has the same hashes as
 * CSV and as Parquet:
 *
 *     "1.50", "1.5"        the double 1.5      a decimal number is the double nearest to it
 *     "007", "7"           the double 7.0
 *     "1234567890123456"   text                whole numbers of more than 15 digits are text
 *     "True", "TRUE"       the text "true"     the case of truth values does not matter
 *     ""                   0                   an empty cell
 *
 * These values are stored in ledgers: they must never change.
 */

#ifndef MECHDESIGN_FORMATS_CELLHASH_H
#define MECHDESIGN_FORMATS_CELLHASH_H

#include <stddef.h>
#include <stdint.h>

#include "_bytes.h"

/* Odd words with half of their bits set, from wyhash. */
#define PRIME_1 0xa0761d6478bd642fULL
#define PRIME_2 0xe7037ed1a0b428dbULL
#define PRIME_3 0x8ebc6af09c88c6e3ULL

/* Marks a number, so that no text hashes like it. */
#define NUMBER 0x589965cc75374cc3ULL

/* The exclusive or of both halves of a product: every bit depends on all bits of both words. */
static inline uint64_t folded(uint64_t a, uint64_t b)
{
#if defined(_MSC_VER) && !defined(__clang__)
    uint64_t high;
    uint64_t low = _umul128(a, b, &high);
    return low ^ high;
#else
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

/* The hash of a number; -0.0 counts as 0.0. */
static inline uint64_t hash_double(uint64_t seed, double value)
{
    uint64_t bits;
    value += 0.0; /* -0.0 becomes 0.0 */
    memcpy(&bits, &value, 8);
    return folded(folded(bits ^ PRIME_3 ^ seed, NUMBER), seed ^ PRIME_2);
}

/* The hash of n bytes. */
uint64_t hash_bytes(uint64_t seed, const unsigned char *p, ptrdiff_t n);
/* The hash of the value of a cell of n bytes, 0 if it is empty. `room` bytes, n or more, can be
 * read. May be called without the interpreter's lock. */
uint64_t hash_cell(uint64_t seed, const unsigned char *p, ptrdiff_t n, ptrdiff_t room);

#endif
