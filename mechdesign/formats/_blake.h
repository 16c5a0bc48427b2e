/* BLAKE2b (RFC 7693) with a key, of 8 bytes: what hashlib.blake2b gives with this key and person. */
#ifndef MECHDESIGN_FORMATS_BLAKE_H
#define MECHDESIGN_FORMATS_BLAKE_H

#include <stddef.h>
#include <stdint.h>

#define BLAKE_KEY 32
#define BLAKE_PERSON 16

/* The most messages that are hashed at once. */
#define BLAKE_LANES 8

/* Text i is that from ends[i] to ends[i + 1]. */
typedef struct {
    const int64_t *ends;
    const unsigned char *text;
} BlakeTexts;

/* The hashes of the records, each made of a text of every column; of several columns the length stands before each. */
void blake_words(uint64_t *word, size_t rows, const unsigned char *key, const unsigned char *person,
                 const BlakeTexts *column, size_t columns, int lanes);

#endif
