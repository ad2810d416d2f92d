/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Presets of the simulated machine: its topology and the costs of operations.
 */
#ifndef MACHINE_SIM_PRESETS_H
#define MACHINE_SIM_PRESETS_H

#include <stdint.h>

/* Picoseconds: one instruction takes less than a nanosecond. */
typedef uint64_t psec_t;

#define	PSEC_PER_NSEC	1000ULL
#define	PSEC_PER_USEC	1000000ULL

/* Costs in picoseconds; machine/sim/presets.c has the sources of the values. */
#define	SIM_COSTS(X)							\
	X(instruction, "an instruction, on average")			\
	X(copy, "a byte moved or set by memcpy() and similar functions") \
	X(alloc, "an allocation of memory, or freeing it")		\
	X(clock, "reading the clock")					\
	X(load, "an atomic load of a local line")			\
	X(store, "an atomic store, to any line")			\
	X(rmw, "an atomic operation on a local line")			\
	X(fence, "a full fence")					\
	X(memory, "a line from memory")					\
	X(sibling, "a line from another CPU of the same core")		\
	X(socket, "a line from another core of the same socket")	\
	X(remote, "a line from another socket")				\
	X(relax, "a turn of a spin loop")				\
	X(yield, "a yield")						\
	X(park, "a park, until another thread may run")			\
	X(unpark, "an unpark, with or without a parked thread")		\
	X(wake, "from the unpark until an idle CPU runs the thread")	\
	X(jitter, "max random addition to that")			\
	X(timer, "from a deadline until an idle CPU runs the thread")	\
	X(change, "a thread switch")					\
	X(slice, "the time slice if other threads are queued")

struct sim_costs {
#define	X(name, what)	psec_t name;
	SIM_COSTS(X)
#undef X
};

/*
 * CPU n is hardware thread n / (sockets * cores) of its core.  The first CPUs
 * are therefore different cores, and CPUs of a socket have consecutive
 * numbers.
 */
struct sim_preset {
	const char	*name, *what;
	/* sockets of the machine, cores of a socket, threads of a core */
	unsigned	 sockets, cores, threads;
	struct sim_costs costs;
};
extern const struct sim_preset sim_presets[];
extern const unsigned sim_npresets;

/* Returns NULL for an unknown name. */
const struct sim_preset *sim_preset_find(const char *name);
/*
 * Reads a preset from a file (machine/sim/preset_file.c) and replaces the
 * preset read before.  On an error, prints the reason and returns NULL.
 */
const struct sim_preset *sim_preset_read(const char *path);
/* Number of CPUs of a preset. */
unsigned sim_preset_cpus(const struct sim_preset *);

#endif /* MACHINE_SIM_PRESETS_H */
