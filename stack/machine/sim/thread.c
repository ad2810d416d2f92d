/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/sim/sim_private.h"

_Thread_local struct thread *mach_self;
_Thread_local intptr_t mach_counters;

static bool pinned;
static unsigned next_pin;

/* Frees the threads of an earlier machine. */
void
sim_threads_reset(void)
{
	struct mach_thread *mt;

	while ((mt = SLIST_FIRST(&sim.all)) != NULL) {
		SLIST_REMOVE_HEAD(&sim.all, mt_all);
		free(mt);
	}
	pinned = false;
	next_pin = 0;
}

static void
thread_start(void)
{
	struct mach_thread *self = sim.cpu->sc_running;

	self->mt_fn(self->mt_arg);
	if (self->mt_exit != NULL)
		self->mt_exit(mach_self);
	sim_leave();
}

struct mach_thread *
sim_thread_new(const char *name, int cpu, void (*fn)(void *), void *arg)
{
	struct mach_thread *mt = calloc(1, sizeof(*mt));
	size_t size;

	if (mt == NULL)
		return (NULL);
	mt->mt_stack = sim_stack_take(&size);
	if (mt->mt_stack == NULL) {
		free(mt);
		return (NULL);
	}
	snprintf(mt->mt_name, sizeof(mt->mt_name), "%s", name);
	mt->mt_number = ++sim.nthreads;
	mt->mt_bound = cpu;
	mt->mt_fn = fn;
	mt->mt_arg = arg;
	context_create(&mt->mt_context, thread_start, mt->mt_stack, size);
	SLIST_INSERT_HEAD(&sim.all, mt, mt_all);
	return (mt);
}

void
mach_placement_set(bool pin)
{
	pinned = pin;
}

int
mach_thread_create(const char *name, int cpu, void (*fn)(void *), void *arg,
    struct mach_thread **mtp)
{
	if (pinned && cpu == MACH_CPU_ANY)
		cpu = (int)(next_pin++ % mach_ncpus());
	sim_sync();
	*mtp = sim_thread_new(name, cpu, fn, arg);
	if (*mtp == NULL)
		return (ENOMEM);
	sim_start(*mtp);
	return (0);
}

void
mach_thread_join(struct mach_thread *mt)
{
	sim_sync();
	if (!mt->mt_ended) {
		mt->mt_joiner = sim.cpu->sc_running;
		(void)sim_wait(NULL, PSEC_FOREVER);
	}
	SLIST_REMOVE(&sim.all, mt, mach_thread, mt_all);
	free(mt);
}

void
mach_thread_attach(struct thread *td, void (*on_exit)(struct thread *))
{
	mach_self = td;
	sim.cpu->sc_running->mt_exit = on_exit;
}

uint32_t
mach_thread_id(void)
{
	return (sim.cpu->sc_running->mt_number);
}

nsec_t
mach_thread_cputime(uint32_t id)
{
	const struct mach_thread *mt;

	SLIST_FOREACH(mt, &sim.all, mt_all)
		if (mt->mt_number == id)
			return (mt->mt_used / PSEC_PER_NSEC);
	return (0);
}
