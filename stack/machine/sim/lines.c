/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache lines of atomic words: which CPUs hold each line, and the cost of
 * fetching it.
 *
 * A line is held by one CPU that may write, or by several that may only read.
 * A load of a missing line fetches it from its last writer.  A write takes it
 * from all other CPUs; the farthest determines the cost.  A line moves between
 * two CPUs at a time, and the next CPU waits, which makes a counter shared by
 * all CPUs slow.  A plain store does not wait for its line; an atomic
 * operation does.  Caches have room for all lines.
 */
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	LINE_SIZE	64
#define	LINES_FIRST	(1U << 14)	/* initial size; a power of two */

struct line {
	uintptr_t	 number;	/* of the line, or 0: free entry */
	psec_t		 arrives;	/* when its current transfer ends */
	uint64_t	 holders[2];	/* one bit for each CPU */
	unsigned	 owner;		/* last writer */
};

/* Open addressing with linear probing. */
static struct {
	struct line	*table;
	size_t		 size, count;
} lines;

void
sim_lines_reset(void)
{
	free(lines.table);
	lines.size = LINES_FIRST;
	lines.count = 0;
	lines.table = calloc(lines.size, sizeof(*lines.table));
	if (lines.table == NULL)
		abort();
}

static struct line *
find_place(uintptr_t number)
{
	size_t i = splitmix(number) & (lines.size - 1);

	while (lines.table[i].number != number && lines.table[i].number != 0)
		i = (i + 1) & (lines.size - 1);
	return (&lines.table[i]);
}

static void
grow(void)
{
	struct line *old = lines.table;
	size_t n = lines.size;

	lines.size *= 2;
	lines.table = calloc(lines.size, sizeof(*lines.table));
	if (lines.table == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		if (old[i].number != 0)
			*find_place(old[i].number) = old[i];
	free(old);
}

/* The line of a word; a new line has no holders. */
static struct line *
find_line(const volatile void *word)
{
	const uintptr_t number = (uintptr_t)word / LINE_SIZE;
	struct line *l = find_place(number);

	if (l->number != 0)
		return (l);
	if (2 * ++lines.count > lines.size) {
		grow();
		l = find_place(number);
	}
	l->number = number;
	return (l);
}

_Static_assert(SIM_CPUS_MAX == 2 * 64, "two words have all CPUs' bits");

static bool
holds(const struct line *l, unsigned cpu)
{
	return ((l->holders[cpu / 64] >> cpu % 64 & 1) != 0);
}

static void
add_holder(struct line *l, unsigned cpu)
{
	l->holders[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static enum sim_event
distance(const struct sim_cpu *a, const struct sim_cpu *b)
{
	if (a->sc_core == b->sc_core)
		return (SIM_SIBLING);
	return (a->sc_socket == b->sc_socket ? SIM_SOCKET : SIM_REMOTE);
}

/* Distance of the farthest other holder; SIM_MEMORY: none. */
static enum sim_event
farthest(const struct line *l, const struct sim_cpu *cpu)
{
	enum sim_event most = SIM_MEMORY, d;

	for (unsigned i = 0; i < sim.config.ncpus; i++) {
		if (!holds(l, i) || i == cpu->sc_number)
			continue;
		d = distance(cpu, &sim.cpus[i]);
		if (d > most)
			most = d;
	}
	return (most);
}

static psec_t
cost_of(enum sim_event from)
{
	switch (from) {
	case SIM_SIBLING:
		return (SIM_COST(sibling));
	case SIM_SOCKET:
		return (SIM_COST(socket));
	case SIM_REMOTE:
		return (SIM_COST(remote));
	default:
		return (SIM_COST(memory));
	}
}

/* Starts a transfer to this CPU after the current one. */
static void
fetch(struct line *l, const struct sim_cpu *cpu, enum sim_event from)
{
	if (l->arrives < cpu->sc_clock)
		l->arrives = cpu->sc_clock;
	l->arrives += cost_of(from);
	sim_event(from, l->arrives, cpu, cpu->sc_running->mt_number);
}

/* False: this CPU holds the line. */
static bool
fetch_to_read(struct line *l, const struct sim_cpu *cpu)
{
	const unsigned self = cpu->sc_number;
	bool is_new = l->holders[0] == 0 && l->holders[1] == 0;

	if (holds(l, self))
		return (false);
	fetch(l, cpu, is_new ? SIM_MEMORY :
	    distance(cpu, &sim.cpus[l->owner]));
	if (is_new)
		l->owner = self;
	add_holder(l, self);
	return (true);
}

/* Afterwards no other CPU holds the line. */
static void
fetch_to_write(struct line *l, const struct sim_cpu *cpu)
{
	const unsigned self = cpu->sc_number;

	if (l->holders[self / 64] == UINT64_C(1) << self % 64 &&
	    l->holders[1 - self / 64] == 0)
		return;
	fetch(l, cpu, farthest(l, cpu));
	l->owner = self;
	l->holders[0] = l->holders[1] = 0;
	add_holder(l, l->owner);
}

/* Time until the line arrives. */
static psec_t
wait_for(const struct line *l, const struct sim_cpu *cpu)
{
	return (l->arrives > cpu->sc_clock ? l->arrives - cpu->sc_clock : 0);
}

void
sim_access(const volatile void *word, enum sim_access how)
{
	struct line *l;

	if (sim.cpu == NULL)
		return;		/* there is no machine yet */
	sim_sync();
	sim.report.atomics++;
	l = find_line(word);
	switch (how) {
	case SIM_LOAD:
		if (fetch_to_read(l, sim.cpu))
			sim_charge(wait_for(l, sim.cpu));
		sim_charge(SIM_COST(load));
		break;
	case SIM_STORE:
		fetch_to_write(l, sim.cpu);
		sim_charge(SIM_COST(store));
		break;
	case SIM_RMW:
		fetch_to_write(l, sim.cpu);
		sim_charge(wait_for(l, sim.cpu) + SIM_COST(rmw));
		break;
	}
}

void
sim_lock_got(void)
{
	sim.report.locks++;
}

void
sim_fence(void)
{
	sim_charge(SIM_COST(fence));
	sim_sync();
}
