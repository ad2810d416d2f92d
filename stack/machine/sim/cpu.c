/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs: which CPUs of the machine the stack uses, and placement of its
 * threads.  All threads have one priority.
 */
#include <errno.h>

#include "machine/posix/cpulist.h"
#include "machine/sim/sim_private.h"

static unsigned used[SIM_CPUS_MAX];	/* by stack CPU number */
static unsigned nused;
static bool confined;

static void
use(unsigned n)
{
	used[nused++] = n;
	sim.cpus[n].sc_used = true;
}

static void
use_none(void)
{
	nused = 0;
	for (unsigned i = 0; i < SIM_CPUS_MAX; i++)
		sim.cpus[i].sc_used = false;
}

void
sim_cpus_reset(void)
{
	use_none();
	confined = false;
	for (unsigned i = 0; i < sim.config.ncpus; i++)
		use(i);
}

struct sim_cpu *
sim_cpus_get(unsigned stack_cpu)
{
	return (&sim.cpus[used[stack_cpu % nused]]);
}

int
mach_cpus_set(const char *list)
{
	int found[CPU_SETSIZE], error;
	unsigned n;

	error = cpulist_parse(list, found, &n);
	if (error != 0)
		return (error);
	for (unsigned i = 0; i < n; i++)
		if ((unsigned)found[i] >= sim.config.ncpus)
			return (ENODEV);
	use_none();
	for (unsigned i = 0; i < n; i++)
		if (!sim.cpus[found[i]].sc_used)
			use((unsigned)found[i]);
	return (0);
}

void
mach_cpus_nosmt(void)
{
	const unsigned cores = sim.config.machine->sockets *
	    sim.config.machine->cores;
	unsigned all[SIM_CPUS_MAX], n = nused;
	bool taken[SIM_CPUS_MAX] = { false };

	for (unsigned i = 0; i < n; i++)
		all[i] = used[i];
	use_none();
	for (unsigned i = 0; i < n; i++)
		if (!taken[all[i] % cores]) {
			taken[all[i] % cores] = true;
			use(all[i]);
		}
}

int
mach_cpus_confine(void)
{
	const unsigned first = used[0];

	confined = true;
	use_none();
	use(first);
	return (0);
}

bool
mach_up(void)
{
	return (confined);
}

unsigned
mach_ncpus(void)
{
	return (nused);
}

unsigned
mach_curcpu(void)
{
	for (unsigned i = 0; i < nused; i++)
		if (used[i] == sim.cpu->sc_number)
			return (i);
	return (0);	/* a thread created before machine.cpus was set */
}

/* The simulated caches have no capacity limit. */
void
mach_cache_flush(const void *p, size_t len)
{
	(void)p;
	(void)len;
}

void
mach_cpu_relax(void)
{
	sim_charge(SIM_COST(relax));
	sim_search_yield();
	sim_sync();
}

void
mach_yield(void)
{
	sim_charge(SIM_COST(yield));
	sim_yield();
}

int
mach_sched_set(enum mach_sched how, int priority)
{
	(void)priority;
	return (how == MACH_SCHED_OTHER ? 0 : EOPNOTSUPP);
}
