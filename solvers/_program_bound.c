/* The bound that rounding cannot break.
 *
 * For any multipliers pi the Lagrangian
 *
 *     constant + sum_k min over the ends of row k of pi_k s_k + sum_j min over the box of d_j x_j,
 *     d = cost - sum_k pi_k a_k,
 *
 * is a lower bound of min constant + cost.x over box and rows (weak duality,
 * docs/explanation/optimum-theory.md, 'By columns'). For example, x_1 + 2 x_2 over [0, 1]^2 with
 * x_1 + x_2 = 1: pi = 1 leaves d = (0, 1) and proves 1, the minimum; pi = 0 still proves 0.
 *
 * It is evaluated in plain arithmetic and lowered by all that rounding can have added, so neither
 * a tolerance of the simplex nor an early stop of it can make it wrong. Each of the N + M terms
 * may err by as many ulp of their absolute sum, and each reduced cost by ulp of the terms it was
 * computed from, weighted by the mass that x has (`lagrangian`). A ray whose Lagrangian at zero
 * cost is positive proves that there is no point (`proves_empty`).
 */

#include "_program.h"

/* A sum of k terms errs by less than k ulp of the sum of the absolute terms; this covers the few
 * operations inside each term. */
#define SAFETY 16.0

/* Bounds of what the fixed rows sum over feasible points, for the allowance of the Lagrangian. */
void weigh_rows(Problem *problem)
{
    int N = problem->N;
    problem->mass = 1.0;
    for (int j = problem->n; j < N; j++)
        problem->mass += problem->top[j];
    for (int k = 0; k < problem->fixed; k++) {
        const double *row = problem->rows + (size_t)k * (size_t)N;
        double largest = 0.0;
        double least = 0.0;
        for (int j = 0; j < N; j++) {
            if (fabs(row[j]) > largest)
                largest = fabs(row[j]);
            if (row[j] < least)
                least = row[j];
        }
        double weight = largest * problem->mass;
        /* without negative entries the sum is the value of the row, which its upper end limits */
        double top = problem->outer_upper[k] > 0.0 ? problem->outer_upper[k] : 0.0;
        if (least >= 0.0 && top < weight)
            weight = top;
        problem->row_weight[k] = weight;
    }
}

/* What rounding can have added to the sum of a few terms of this total size. */
double rounding_allowance(double size)
{
    return SAFETY * DBL_EPSILON * size;
}

/* The Lagrangian at the multipliers `dual`, rounded down; the reduced costs stay in `tableau`.
 *
 * `cost` may be NULL for zero costs. `magnitude` bounds every |cost_j| before cancellation. For a
 * feasible x the rounding of the reduced costs is weighted by x itself: its total mass is at most
 * problem->mass, and row k sees at most its weight of it. The sums are bounded term by term. */
HOT double lagrangian(const Problem *problem, Program *lp, const double *cost, const double *dual,
                      double constant, double magnitude)
{
    int M = lp->M;
    int N = problem->N;
    double *reduced = lp->tableau;
    double total = constant;
    double size = fabs(constant);
    double weighted = magnitude * problem->mass;
    if (cost)
        memcpy(reduced, cost, sizeof(double) * (size_t)N);
    else
        memset(reduced, 0, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double pi = dual[k];
        if (pi == 0.0)
            continue;
        const double *row = lp->row[k];
        for (int j = 0; j < N; j++)
            reduced[j] -= pi * row[j];
        double term = pi * (pi > 0.0 ? lp->lower[N + k] : lp->upper[N + k]);
        double weight = k < problem->fixed ? problem->row_weight[k] : lp->cut[k]->weight;
        total += term;
        size += fabs(term);
        weighted += fabs(pi) * weight;
    }
    for (int j = 0; j < N; j++) {
        double term = reduced[j] > 0.0 ? reduced[j] * lp->lower[j] : reduced[j] * lp->upper[j];
        total += term;
        size += fabs(term);
    }
    total -= DBL_EPSILON * ((double)(N + M) * size + SAFETY * (double)(M + 4) * weighted);
    return isnan(total) ? -INFINITY : total; /* an overflow proves nothing */
}

/* Whether the multipliers `ray` or -ray prove that box and rows have no common point: then the
 * Lagrangian of the zero cost is positive. May turn the ray around. */
int proves_empty(const Problem *problem, Program *lp, double *ray)
{
    if (lagrangian(problem, lp, NULL, ray, 0.0, 0.0) > 0.0)
        return 1;
    for (int k = 0; k < lp->M; k++)
        ray[k] = -ray[k];
    return lagrangian(problem, lp, NULL, ray, 0.0, 0.0) > 0.0;
}
