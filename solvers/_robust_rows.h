/* Uncertain sets, whose rows are found by sorting (docs/explanation/optimum-theory.md, 'Uncertain
 * sets, with rows found by sorting').
 *
 * Row s of the table is any p of the box F_s = {lower_s <= p <= lower_s + spread_s, sum p = 1},
 * the shares pi any of a box in the simplex. With w_x = v_x / point_x, and h_s and g_s the
 * largest and the smallest p.w over F_s, the set holds the v >= 0, sum v = 1, with
 *
 *     h_s <= ratio g_t (s != t),
 *     h_s <= most (pi_s h_s + sum over t != s of pi_t g_t),
 *     g_s >= least (pi_s g_s + sum over t != s of pi_t h_t)   for every pi of its box.
 *
 * These are linear rows a.v <= 0, one for each choice of vertices of the boxes: far too many to
 * list. A sort of w finds those that a point violates most, since h_s, g_s and the worst pi are
 * fractional knapsacks.
 */

#ifndef SOLVERS_ROBUST_ROWS_H
#define SOLVERS_ROBUST_ROWS_H

#include "_program.h"

/* A secret, and what its place among the others goes by. */
typedef struct {
    double key;
    int secret;
} RankedSecret;

/* The separator. Symbols are 0 .. n - 1; place n holds the mass of all others, whose w is `rest`
 * whatever v is. */
typedef struct {
    Separator separator; /* first, so that one is the other */
    int n;               /* symbols */
    int size;            /* S: secrets, the rows of the table */
    /* the boxes of the rows of the table */
    double *lower, *spread; /* S x (n + 1): lower ends, and widths */
    double *room;           /* S: 1 - sum of the lower ends */
    double *scale;          /* n: 1 / point */
    double rest;            /* w of the last place */
    /* the box of the shares */
    double *share_lower, *share_spread; /* S */
    double share_room;                  /* 1 - sum of the lower ends */
    /* the limits; infinity, infinity and 0 where a side is free */
    double ratio, most, least;
    /* scratch */
    int *order;                 /* n + 1: places by falling w, kept from call to call */
    double *w;                  /* n + 1 */
    double *largest, *smallest; /* S: h and g */
    double *row;                /* n + 1: coefficients of w in the row being made */
    double *share;              /* S: pi of the worst mean */
    RankedSecret *ranked;       /* S: secrets by value */
} UncertainRows;

int separate_uncertain(Separator *self, const Problem *problem, Program *lp);
void release_uncertain(Separator *self);
int init_uncertain_scratch(UncertainRows *set);

#endif
