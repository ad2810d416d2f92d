/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What CPUs lose their time to: transfers of cache lines, and waiting for
 * locks.  A run that is explained is the same as one that is not, event for
 * event.
 *
 * The totals are exact, except that a sleep that lasts past the end of the run
 * is missing.  Words and call stacks come from samples at random times of a
 * CPU, so each sample represents the same time.
 */
#ifndef MACHINE_SIM_EXPLAIN_H
#define MACHINE_SIM_EXPLAIN_H

#include "machine/sim/sim.h"

#define	SIM_CALLS_MAX	24

enum sim_loss {
	SIM_TRANSFER,	/* a line was transferred, or its transfer queued */
	SIM_SPIN,	/* a thread tried to get a lock */
	SIM_PARKED,	/* a thread slept until it got a lock: no CPU's time */
	SIM_NO_WORK,	/* a thread kept its CPU until there was work */
	SIM_LOSSES
};

struct sim_sample {
	const volatile void *word;	/* the lock, or in the line */
	const char	*lock;		/* class, or NULL: a transfer */
	enum sim_loss	 kind;
	void		*calls[SIM_CALLS_MAX];	/* innermost first */
	int		 ncalls;
};

struct sim_explained {
	psec_t		 all;		/* time of all CPUs */
	psec_t		 busy;		/* ... in which they ran a thread */
	psec_t		 lost[SIM_LOSSES];
	/* of all but SIM_NO_WORK */
	const struct sim_sample *samples;
	size_t		 nsamples;
	psec_t		 each;		/* time that a sample represents */
};

/* Where memory was allocated. */
struct sim_allocation {
	const char	*start;
	size_t		 size;
	void		*calls[SIM_CALLS_MAX];
	int		 ncalls;
};

/*
 * Starts to count if the run has sim_config.explain; time is what will be
 * explained, and sets the number of samples.
 */
void	 sim_explain_begin(nsec_t time);
/* The result so far; the samples stay valid until the next run. */
void	 sim_explain_end(struct sim_explained *);
/* The allocation that contains a word, or NULL. */
const struct sim_allocation *sim_explain_allocation(const volatile void *);
/* The name of the thread whose stack contains a word, or NULL. */
const char *sim_explain_stack(const volatile void *);

#endif /* MACHINE_SIM_EXPLAIN_H */
