/* Rows that are all listed, but taken into a program only where its point violates them.
 *
 * Cuts around a convex set soon are hundreds, of which a handful bind at any one point. A linear
 * program with all of them pays for each in every pivot. Here a pass over the list, which is short
 * because points have few positive coordinates, finds the few that are missing; `_program_rounds.c` calls
 * it after each round (`separate_listed`).
 */

#ifndef SOLVERS_LISTED_ROWS_H
#define SOLVERS_LISTED_ROWS_H

#include "_program.h"

/* The upper end of every listed row. */
#define LISTED_END 1.0

/* The separator: rows a.v <= LISTED_END. */
typedef struct {
    Separator separator; /* first, so that one is the other */
    int count;           /* R: rows */
    Cut **cuts;          /* R: the rows, one reference to each held here */
    double *columns;     /* N x R: the same entries by columns */
    double *activity;    /* R: scratch, the values of the rows at a point */
} ListedRows;

ListedRows *listed_rows(const double *rows, int count, int N);
int separate_listed(Separator *self, const Problem *problem, Program *lp);
void release_listed(Separator *self);

#endif
