/* A table that numbers hashes: `look_up` finds the code of a hash, or enters a new one.
 *
 * Open addressing with linear probing: the search for a hash begins at slot hash * slots / 2^64,
 * since hashes are random and need no further mixing, and goes on to the next slot until it meets
 * the hash or an empty slot. For example, in a table of 10 slots the hash 0.42 * 2^64 begins at
 * slot 4. At most four of five slots are filled; `look_up` stops before that is exceeded, and the
 * caller goes on from there with a larger table. The table is far larger than the caches of the
 * processor, so slots are prefetched some hashes ahead.
 */

#include "_hashtable.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

/* How many hashes ahead of its use a slot is asked for. */
#define AHEAD 12
/* The most slots that are filled, of five. */
#define FILLED 4
#define OF_SLOTS 5

/* The slot where the search for a hash begins: hash * slots / 2^64. */
static uint64_t slot_of(uint64_t hash, uint64_t slots)
{
#if defined(_MSC_VER) && !defined(__clang__)
    return __umulh(hash, slots);
#else
    return (uint64_t)((__uint128_t)hash * slots >> 64);
#endif
}

/* Ask for the slot of a hash that is looked up soon. */
static inline void prefetch_slot(const Table *table, uint64_t hash)
{
#if defined(__GNUC__)
    uint64_t slot = slot_of(hash, table->slots);
    __builtin_prefetch(table->key + slot);
    __builtin_prefetch(table->value + slot, 1);
#else
    (void)table;
    (void)hash;
#endif
}

/* Linear probing from the hash's own slot. */
ptrdiff_t look_up(Table *table, const Lookup *lookup, ptrdiff_t i)
{
    for (; i < lookup->count; i++) {
        if (i + AHEAD < lookup->count)
            prefetch_slot(table, lookup->hash[i + AHEAD]);
        uint64_t hash = lookup->hash[i] ? lookup->hash[i] : UINT64_MAX; /* 0 marks an empty slot */
        int64_t code = lookup->code[i];
        uint64_t slot = slot_of(hash, table->slots);
        while (table->key[slot] && table->key[slot] != hash)
            slot = slot + 1 == table->slots ? 0 : slot + 1;
        if (table->key[slot]) {
            lookup->fresh[i] = SEEN;
            lookup->found[i] = table->value[slot];
            continue;
        }
        lookup->fresh[i] = FRESH;
        lookup->found[i] = code;
        if (table->room < 0)
            continue;
        if (table->used >= table->room || code != (int32_t)code) {
            lookup->fresh[i] = NO_ROOM;
            continue;
        }
        /* some slots stay empty, where a search ends */
        if (((uint64_t)table->used + 1) * OF_SLOTS > table->slots * FILLED)
            break;
        table->key[slot] = hash;
        table->value[slot] = (int32_t)code;
        table->used++;
    }
    return i;
}
