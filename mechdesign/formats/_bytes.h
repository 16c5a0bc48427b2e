/* Eight bytes at a time, for the kernels of `_csv.c`, `_rowhash.c` and `_blake.c`. */
#ifndef MECHDESIGN_FORMATS_BYTES_H
#define MECHDESIGN_FORMATS_BYTES_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

/* The same byte eight times, as its product with this. */
#define EACH 0x0101010101010101ULL

/* Eight bytes, the first one lowest. */
static inline uint64_t read64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Four bytes, the first one lowest. */
static inline uint64_t read32(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

#endif
