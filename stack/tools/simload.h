/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What simstack has a stack on the simulated machine do, and hostload one on
 * this machine.
 */
#ifndef TOOLS_SIMLOAD_H
#define TOOLS_SIMLOAD_H

#include <stdint.h>

#define	STREAMS_MAX	56	/* each has an interface, and the tunables of one */

struct simload {
	const char	*name, *what;
	const char	*unit;		/* of what is counted */
	/* Sets tunables, before the boot; an errno value. */
	int		(*configure)(unsigned streams);
	/* Starts threads on the stack that has booted, or NULL. */
	void		(*start)(unsigned streams);
	uint64_t	(*count)(unsigned streams);	/* done so far */
};
extern const struct simload simloads[];
extern const unsigned nsimloads;

/*
 * From the next configuration on each stream ends when it has done so many
 * units; 0: it does not end.
 */
void	 simload_limit(uint64_t units);

/* Sets a tunable; if that fails says why, and returns an errno value. */
int	 simload_set(const char *name, const char *value);

#endif /* TOOLS_SIMLOAD_H */
