/* Reading several bytes at a time, for the compiled modules of this folder. Words have the first
 * byte lowest on every machine, so hashes do not depend on it: read64 of the bytes 1, 2, 0, ..., 0
 * is 0x0201.
 */

#ifndef MECHDESIGN_FORMATS_BYTES_H
#define MECHDESIGN_FORMATS_BYTES_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

/* A byte times this is a word with the byte in all eight places. */
#define EACH 0x0101010101010101ULL

/* Eight bytes as a word, the first one lowest. */
static inline uint64_t read64(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Four bytes as a word, the first one lowest. */
static inline uint64_t read32(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

#endif
