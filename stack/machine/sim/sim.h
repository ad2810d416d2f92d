/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated machine: several virtual CPUs, each with a clock of its own,
 * in one thread of the host.  It always goes on with the CPU whose clock is
 * behind all others, and it measures no real time, so that two runs of one
 * program with one seed are the same, event for event (docs/explanation/simulator.md).
 */
#ifndef MACHINE_SIM_SIM_H
#define MACHINE_SIM_SIM_H

#include <stdio.h>

#include "machine/machine.h"
#include "machine/sim/presets.h"

#define	SIM_CPUS_MAX	128

/* What the log has lines of, and the report counts. */
#define	SIM_EVENTS(X)							\
	X(CREATE, "create")	/* a thread is made */			\
	X(EXIT, "exit")		/* ... ends */				\
	X(RUN, "run")		/* ... gets a CPU */			\
	X(PREEMPT, "preempt")	/* ... has had its slice */		\
	X(YIELD, "yield")	/* ... lets others go first */		\
	X(MIGRATE, "migrate")	/* ... goes on another CPU than before */ \
	X(PARK, "park")		/* ... waits */				\
	X(WAKE, "wake")		/* ... need not wait any more */	\
	X(TIMEOUT, "timeout")	/* ... has waited until its deadline */	\
	X(MEMORY, "memory")	/* a line comes from memory */		\
	X(SIBLING, "sibling")	/* ... from a CPU of the same core */	\
	X(SOCKET, "socket")	/* ... of the same socket */		\
	X(REMOTE, "remote")	/* ... of another one */

enum sim_event {
#define	X(id, name)	SIM_##id,
	SIM_EVENTS(X)
#undef X
	SIM_EVENT_COUNT
};
extern const char *const sim_event_names[SIM_EVENT_COUNT];

struct sim_config {
	const struct sim_preset *machine;
	unsigned	 ncpus;		/* the first so many of them */
	uint64_t	 seed;
	FILE		*log;		/* a line for each event, or NULL */
};

struct sim_report {
	uint64_t	 hash;		/* of all events so far */
	nsec_t		 clock;		/* of the calling CPU */
	uint64_t	 atomics;	/* operations on atomic words */
	uint64_t	 locks;		/* acquired */
	uint64_t	 blocks;	/* basic blocks of code */
	uint64_t	 instructions;	/* ... and what they consist of */
	uint64_t	 events[SIM_EVENT_COUNT];
};

/* Whose turn it is. */
enum sim_order {
	SIM_CLOCKS,		/* the CPU's whose clock is behind all others */
	SIM_RANDOM, SIM_PCT	/* search.c */
};

#define	SIM_DEPTH_MAX	16

struct sim_search {
	enum sim_order	 order;
	uint64_t	 seed;
	unsigned	 depth;		/* of SIM_PCT: 1 to SIM_DEPTH_MAX */
	uint64_t	 points;	/* that are expected: at least 1 */
	bool		 blocks;	/* each basic block is a point, too */
	/* It is said that there is no end, and the process aborts: */
	uint64_t	 limit;		/* after so many points */
	nsec_t		 hangs;		/* after so long in virtual time */
};

/*
 * A machine, empty at first, whose first thread runs fn(arg); returns with the
 * report when that does, and other threads are where they are then.  EINVAL:
 * there are no such CPUs.  Programs with threads of their own cannot.
 */
int	 sim_run(const struct sim_config *, void (*fn)(void *), void *arg,
	    struct sim_report *);
/* The same so far, for whoever runs on it. */
void	 sim_report(struct sim_report *);

/*
 * From now on threads take turns in another order, and memory that was freed
 * is watched: who writes there, or waits for ever, aborts the process.
 */
void	 sim_search(const struct sim_search *);
uint64_t sim_search_points(void);	/* passed since then */
/* Aborts if memory that was freed has been written to. */
void	 sim_memory_check(void);

#endif /* MACHINE_SIM_SIM_H */
