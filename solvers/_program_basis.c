/* The inverse of the basis, kept up to date from pivot to pivot.
 *
 * Only the columns of active rows are stored. The slack of any other row is basic, and its column
 * of the inverse is minus the unit vector of that slack's position, because slacks have the column
 * -e_k in the program. So work grows with the number of tight rows, not with that of rows. For
 * example, with 100 rows of which 3 are tight, the inverse has 3 columns of 100 entries.
 *
 * A pivot that takes the slack of row k out of the basis makes row k active (`activate_row`), one
 * that takes it in ends that (`deactivate_row`). `change_basis` makes the pivot, `factor` inverts
 * the basis anew, and `solve_basis` and `multipliers` are products with the inverse.
 */

#include "_program.h"

/* Pivots below this in absolute value make a basis singular. */
#define LEAST_PIVOT 1e-12

/* Every slack basic: no row is active. */
void slack_basis(const Problem *problem, Program *lp)
{
    int N = problem->N;
    for (int j = 0; j < N; j++)
        lp->position[j] = -1;
    for (int i = 0; i < lp->M; i++) {
        lp->basis[i] = N + i;
        lp->position[N + i] = i;
    }
    lp->active = 0;
    lp->updates = 0;
}

/* out = B^-1 rhs, for a vector over the rows; `out` is over the positions. */
HOT void solve_basis(const Problem *problem, const Program *lp, const double *rhs, double *out)
{
    int M = lp->M;
    int N = problem->N;
    for (int i = 0; i < M; i++)
        out[i] = lp->basis[i] >= N ? -rhs[lp->basis[i] - N] : 0.0;
    for (int slot = 0; slot < lp->active; slot++) {
        double factor = rhs[lp->row_of[slot]];
        if (factor == 0.0)
            continue;
        const double *column = inverse_column(lp, slot);
        for (int i = 0; i < M; i++)
            out[i] += factor * column[i];
    }
}

/* The column of a nonbasic variable in terms of the basis, into `direction`. */
void entering_column(const Problem *problem, Program *lp, int enter)
{
    int M = lp->M;
    if (enter < problem->N) {
        solve_basis(problem, lp, column_of(lp, enter), lp->direction);
        return;
    }
    const double *column = inverse_column(lp, lp->slot_of[enter - problem->N]);
    for (int i = 0; i < M; i++)
        lp->direction[i] = -column[i];
}

/* Row `row` becomes active; its column of the inverse was minus the unit vector of `place`
 * before the pivot on `direction`. */
static void activate_row(Program *lp, int row, int place, double pivot_inverse)
{
    double *column = inverse_column(lp, lp->active);
    for (int i = 0; i < lp->M; i++)
        column[i] = pivot_inverse * lp->direction[i];
    column[place] = -pivot_inverse;
    lp->row_of[lp->active] = row;
    lp->slot_of[row] = lp->active;
    lp->active++;
}

/* Row `row` is active no more; the last column takes its place in the inverse. */
static void deactivate_row(Program *lp, int row)
{
    int slot = lp->slot_of[row];
    int last = --lp->active;
    if (slot == last)
        return;
    size_t bytes = sizeof(double) * (size_t)lp->M;
    memcpy(inverse_column(lp, slot), inverse_column(lp, last), bytes);
    lp->row_of[slot] = lp->row_of[last];
    lp->slot_of[lp->row_of[slot]] = slot;
}

/* Variable `enter`, whose column in terms of the basis is `direction`, takes the position
 * `place`. */
HOT void change_basis(const Problem *problem, Program *lp, int place, int enter)
{
    int M = lp->M;
    int N = problem->N;
    int leave = lp->basis[place];
    const double *direction = lp->direction;
    double pivot_inverse = 1.0 / direction[place];
    for (int slot = 0; slot < lp->active; slot++) {
        double *column = inverse_column(lp, slot);
        double factor = column[place] * pivot_inverse;
        if (factor == 0.0)
            continue;
        for (int i = 0; i < M; i++)
            column[i] -= factor * direction[i];
        column[place] = factor;
    }
    if (leave >= N)
        activate_row(lp, leave - N, place, pivot_inverse);
    if (enter >= N)
        deactivate_row(lp, enter - N);
    lp->position[leave] = -1;
    lp->position[enter] = place;
    lp->basis[place] = enter;
    lp->updates++;
}

/* Invert the basis of these structurals and the slacks of the rows marked in `keep`: structurals
 * replace the other slacks one by one, each where its pivot is largest. The slack basis replaces a
 * (numerically) singular one. */
static void invert(const Problem *problem, Program *lp, const int *structurals, int count)
{
    int M = lp->M;
    int N = problem->N;
    slack_basis(problem, lp);
    for (int t = 0; t < count; t++) {
        entering_column(problem, lp, structurals[t]);
        int place = -1;
        double largest = LEAST_PIVOT;
        for (int i = 0; i < M; i++) {
            double pivot = fabs(lp->direction[i]);
            if (lp->basis[i] < N || lp->keep[i] || pivot <= largest)
                continue;
            largest = pivot;
            place = i;
        }
        if (place < 0) {
            slack_basis(problem, lp);
            return;
        }
        change_basis(problem, lp, place, structurals[t]);
    }
    lp->updates = 0;
}

/* Invert the present basis anew. */
void factor(const Problem *problem, Program *lp)
{
    int N = problem->N;
    int count = 0;
    memset(lp->keep, 0, (size_t)lp->M);
    for (int i = 0; i < lp->M; i++) {
        int j = lp->basis[i];
        if (j >= N)
            lp->keep[j - N] = 1;
        else
            lp->candidates[count++] = j; /* `invert` starts from slacks, which overwrites `basis` */
    }
    invert(problem, lp, lp->candidates, count);
}

/* Make the basis of an open node the present one, and invert it. */
void load_basis(const Problem *problem, Program *lp, const int16_t *basis)
{
    for (int i = 0; i < lp->M; i++)
        lp->basis[i] = basis[i];
    factor(problem, lp);
}

/* Multipliers of the rows: dual = c_B B^-1, zero for rows that are not active. */
void multipliers(Program *lp)
{
    for (int k = 0; k < lp->M; k++)
        lp->dual[k] = 0.0;
    for (int slot = 0; slot < lp->active; slot++) {
        const double *column = inverse_column(lp, slot);
        double sum = 0.0;
        for (int i = 0; i < lp->M; i++)
            sum += lp->cost[lp->basis[i]] * column[i];
        lp->dual[lp->row_of[slot]] = sum;
    }
}
