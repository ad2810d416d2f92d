/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a simulated machine consists of, and what everything costs there.
 */
#ifndef MACHINE_SIM_PRESETS_H
#define MACHINE_SIM_PRESETS_H

#include <stdint.h>

/* Picoseconds: a nanosecond is too long for an instruction. */
typedef uint64_t psec_t;

#define	PSEC_PER_NSEC	1000ULL
#define	PSEC_PER_USEC	1000000ULL

/* All in picoseconds; machine/sim/presets.c says where values come from. */
#define	SIM_COSTS(X)							\
	X(instruction, "an instruction, on average")			\
	X(copy, "a byte that memcpy() and its like move or set")	\
	X(alloc, "an allocation of memory, or freeing it")		\
	X(clock, "a look at the clock")					\
	X(load, "an atomic load of a line that is here")		\
	X(store, "an atomic store, wherever the line is")		\
	X(rmw, "an atomic operation on a line that is here")		\
	X(fence, "a full fence")					\
	X(memory, "a line from memory")					\
	X(sibling, "a line from another CPU of the same core")		\
	X(socket, "a line from another core of the same socket")	\
	X(remote, "a line from another socket")				\
	X(relax, "a turn of a spin loop")				\
	X(yield, "a call that lets others go first")			\
	X(park, "a call that parks, until another thread may run")	\
	X(unpark, "a call that wakes, whether anybody is parked or not") \
	X(wake, "from that call until an idle CPU runs who was woken")	\
	X(jitter, "most by which that is longer, at random")		\
	X(timer, "from a deadline until an idle CPU runs who waited")	\
	X(change, "a CPU goes from one thread to another")		\
	X(slice, "how long a thread runs while others want its CPU")

struct sim_costs {
#define	X(name, what)	psec_t name;
	SIM_COSTS(X)
#undef X
};

/*
 * CPU n is thread n / (sockets * cores) of its core, so that the first CPUs
 * are cores of their own, and those of a socket follow one another.
 */
struct sim_preset {
	const char	*name, *what;
	unsigned	 sockets, cores, threads;	/* of what is before */
	struct sim_costs costs;
};
extern const struct sim_preset sim_presets[];
extern const unsigned sim_npresets;

/* NULL: there is none of that name. */
const struct sim_preset *sim_preset_find(const char *name);
/*
 * One in a file (machine/sim/preset_file.c), in place of the one that was read
 * before; NULL: it has said why not.
 */
const struct sim_preset *sim_preset_read(const char *path);
/* How many CPUs it has. */
unsigned sim_preset_cpus(const struct sim_preset *);

#endif /* MACHINE_SIM_PRESETS_H */
