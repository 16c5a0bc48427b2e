/* The ratio test of one move: what leaves the basis when a column enters, or a tight row leaves
 * its bound. It is exact up to the errors that the rounding of the data may cause, and decides
 * what `_pivot_ratio_fast.c` leaves open.
 *
 * Steps of `pivot_ratio_exact`: (1) the direction in which v_T moves, H times the change of the
 * right sides, with its error (`find_direction`); (2) every basic quantity q that the move
 * shrinks, by s for each unit, is a candidate with the step q / s, its error, and its slope in t
 * (`add_candidate`): entries of T, the other rows, and the other bound of the row that leaves; (3)
 * the candidates whose steps, within their errors, may be the least are tied, and among them the
 * least slope decides (`first_to_leave`). For example, steps of 0.2, 0.2 + 1e-16 and 0.3 tie the
 * first two.
 */

#include "_pivot.h"

/* Add a quantity that shrinks by `-change` for each unit of the step, unless the change may be zero
 * or the quantity is infinite. Its step is quantity / -change; b->quantity, b->error, b->tilt and
 * b->code take the step, its error, its slope and what leaves. These arrays held the right sides
 * before, which are not needed any more. */
static void add_candidate(Basis *b, int *count, Side side, double change, double error,
                          int32_t code)
{
    if (change >= -error || isinf(side.quantity))
        return;
    double quantity = side.quantity <= side.error ? 0.0 : side.quantity;
    double step = quantity / -change;
    b->quantity[*count] = step;
    b->error[*count] = (side.error + step * error) / -change;
    b->tilt[*count] = side.tilt / -change;
    b->code[*count] = code;
    (*count)++;
}

/* The change of v_T when `column` enters (M direction = -A[R, column], -1), or tight row r
 * leaves its bound inwards (M direction = +-1 in its equation), with its error. */
static void find_direction(Basis *b, const Problem *p, ptrdiff_t column, int r)
{
    int k = b->k;
    double *right = b->change;
    double *blur = b->tilt;
    for (int q = 0; q < k; q++) {
        right[q] = 0.0;
        blur[q] = 0.0;
        if (column < 0)
            continue;
        if (q == k - 1) {
            right[q] = -1.0;
            continue;
        }
        int row = row_of_code(b->rows[q]);
        right[q] = -row_entries(p, row)[column];
        blur[q] = row_blur(p, row)[column];
    }
    if (r >= 0)
        right[r] = is_upper(b->rows[r]) ? -1.0 : 1.0;
    for (int i = 0; i < k; i++) {
        b->direction[i] = 0.0;
        for (int q = 0; q < k; q++)
            b->direction[i] += b->inverse[i * k + q] * right[q];
    }
    pivot_refine(b, right, blur, b->direction, b->direction_error);
}

/* The side of row t, which is not tight, that the move brings nearer. */
static void add_row_candidate(Basis *b, const Problem *p, ptrdiff_t column, ptrdiff_t t, int *count)
{
    int k = b->k;
    const double *gain = b->gain + t * b->capacity;
    const double *a = row_entries(p, t);
    const double *e = row_blur(p, t);
    double change = column < 0 ? 0.0 : a[column];
    double error = column < 0 ? 0.0 : e[column];
    for (int i = 0; i < k; i++) {
        change += a[b->columns[i]] * b->direction[i];
        error += e[b->columns[i]] * fabs(b->direction[i]);
    }
    for (int q = 0; q < k; q++)
        error += fabs(gain[q]) * b->residual[q];
    int up = change > 0.0;
    int32_t code = (int32_t)(k + 2 * t + up);
    add_candidate(b, count, pivot_side(b, p, t, up), -fabs(change), error, code);
}

/* The tight row that leaves one of its bounds may reach the other one. */
static void add_other_bound(Basis *b, const Problem *p, int32_t tight, int *count)
{
    int row = row_of_code(tight);
    Side side;
    side.quantity = p->upper[row] - p->lower[row];
    side.tilt = p->push_lower[row] + p->push_upper[row];
    side.error = NOISE * (fabs(p->upper[row]) + fabs(p->lower[row]));
    add_candidate(b, count, side, -1.0, 0.0, b->k + (tight ^ 1));
}

/* Of `count` candidates those that may end the step first, the one that the push lets through least
 * first (b->ties of them, if the step is not zero); what leaves, or -1. */
static int32_t first_to_leave(Basis *b, int count)
{
    double reach = INFINITY; /* the longest step that may still be allowed by every quantity */
    double step = 0.0;
    int ties = 0;
    for (int c = 0; c < count; c++) {
        double latest = b->quantity[c] + b->error[c];
        reach = latest < reach ? latest : reach;
    }
    for (int c = 0; c < count; c++) {
        if (b->quantity[c] - b->error[c] > reach)
            continue;
        double tilt = b->tilt[c];
        int32_t code = b->code[c];
        int at = ties++;
        step = b->quantity[c] > step ? b->quantity[c] : step;
        for (; at > 0 && b->tilt[at - 1] > tilt; at--) {
            b->tilt[at] = b->tilt[at - 1];
            b->code[at] = b->code[at - 1];
        }
        b->tilt[at] = tilt;
        b->code[at] = code;
    }
    b->ties = step > 0.0 ? ties : 1;
    return ties ? b->code[0] : -1;
}

/* What leaves when a column enters (column >= 0), or tight row r leaves its bound (column < 0);
 * -1 if nothing does. b->ties codes (b->code, in the order of the push) share that step, if it
 * is not zero. */
int32_t pivot_ratio_exact(Basis *b, const Problem *p, ptrdiff_t column, int r)
{
    int count = 0;
    int32_t tight = r >= 0 ? b->rows[r] : -1;
    find_direction(b, p, column, r);
    for (int i = 0; i < b->k; i++) {
        Side side = {b->value[i], b->slope[i], b->value_error[i]};
        add_candidate(b, &count, side, b->direction[i], b->direction_error[i], i);
    }
    for (ptrdiff_t t = 0; t < p->m; t++)
        if (!b->tight[t])
            add_row_candidate(b, p, column, t, &count);
    if (tight >= 0)
        add_other_bound(b, p, tight, &count);
    return first_to_leave(b, count);
}
