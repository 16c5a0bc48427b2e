/* Cells of CSV text: their ends, their texts without quotes, and lines with exchanged cells.
 *
 * The rules are those of Python's csv.reader in its strict mode, on UTF-8, in which delimiters,
 * quotes and line breaks are bytes of their own. A text is never parsed into objects: `csv_split`
 * finds the places where cells end, and the others work on the bytes between them. For example, in
 * a,"b""c" the cells end at the bytes 1 and 8; the text of the second one is b"c.
 *
 * Files: _csv_rows.c, the ends of cells and rows; _csv_texts.c, the texts of cells, and numbers
 * for different texts; _csv_exchange.c, lines with exchanged cells; _csv_module.c, the Python
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
    ptrdiff_t misquoted; /* the place of text behind a closing quote, or -1 */
} CsvRows;

/* Split n bytes. `quote` is a byte or -1. Fills in the end of every cell, the last cell of every
 * row, and the start of every row; each array has room for n items. */
CsvRows csv_split(const unsigned char *p, ptrdiff_t n, int delimiter, int quote, int64_t *ends,
                  int64_t *last, int64_t *starts);

/* Write the cells [starts[i], ends[i]) of a text one after the other to `out`, without the quotes
 * around them and with one quote in the place of two. `out` has room for all cells with their
 * quotes. `offsets` receives the beginning of each text, and the end of the last. Returns the
 * number of bytes written. */
ptrdiff_t csv_unquote(const unsigned char *text, ptrdiff_t cells, const int64_t *starts,
                      const int64_t *ends, int quote, int32_t *offsets, unsigned char *out);

/* The cell at `place` of each row of a text of `size` bytes. Rows have `width` cells, each of which
 * ends one byte before the next one starts. */
typedef struct {
    const unsigned char *text;
    ptrdiff_t size;
    ptrdiff_t rows;
    ptrdiff_t width;
    ptrdiff_t place;
    const int64_t *starts; /* rows: the start of each row */
    const int64_t *ends;   /* rows x width */
} CsvCells;

/* Whether all of them lie within the text: otherwise they must not be read. */
int csv_cells_fit(const CsvCells *cells);

/* Number the different cells, byte for byte, in the order of their first appearance. Returns their
 * number, or -1 without memory. codes and firsts (the first row of each code) have room for an item
 * a row. */
ptrdiff_t csv_number(const CsvCells *cells, int32_t *codes, int32_t *firsts);

/* A text in which every row has some cuts, each replaced by a number of texts. */
typedef struct {
    const unsigned char *text; /* size bytes */
    ptrdiff_t size;
    ptrdiff_t rows;
    ptrdiff_t edits;        /* cuts of each row */
    const int64_t *cuts;    /* edits x 2 x rows: the beginning and the end of each cut */
    const int64_t *counts;  /* edits: texts that replace each cut */
    ptrdiff_t written;      /* their sum: texts of each row */
    const int32_t *codes;   /* written x rows: which texts */
    ptrdiff_t texts;        /* number of different texts */
    const int32_t *offsets; /* texts + 1: text i is data[offsets[i]] to data[offsets[i + 1]] */
    const unsigned char *data;
} CsvExchange;

/* Write the text with its edits, or only measure it where `out` is NULL. Returns its bytes, or -1
 * if the cuts do not ascend within the text or a code has no text. */
ptrdiff_t csv_exchange(const CsvExchange *exchange, unsigned char *out);

#endif
