/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache lines of atomic words: which CPUs hold each line, and the cost of
 * fetching it.
 *
 * A line is held by one CPU that may write, or by several that may only read.
 * A load of a missing line fetches it from its last writer.  If that has
 * written to it since it arrived, the line moves, because such a line is mostly
 * written again (Stenstrom, Brorsson, Sandberg, "An adaptive cache coherence
 * protocol optimized for migratory sharing", 1993).  Else both have a copy.  A
 * write takes the line from all other CPUs; the farthest determines the cost.
 *
 * A line moves between two CPUs at a time, and the others queue for it.  An
 * operation takes effect when its transfer begins: until then the CPU that has
 * the line continues with it.  A line stays where it has arrived for the time
 * of an atomic operation, because a CPU completes the operations that it has
 * begun before it answers another CPU.  If the CPU writes within that time, the
 * line stays until the write is complete.  A compare-and-swap shortly after its
 * load therefore succeeds, as on real machines.
 *
 * A plain store does not wait for its line.  Caches have room for all lines.
 */
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	LINE_SIZE	64
#define	LINES_FIRST	(1U << 14)	/* initial size; a power of two */

struct line {
	uintptr_t	 number;	/* of the line, or 0: free entry */
	psec_t		 arrives;	/* when its last queued transfer ends */
	psec_t		 here;		/* when it arrives at its keeper */
	psec_t		 delay;		/* added to queued transfers so far */
	unsigned	 keeper;	/* CPU that received it last */
	uint64_t	 holders[2];	/* one bit for each CPU */
	unsigned	 owner;		/* last writer */
	bool		 written;	/* by the owner, which has the only copy */
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

/* True if this CPU can operate on its copy of the line. */
static bool
suffices(const struct line *l, unsigned cpu, enum sim_access how)
{
	if (how == SIM_LOAD)
		return (holds(l, cpu));
	return (l->holders[cpu / 64] == UINT64_C(1) << cpu % 64 &&
	    l->holders[1 - cpu / 64] == 0);
}

/* Where a missing line comes from. */
static enum sim_event
source(const struct line *l, const struct sim_cpu *cpu, enum sim_access how)
{
	if (how != SIM_LOAD)
		return (farthest(l, cpu));
	return (l->holders[0] == 0 && l->holders[1] == 0 ? SIM_MEMORY :
	    distance(cpu, &sim.cpus[l->owner]));
}

/*
 * Adds a transfer of this length to the queue and returns when it begins.  The
 * CPU where the line stays is served before the queue, which moves back.  In a
 * search an operation is one point and takes effect at once: nobody waits.
 */
static psec_t
enqueue(struct line *l, const struct sim_cpu *cpu, psec_t length)
{
	const psec_t now = cpu->sc_clock,
	    stay = sim.order == SIM_CLOCKS ? SIM_COST(rmw) : 0;
	psec_t begins;

	if (l->keeper == cpu->sc_number && now < l->here + stay) {
		const psec_t longer = now + length > l->here ?
		    now + length - l->here : 0;

		l->delay += longer;
		l->arrives += longer;
		return (now);
	}
	begins = l->arrives + (l->arrives > 0 ? stay : 0);
	if (begins < now)
		begins = now;
	l->arrives = begins + length;
	return (begins);
}

/* Waits for a queued transfer.  Other CPUs run meanwhile. */
static struct line *
wait_until(psec_t begins, struct line *l, const volatile void *word)
{
	psec_t delay = l->delay;

	while (begins > sim.cpu->sc_clock) {
		sim_charge(begins - sim.cpu->sc_clock);
		if (sim.order != SIM_CLOCKS)
			break;
		sim_sync();
		l = find_line(word);	/* the table may have grown */
		begins += l->delay - delay;
		delay = l->delay;
	}
	return (l);
}

/* Moves the line to this CPU; a plain store does not wait for that. */
static struct line *
fetch(struct line *l, const volatile void *word, enum sim_access how)
{
	const enum sim_event from = source(l, sim.cpu, how);
	const psec_t length = cost_of(from),
	    begins = enqueue(l, sim.cpu, length);
	const struct mach_thread *mt = sim.cpu->sc_running;
	psec_t asked = sim.cpu->sc_clock;
	unsigned self;

	sim_event(from, begins + length, sim.cpu,
	    sim.cpu->sc_running->mt_number);
	if (how != SIM_STORE) {
		l = wait_until(begins, l, word);
		if (mt->mt_awaited == NULL)
			sim_explain_lost(SIM_TRANSFER, word, NULL,
			    sim.cpu->sc_clock - asked + length);
		sim_charge(length);
	}
	self = sim.cpu->sc_number;
	if (how != SIM_LOAD || (l->written && sim.order == SIM_CLOCKS))
		l->holders[0] = l->holders[1] = 0;
	l->written = false;
	if (l->holders[0] == 0 && l->holders[1] == 0)
		l->owner = self;
	add_holder(l, self);
	l->keeper = self;
	l->here = how == SIM_STORE ? begins + length :
	    sim.cpu->sc_clock + sim.pending;
	return (l);
}

static psec_t
own_cost(enum sim_access how)
{
	switch (how) {
	case SIM_LOAD:
		return (SIM_COST(load));
	case SIM_STORE:
		return (SIM_COST(store));
	default:
		return (SIM_COST(rmw));
	}
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
	if (!suffices(l, sim.cpu->sc_number, how))
		l = fetch(l, word, how);
	else if (how == SIM_RMW && l->here > sim.cpu->sc_clock)
		sim_charge(l->here - sim.cpu->sc_clock); /* after a store */
	if (how != SIM_LOAD)
		l->written = true;
	sim_charge(own_cost(how));
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
