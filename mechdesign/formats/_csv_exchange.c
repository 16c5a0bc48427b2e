/* CSV lines in which some cells are replaced by other texts (`csv_exchange` of `_csv.h`).
 *
 * Each row has cuts (leave, resume): the text up to `leave` is copied, the new texts follow, and
 * copying goes on at `resume`. For example, "a,b,c\n" with the cut (2, 3) and the text "X" becomes
 * "a,X,c\n". The function is called twice with the same walk: without a place for the output it
 * only measures.
 */

#include "_csv.h"

/* Output that is written, or only measured: both need the same walk. */
typedef struct {
    unsigned char *out; /* NULL while measuring */
    ptrdiff_t total;
} Writer;

/* Append some bytes, or only count them. */
static void put(Writer *writer, const unsigned char *from, ptrdiff_t size)
{
    if (writer->out)
        memcpy(writer->out + writer->total, from, (size_t)size);
    writer->total += size;
}

/* Row by row: the text up to each cut, then the texts in its place; the rest at the end. Cuts and
 * codes come from outside, so each is checked before it is used. */
ptrdiff_t csv_exchange(const CsvExchange *exchange, unsigned char *out)
{
    Writer writer = {out, 0};
    ptrdiff_t at = 0;
    ptrdiff_t rows = exchange->rows;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const int64_t *cut = exchange->cuts + row;
        const int32_t *code = exchange->codes + row;
        for (ptrdiff_t k = 0; k < exchange->edits; k++) {
            ptrdiff_t leave = (ptrdiff_t)cut[2 * k * rows];
            ptrdiff_t resume = (ptrdiff_t)cut[(2 * k + 1) * rows];
            if (leave < at || resume < leave || resume > exchange->size)
                return -1;
            put(&writer, exchange->text + at, leave - at);
            at = resume;
            for (int64_t t = 0; t < exchange->counts[k]; t++, code += rows) {
                if (*code < 0 || *code >= exchange->texts)
                    return -1;
                const int32_t *offset = exchange->offsets + *code;
                put(&writer, exchange->data + offset[0], offset[1] - offset[0]);
            }
        }
    }
    put(&writer, exchange->text + at, exchange->size - at);
    return writer.total;
}
