/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated machine: virtual CPUs, each with its own clock, in one host
 * thread.  The next CPU to run is the one whose clock is the earliest.  No
 * real time is measured, so two runs of one program with one seed are
 * identical, event for event (docs/explanation/simulator.md).
 */
#ifndef MACHINE_SIM_SIM_H
#define MACHINE_SIM_SIM_H

#include <stdio.h>

#include "machine/machine.h"
#include "machine/sim/presets.h"

#define	SIM_CPUS_MAX	128

/* Events that are logged as lines and counted in the report. */
#define	SIM_EVENTS(X)							\
	X(CREATE, "create")	/* a thread is created */ \
	X(EXIT, "exit")		/* ... ends */				\
	X(RUN, "run")		/* ... gets a CPU */			\
	X(PREEMPT, "preempt")	/* ... has used its time slice */ \
	X(YIELD, "yield")	/* ... yields the CPU */		\
	X(MIGRATE, "migrate")	/* ... runs on another CPU than before */ \
	X(PARK, "park")		/* ... parks */ \
	X(WAKE, "wake")		/* ... is unparked */	\
	X(TIMEOUT, "timeout")	/* ... reached its deadline while parked */ \
	X(MEMORY, "memory")	/* a cache line is fetched from memory */ \
	X(SIBLING, "sibling")	/* ... from a CPU of the same core */	\
	X(SOCKET, "socket")	/* ... from the same socket */		\
	X(REMOTE, "remote")	/* ... from another socket */

enum sim_event {
#define	X(id, name)	SIM_##id,
	SIM_EVENTS(X)
#undef X
	SIM_EVENT_COUNT
};
extern const char *const sim_event_names[SIM_EVENT_COUNT];

struct sim_config {
	const struct sim_preset *machine;
	unsigned	 ncpus;		/* number of CPUs to use */
	uint64_t	 seed;
	FILE		*log;		/* one line for each event, or NULL */
	bool		 explain;	/* record what explain.h needs */
};

struct sim_report {
	uint64_t	 hash;		/* hash of all events so far */
	nsec_t		 clock;		/* clock of the calling CPU */
	uint64_t	 atomics;	/* operations on atomic words */
	uint64_t	 locks;		/* acquired */
	uint64_t	 blocks;	/* basic blocks executed */
	uint64_t	 instructions;	/* ... and their instructions */
	uint64_t	 events[SIM_EVENT_COUNT];
};

/* The scheduling order. */
enum sim_order {
	SIM_CLOCKS,		/* the CPU whose clock is the earliest */
	SIM_RANDOM, SIM_PCT	/* search.c */
};

#define	SIM_DEPTH_MAX	16

struct sim_search {
	enum sim_order	 order;
	uint64_t	 seed;
	unsigned	 depth;		/* of SIM_PCT: 1 to SIM_DEPTH_MAX */
	uint64_t	 points;	/* expected number of points: min 1 */
	bool		 blocks;	/* each basic block is a point, too */
	/*
	 * Limits: reaching one is reported as a hang, and the process aborts.
	 */
	uint64_t	 limit;		/* number of points */
	nsec_t		 hangs;		/* virtual time */
};

/*
 * Runs fn(arg) as the first thread of a new machine and returns with the
 * report when fn returns; other threads stop where they are.  Returns EINVAL
 * if the preset does not have these CPUs.  The calling program must be
 * single-threaded.
 */
int	 sim_run(const struct sim_config *, void (*fn)(void *), void *arg,
	    struct sim_report *);
/* The report so far, for code that runs on the machine. */
void	 sim_report(struct sim_report *);

/*
 * Switches to another scheduling order and starts checks of freed memory.  A
 * write to freed memory, or a wait without end, aborts the process.
 */
void	 sim_search(const struct sim_search *);
uint64_t sim_search_points(void);	/* passed since sim_search() */
/* Aborts if freed memory has been written to. */
void	 sim_memory_check(void);

#endif /* MACHINE_SIM_SIM_H */
