/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads that simstack runs on the simulated machine, and hostload on this
 * host.
 */
#ifndef TOOLS_SIMLOAD_H
#define TOOLS_SIMLOAD_H

#include <stdint.h>

#define	STREAMS_MAX	56	/* limited by the number of interfaces */

struct simload {
	const char	*name, *what;
	const char	*unit;		/* what is counted */
	/* Sets tunables before the boot; returns an errno value. */
	int		(*configure)(unsigned streams);
	/* Starts threads on the booted stack, or NULL. */
	void		(*start)(unsigned streams);
	uint64_t	(*count)(unsigned streams);	/* done so far */
};
extern const struct simload simloads[];
extern const unsigned nsimloads;

/*
 * From the next configuration on, each stream ends after so many units; 0:
 * never.
 */
void	 simload_limit(uint64_t units);

/* Sets a tunable.  On failure prints the reason and returns an errno value. */
int	 simload_set(const char *name, const char *value);

#endif /* TOOLS_SIMLOAD_H */
