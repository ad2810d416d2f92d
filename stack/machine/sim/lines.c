/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache lines of atomic words: which CPUs have each, and what it costs to get
 * one there.
 *
 * A line is with one CPU that may write to it, or with several that may only
 * read.  Whoever loads from one that it has not gets it from the CPU that
 * wrote to it last; whoever writes takes it from all others, of which the
 * farthest counts.  A line goes from one CPU to one other at a time: the next
 * waits, which is what makes a counter of all CPUs slower than none.  A plain
 * store goes on without its line; an atomic operation does not.  Caches have
 * room for all lines.
 */
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	LINE_SIZE	64
#define	LINES_FIRST	(1U << 14)	/* room at first; a power of two */

struct line {
	uintptr_t	 number;	/* of the line, or 0: none here */
	psec_t		 arrives;	/* where it goes to now, if it does */
	uint64_t	 holders[2];	/* a bit for each CPU */
	unsigned	 owner;		/* wrote to it last */
};

/* Open addressing: a line is at its hash's place, or behind it. */
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

/* The line of a word; one that is new has no holders. */
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

/* How far away the farthest holder but this CPU is; SIM_MEMORY: none is. */
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

/* It comes here when it has been where it goes before. */
static void
fetch(struct line *l, const struct sim_cpu *cpu, enum sim_event from)
{
	if (l->arrives < cpu->sc_clock)
		l->arrives = cpu->sc_clock;
	l->arrives += cost_of(from);
	sim_event(from, l->arrives, cpu, cpu->sc_running->mt_number);
}

/* False: it is here. */
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

/* Nobody else has it from now on. */
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

/* From now until its line is here. */
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
