/* The clock by which searches and enumerations keep to their time limits. */

#ifndef SOLVERS_CLOCK_H
#define SOLVERS_CLOCK_H

#include <time.h>

/* Seconds of processor time of this process, so that a busy machine does not end a search earlier;
 * seconds by the clock where the system does not count those. */
static inline double now_seconds(void)
{
    struct timespec now;
#ifdef CLOCK_PROCESS_CPUTIME_ID
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
