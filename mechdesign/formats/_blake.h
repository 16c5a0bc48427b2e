/* BLAKE2b (RFC 7693) of many short messages, with a key: the first 8 bytes of what
 * hashlib.blake2b gives with digest_size 8 and the same key and person. */

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

/* The hashes of the records, each made of a text of every column, into `word`. Of several
 * columns the length stands before each text, so that no two records read alike. At most
 * `lanes` at once. */
void blake_words(uint64_t *word, size_t rows, const unsigned char *key, const unsigned char *person,
                 const BlakeTexts *column, size_t columns, int lanes);

#endif
