/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines.  Beside each cost stands where it comes from; "estimate" is what
 * it says: nobody has measured it for this.  None of them was chosen so that
 * a result comes out.
 *
 *	[D] David, Guerraoui, Trigonakis, "Everything you always wanted to know
 *	    about synchronization but were afraid to ask", 2013, table 2: the
 *	    Xeon, 2.13 GHz
 *	[F] Fog, "Instruction tables", Skylake
 *	[H] Hennessy, Patterson, "Computer architecture", appendix A: of integer
 *	    programs' instructions about one in five is a branch
 *	[I] Intel, "64 and IA-32 architectures optimization reference manual",
 *	    on PAUSE in Skylake: as many as 140 cycles
 *	[L] Linux 6.6, kernel/sched/fair.c: sysctl_sched_base_slice, 0.75 ms
 *	    times 1 + ilog(CPUs), of which at most 8 count
 *	[U] Falsafi, Guerraoui, Picorel, Trigonakis, "Unlocking energy", 2016, on
 *	    futex(2): Xeon, 2.8 GHz
 *
 * [I] and [L] were looked up; the numbers of the others were quoted from memory
 * and are to be looked up before anybody compares this with a real machine.
 *
 * Cycles of other machines are taken at the frequency of theirs, all else at
 * 3 GHz.
 */
#include "machine/sim/presets.h"

#include <stddef.h>
#include <string.h>

#define	GENERIC_COSTS {							\
	.instruction = 220,	/* 1.5 a cycle: estimate */		\
	.copy = 60,		/* 16 GB/s: estimate */			\
	.alloc = 20000,		/* estimate */				\
	.clock = 20000,		/* estimate */				\
	.load = 0,		/* in its instruction */		\
	.store = 0,		/* the same: it waits in a buffer */	\
	.rmw = 6000,		/* 18 cycles [F] */			\
	.fence = 11000,		/* 33 cycles [F] */			\
	.memory = 90000,	/* estimate */				\
	.sibling = 5000,	/* estimate */				\
	.socket = 51000,	/* 109 cycles [D] */			\
	.remote = 136000,	/* 289 cycles [D] */			\
	.relax = 46000,		/* 140 cycles [I] */			\
	.yield = 300000,	/* estimate */				\
	.park = 750000,		/* 2100 cycles [U] */			\
	.unpark = 960000,	/* 2700 cycles [U] */			\
	.wake = 1540000,	/* the rest of 7000 cycles [U] */	\
	.jitter = 500000,	/* estimate */				\
	.timer = 2000000,	/* estimate */				\
	.change = 1200000,	/* estimate */				\
	.slice = 3000000000,	/* 3 ms with 8 CPUs and more [L] */	\
}

const struct sim_preset sim_presets[] = {
	{ .name = "generic", .what = "one socket of 128 cores",
	    .sockets = 1, .cores = 128, .threads = 1,
	    .costs = GENERIC_COSTS },
	/* Its processor is not published. */
	{ .name = "four-2025", .what = "the four CPUs of \"Running TCP input "
	    "in parallel\", 2025, with the costs of generic",
	    .sockets = 1, .cores = 4, .threads = 1, .costs = GENERIC_COSTS },
};
const unsigned sim_npresets = sizeof(sim_presets) / sizeof(sim_presets[0]);

const struct sim_preset *
sim_preset_find(const char *name)
{
	for (unsigned i = 0; i < sim_npresets; i++)
		if (strcmp(sim_presets[i].name, name) == 0)
			return (&sim_presets[i]);
	return (NULL);
}

unsigned
sim_preset_cpus(const struct sim_preset *p)
{
	return (p->sockets * p->cores * p->threads);
}
