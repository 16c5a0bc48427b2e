/* A table that numbers hashes: the code of each, or a new entry.
 *
 * For example, the hashes 7, 9, 7 with the codes 0, 1, 2, in an empty table: `fresh` is FRESH,
 * FRESH, SEEN and `found` is 0, 1, 0.
 */

#ifndef MECHDESIGN_FORMATS_HASHTABLE_H
#define MECHDESIGN_FORMATS_HASHTABLE_H

#include <stddef.h>
#include <stdint.h>

/* The values of `fresh`: the hash was in the table, it is new, it is new and there is no room. */
enum { SEEN, FRESH, NO_ROOM };

/* A table of hashes in open addressing, each near its place in their order; 0 marks an empty
 * slot. */
typedef struct {
    uint64_t *key;
    int32_t *value; /* the code of each key */
    uint64_t slots;
    ptrdiff_t used;
    ptrdiff_t room; /* hashes to keep at most; below 0, none is kept */
} Table;

/* Hashes to look up, and the answers. */
typedef struct {
    ptrdiff_t count;
    const uint64_t *hash;
    const int64_t *code;  /* the code of each if it is new */
    unsigned char *fresh; /* SEEN, FRESH or NO_ROOM */
    int64_t *found;       /* its code in the table, or its own */
} Lookup;

/* Look up, or keep, the hashes from i on. Returns where that ends: the number of hashes, or the
 * first one for which the table has to grow. */
ptrdiff_t look_up(Table *table, const Lookup *lookup, ptrdiff_t i);

#endif
