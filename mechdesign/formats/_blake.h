/* BLAKE2b (RFC 7693) of many short messages with a key. Each hash is one word, the lowest byte
 * first:
 *
 *     hash = hashlib.blake2b(record, digest_size=8, key=key, person=person)
 *     word = int.from_bytes(hash.digest(), "little")
 */

#ifndef MECHDESIGN_FORMATS_BLAKE_H
#define MECHDESIGN_FORMATS_BLAKE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the key and of the personalisation. */
#define BLAKE_KEY 32
#define BLAKE_PERSON 16

/* The most messages that are hashed at once. */
#define BLAKE_LANES 8

/* A column of texts: number i is text[ends[i]] to text[ends[i + 1]]. */
typedef struct {
    const int64_t *ends;
    const unsigned char *text;
} BlakeTexts;

/* Write the hashes of the records, each of which has a text in every column, into `word`. With
 * several columns, each text has its length before it, so that no two records are the same
 * message. At most `lanes` records are hashed at once. */
void blake_words(uint64_t *word, size_t rows, const unsigned char *key, const unsigned char *person,
                 const BlakeTexts *column, size_t columns, int lanes);

#endif
