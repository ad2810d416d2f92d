/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Presets of machines.  Each cost has its source.  An "estimate" was not
 * measured for this.  No cost was chosen to produce a result.
 *
 *	[D] David, Guerraoui, Trigonakis, "Everything you always wanted to know
 *	    about synchronization but were afraid to ask", 2013, table 2: the
 *	    Xeon, 2.13 GHz
 *	[F] Fog, "Instruction tables", Skylake
 *	[H] Hennessy, Patterson, "Computer architecture", appendix A: of integer
 *	    programs' instructions about one in five is a branch
 *	[I] Intel, "64 and IA-32 architectures optimization reference manual",
 *	    on PAUSE in Skylake: as many as 140 cycles
 *	[K] FreeBSD 6, kern/sched_4bsd.c: a quantum is hz / 10
 *	[L] Linux 6.6, kernel/sched/fair.c: sysctl_sched_base_slice, 0.75 ms
 *	    times 1 + ilog(CPUs), of which at most 8 count
 *	[M] McKenney, "Is parallel programming hard, and, if so, what can you do
 *	    about it?", 2023, chapter 3, on eight sockets of Xeon Platinum 8176,
 *	    2.1 GHz: blind CAS, minus that of a local line
 *	[N] Nagelhout, "Cost of lock instruction for Xeon", in Intel's forum on
 *	    parallel architectures: cmpxchg on a 2.8 GHz SMP Xeon
 *	[P] Peng and others, "Memory hierarchy performance measurement of
 *	    commercial dual-core desktop processors", 2008, on the Pentium D: two
 *	    such processors on one bus
 *	[U] Falsafi, Guerraoui, Picorel, Trigonakis, "Unlocking energy", 2016, on
 *	    futex(2): Xeon, 2.8 GHz
 *
 * [I], [L], [M] and [N] were looked up.  The numbers of the others were quoted
 * from memory and must be verified before a comparison with a real machine.
 *
 * Cycles of other machines are converted at their own frequency; all else uses
 * the machine's frequency, which is 3 GHz for generic.
 */
#include "machine/sim/presets.h"

#include <stddef.h>
#include <string.h>

/* Linux, on processors of these years. */
#define	LINUX_COSTS							\
	.yield = 300000,	/* estimate */				\
	.park = 750000,		/* 2100 cycles [U] */			\
	.unpark = 960000,	/* 2700 cycles [U] */			\
	.wake = 1540000,	/* the rest of 7000 cycles [U] */	\
	.jitter = 500000,	/* estimate */				\
	.timer = 2000000,	/* estimate */				\
	.change = 1200000,	/* estimate */				\
	.slice = 3000000000	/* 3 ms with 8 CPUs and more [L] */

#define	GENERIC_COSTS {							\
	.instruction = 220,	/* 1.5 a cycle: estimate */		\
	.copy = 60,		/* 16 GB/s: estimate */			\
	.alloc = 20000,		/* estimate */				\
	.clock = 20000,		/* estimate */				\
	.load = 0,		/* included in its instruction */ \
	.store = 0,		/* included: it waits in the store buffer */ \
	.rmw = 6000,		/* 18 cycles [F] */			\
	.fence = 11000,		/* 33 cycles [F] */			\
	.memory = 90000,	/* estimate */				\
	.sibling = 5000,	/* estimate */				\
	.socket = 51000,	/* 109 cycles [D] */			\
	.remote = 136000,	/* 289 cycles [D] */			\
	.relax = 46000,		/* 140 cycles [I] */			\
	LINUX_COSTS,							\
}

/* Two processors of the Pentium 4's time, 2.8 GHz, on one bus. */
#define	XEON_2005_COSTS {						\
	.instruction = 510,	/* 0.7 a cycle: estimate */		\
	.copy = 650,		/* 1.5 GB/s: estimate */		\
	.alloc = 60000,		/* estimate */				\
	.clock = 30000,		/* estimate */				\
	.rmw = 47000,		/* 132 cycles [N] */			\
	.fence = 47000,		/* the same: it waits for the same events */ \
	.memory = 130000,	/* estimate */				\
	.sibling = 5000,	/* estimate */				\
	.socket = 133000,	/* each socket has one core */		\
	.remote = 133000,	/* [P] */				\
	.relax = 15000,		/* estimate */				\
	.yield = 1000000,	/* estimate */				\
	.park = 2000000,	/* estimate */				\
	.unpark = 2000000,	/* estimate */				\
	.wake = 4000000,	/* estimate */				\
	.jitter = 1000000,	/* estimate */				\
	.timer = 6000000,	/* estimate */				\
	.change = 3000000,	/* estimate */				\
	.slice = 100000000000,	/* 100 ms [K] */			\
}

/* UltraSPARC II of 400 MHz on one bus; all but the last are estimates. */
#define	SPARC64_2006_COSTS {						\
	.instruction = 3500,	/* 0.7 a cycle */			\
	.copy = 4000,		/* 250 MB/s */				\
	.alloc = 300000,						\
	.clock = 50000,							\
	.rmw = 50000,		/* 20 cycles */				\
	.fence = 50000,							\
	.memory = 300000,						\
	.sibling = 300000,						\
	.socket = 300000,						\
	.remote = 300000,						\
	.relax = 10000,							\
	.yield = 5000000,						\
	.park = 10000000,						\
	.unpark = 10000000,						\
	.wake = 15000000,						\
	.jitter = 2000000,						\
	.timer = 20000000,						\
	.change = 10000000,						\
	.slice = 100000000000,	/* 100 ms [K] */			\
}

#define	SERVER_64_COSTS {						\
	.instruction = 317,	/* 1.5 a cycle: estimate */		\
	.copy = 60,		/* 16 GB/s: estimate */			\
	.alloc = 25000,		/* estimate */				\
	.clock = 20000,		/* estimate */				\
	.rmw = 7000,		/* [M] */				\
	.fence = 16000,		/* 33 cycles [F] */			\
	.memory = 90000,	/* estimate */				\
	.sibling = 200,		/* [M] */				\
	.socket = 40500,	/* [M] */				\
	.remote = 141800,	/* [M] */				\
	.relax = 67000,		/* 140 cycles [I] */			\
	LINUX_COSTS,							\
}

const struct sim_preset sim_presets[] = {
	{ .name = "generic", .what = "one socket of 128 cores",
	    .sockets = 1, .cores = 128, .threads = 1,
	    .costs = GENERIC_COSTS },
	/* The source does not name its processor. */
	{ .name = "four-2025", .what = "the four CPUs of \"Running TCP input "
	    "in parallel\", 2025, with the costs of generic",
	    .sockets = 1, .cores = 4, .threads = 1, .costs = GENERIC_COSTS },
	{ .name = "server-64", .what = "two sockets of 32 cores with two "
	    "threads each, as of 2017 and later",
	    .sockets = 2, .cores = 32, .threads = 2, .costs = SERVER_64_COSTS },
	/* The source does not name the Xeon model; hyper-threading was off. */
	{ .name = "xeon-2005", .what = "the two CPUs of \"Direct dispatch\", "
	    "2005: Xeons of one core, 2.8 GHz",
	    .sockets = 2, .cores = 1, .threads = 1, .costs = XEON_2005_COSTS },
	/* The source gives neither the processor nor its number. */
	{ .name = "sparc64-2006", .what = "the machine of \"Fine-grained UNIX "
	    "sockets\", 2006: twelve CPUs, guessed",
	    .sockets = 12, .cores = 1, .threads = 1,
	    .costs = SPARC64_2006_COSTS },
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
