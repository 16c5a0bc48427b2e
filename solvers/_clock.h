/* The clock by which searches and enumerations keep to their time limits. */

#ifndef SOLVERS_CLOCK_H
#define SOLVERS_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment, never set back where the system has such a clock. */
static inline double now_seconds(void)
{
    struct timespec now;
#ifdef CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
