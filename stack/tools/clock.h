/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of tools that measure.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <time.h>

/* Seconds since some fixed date. */
static inline double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

#endif /* TOOLS_CLOCK_H */
