/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of lost time (explain.h): totals, samples, and the owners of
 * memory.
 */
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#include "machine/sim/explain.h"
#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	SAMPLES		20000	/* wanted, if all time is lost */
#define	LINE_SIZE	64

/* An array that grows. */
struct list {
	void		*items;
	size_t		 count, room;
};

static struct {
	bool		 counts;	/* after sim_explain_begin() */
	psec_t		 begun, busy;
	psec_t		 lost[SIM_LOSSES];
	psec_t		 each, left[SIM_LOSSES];	/* until the next sample */
	uint64_t	 chance;
	struct list	 samples, allocations;
	/* allocation of each line of the heap, counted from 1 */
	uint32_t	*owners;
	size_t		 nowners;
} explain;

static void *
list_add(struct list *l, size_t size)
{
	if (l->count == l->room) {
		l->room = l->room != 0 ? 2 * l->room : 1024;
		l->items = reallocarray(l->items, l->room, size);
		if (l->items == NULL)
			abort();
	}
	return (memset((char *)l->items + size * l->count++, 0, size));
}

void
sim_explain_reset(void)
{
	void *here[1];

	free(explain.samples.items);
	free(explain.allocations.items);
	free(explain.owners);
	memset(&explain, 0, sizeof(explain));
	if (sim.config.explain)
		(void)backtrace(here, 1);	/* the first loads a library */
}

void
sim_explain_begin(nsec_t time)
{
	sim_settle();
	explain.counts = sim.config.explain;
	explain.begun = sim.cpu->sc_clock;
	explain.each = 1 + time * PSEC_PER_NSEC * sim.config.ncpus / SAMPLES;
	explain.chance = splitmix(sim.config.seed ^ 1);
	for (unsigned i = 0; i < SIM_LOSSES; i++)
		explain.left[i] = explain.each;
}

void
sim_explain_end(struct sim_explained *e)
{
	sim_settle();
	memset(e, 0, sizeof(*e));
	e->all = (sim.cpu->sc_clock - explain.begun) * sim.config.ncpus;
	e->busy = explain.busy < e->all ? explain.busy : e->all;
	memcpy(e->lost, explain.lost, sizeof(e->lost));
	e->samples = explain.samples.items;
	e->nsamples = explain.samples.count;
	e->each = explain.each;
	explain.counts = false;
}

void
sim_explain_busy(psec_t time)
{
	explain.busy += time;
}

static void
take_sample(enum sim_loss kind, const volatile void *word, const char *lock)
{
	struct sim_sample *s = list_add(&explain.samples, sizeof(*s));

	s->word = word;
	s->lock = lock;
	s->kind = kind;
	s->ncalls = backtrace(s->calls, SIM_CALLS_MAX);
}

/* Samples are each apart on average, and never at regular distances. */
void
sim_explain_lost(enum sim_loss kind, const volatile void *word,
    const char *lock, psec_t time)
{
	if (!explain.counts)
		return;
	explain.lost[kind] += time;
	if (kind == SIM_NO_WORK)
		return;
	while (time >= explain.left[kind]) {
		time -= explain.left[kind];
		explain.left[kind] = 1 + splitmix(explain.chance +=
		    SPLITMIX_STEP) % (2 * explain.each);
		take_sample(kind, word, lock);
	}
	explain.left[kind] -= time;
}

void
sim_explain_allocated(const char *start, size_t size, size_t offset,
    size_t heap)
{
	struct sim_allocation *a;

	if (!sim.config.explain)
		return;
	if (explain.owners == NULL) {
		explain.nowners = heap / LINE_SIZE;
		explain.owners = calloc(explain.nowners,
		    sizeof(*explain.owners));
		if (explain.owners == NULL)
			abort();
	}
	a = list_add(&explain.allocations, sizeof(*a));
	a->start = start;
	a->size = size;
	a->ncalls = backtrace(a->calls, SIM_CALLS_MAX);
	for (size_t i = offset / LINE_SIZE; i * LINE_SIZE < offset + size; i++)
		explain.owners[i] = (uint32_t)explain.allocations.count;
}

const struct sim_allocation *
sim_explain_allocation(const volatile void *word)
{
	const size_t at = sim_memory_offset(word) / LINE_SIZE;
	const struct sim_allocation *a;

	if (at >= explain.nowners || explain.owners[at] == 0)
		return (NULL);
	a = (const struct sim_allocation *)explain.allocations.items +
	    explain.owners[at] - 1;
	return ((uintptr_t)word - (uintptr_t)a->start < a->size ? a : NULL);
}

const char *
sim_explain_stack(const volatile void *word)
{
	const struct mach_thread *mt;

	SLIST_FOREACH(mt, &sim.all, mt_all)
		if (mt->mt_stack != NULL && (uintptr_t)word -
		    (uintptr_t)mt->mt_stack < sim_stack_size())
			return (mt->mt_name);
	return (NULL);
}

/* The pending cost belongs to what was before. */
static void
await(const volatile void *what, const char *class)
{
	if (!explain.counts)
		return;
	sim_settle();
	sim.cpu->sc_running->mt_awaited = what;
	sim.cpu->sc_running->mt_class = class;
}

void
sim_lock_waits(const volatile void *lock, const char *class)
{
	await(lock, class);
}

void
sim_work_waits(const volatile void *work)
{
	await(work, NULL);
}

void
sim_waited(void)
{
	await(NULL, NULL);
}
