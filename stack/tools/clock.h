/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of measuring tools.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <time.h>

/* Seconds since an arbitrary time. */
static inline double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

static inline void
pause_for(double seconds)
{
	double end = now() + seconds, left;

	while ((left = end - now()) > 0)
		nanosleep(&(struct timespec){ (time_t)left,
		    (long)((left - (double)(time_t)left) * 1e9) }, NULL);
}

#endif /* TOOLS_CLOCK_H */
