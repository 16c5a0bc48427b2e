/* Cells of CSV text: where they end, what they say, and lines in which some are exchanged.
 *
 * The rules are those of Python's csv.reader in its strict mode, on UTF-8, in which delimiters,
 * quotes and line breaks are bytes of their own.
 *
 * Files: _csv_rows.c, where cells and rows end; _csv_texts.c, what cells say, and different
 * texts numbered; _csv_exchange.c, lines with exchanged cells; _csv_module.c, the Python
 * module, which checks every index that comes from outside.
 */

#ifndef MECHDESIGN_FORMATS_CSV_H
#define MECHDESIGN_FORMATS_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "_bytes.h"

/* The complete rows at the beginning of a text. */
typedef struct {
    ptrdiff_t cells;
    ptrdiff_t rows;
    ptrdiff_t bytes;
    ptrdiff_t lines;     /* with the line breaks within quotes */
    ptrdiff_t misquoted; /* where text follows a closing quote, or -1 */
} CsvRows;

/* Split n bytes. `quote` is a byte or -1. Fills where every cell ends, the last cell of every
 * row, and where every row starts; each array has room for n items. */
CsvRows csv_split(const unsigned char *p, ptrdiff_t n, int delimiter, int quote, int64_t *ends,
                  int64_t *last, int64_t *starts);

/* Write what the cells [starts[i], ends[i]) of a text say, without the quotes around them and
 * with one in the place of two, one after the other to `out`, which has room for all of them as
 * they are written. `offsets` takes where each one begins, and the end of the last. Returns the
 * bytes written. */
ptrdiff_t csv_unquote(const unsigned char *text, ptrdiff_t cells, const int64_t *starts,
                      const int64_t *ends, int quote, int32_t *offsets, unsigned char *out);

/* Number the different ones of `rows` texts in the order in which they come; how many there
 * are, or -1 without memory. Text i is data[offsets[i]] to data[offsets[i + 1]]; codes and
 * firsts (the first row of each code) have room for `rows` items. */
ptrdiff_t csv_number(const int32_t *offsets, const unsigned char *data, ptrdiff_t rows,
                     int32_t *codes, int32_t *firsts);

/* A text in which every row has some cuts, each replaced by a number of texts. */
typedef struct {
    const unsigned char *text; /* size bytes */
    ptrdiff_t size;
    ptrdiff_t rows;
    ptrdiff_t edits;        /* cuts of each row */
    const int64_t *cuts;    /* rows x edits x 2: where the text is left, and where it goes on */
    const int64_t *counts;  /* edits: texts that each cut gives way to */
    ptrdiff_t written;      /* their sum: texts of each row */
    const int64_t *codes;   /* rows x written: which texts */
    ptrdiff_t texts;        /* how many there are to choose from */
    const int32_t *offsets; /* texts + 1: text i is data[offsets[i]] to data[offsets[i + 1]] */
    const unsigned char *data;
} CsvExchange;

/* Write the text with its edits, or only measure it where `out` is NULL; its bytes, or -1 if
 * cuts do not ascend within the text or a code is none. */
ptrdiff_t csv_exchange(const CsvExchange *exchange, unsigned char *out);

#endif
