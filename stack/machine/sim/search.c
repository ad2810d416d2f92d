/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose turn it is in a search for schedules that go wrong: instead of the
 * CPU whose clock is behind, one of all threads that could run, whether they
 * have a CPU or wait for one.  Before each thing that others may notice
 * (sim_sync), which is called a point, it is chosen anew.
 *
 * SIM_RANDOM chooses any of them.  SIM_PCT gives each thread a priority at
 * random, runs the first, and at depth - 1 points puts who runs behind all
 * others: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler
 * with probabilistic guarantees of finding bugs", 2010, section 3.  Who spins
 * or yields goes behind all others, too, or those might never run.
 *
 * There is one clock for all CPUs then, and at a few points it jumps to the
 * next deadline, as if the host had stopped everybody until then: what timers
 * race with would else be over long before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	JUMPS		6
#define	JUMP_MAX	(10 * 1000000 * PSEC_PER_USEC)

struct candidate {
	struct mach_thread *mt;
	struct sim_cpu	*cpu;		/* that it has, or waits for */
};

static struct {
	struct sim_search how;
	uint64_t	 state;		/* of its random numbers */
	uint64_t	 points;	/* so far */
	psec_t		 end;		/* of its time */
	uint64_t	 changes[SIM_DEPTH_MAX];	/* points of SIM_PCT */
	uint64_t	 jumps[JUMPS];
	int64_t		 lowest;	/* priority that anybody has */
} search;

static uint64_t
chance(uint64_t n)
{
	return (splitmix(search.state += SPLITMIX_STEP) % n);
}

/* Above all that are lowered; that two are equal is unlikely. */
void
sim_search_enter(struct mach_thread *mt)
{
	mt->mt_priority = 1 + (int64_t)(chance(UINT64_MAX) >> 2);
}

static void
step_back(struct mach_thread *mt)
{
	mt->mt_priority = --search.lowest;
}

void
sim_search_yield(void)
{
	if (sim.order == SIM_PCT)
		step_back(sim.cpu->sc_running);
}

void
sim_search(const struct sim_search *how)
{
	struct mach_thread *mt;

	sim_sync();
	search.how = *how;
	search.state = splitmix(how->seed);
	search.points = 0;
	search.end = sim.cpu->sc_clock + how->hangs * PSEC_PER_NSEC;
	search.lowest = 0;
	for (unsigned i = 0; i + 1 < how->depth; i++)
		search.changes[i] = 1 + chance(how->points);
	for (unsigned i = 0; i < JUMPS; i++)
		search.jumps[i] = 1 + chance(how->points);
	SLIST_FOREACH(mt, &sim.all, mt_all)
		sim_search_enter(mt);
	/* What only spreads threads in time is of no use here. */
	sim.costs.wake = sim.costs.timer = sim.costs.jitter = 0;
	sim_memory_watch();
	sim.order = how->order;
	sim_every_block = how->blocks;
	sim.stop = 0;
}

uint64_t
sim_search_points(void)
{
	return (search.points);
}

static bool
is_among(const uint64_t *points, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (points[i] == search.points)
			return (true);
	return (false);
}

/* Everybody is stopped until the next deadline, unless that is far away. */
static void
jump(struct sim_cpu *cpu)
{
	const struct mach_thread *mt = TAILQ_FIRST(&sim.timers);

	if (mt != NULL && mt->mt_deadline > cpu->sc_clock &&
	    mt->mt_deadline - cpu->sc_clock < JUMP_MAX)
		cpu->sc_clock = mt->mt_deadline;
}

/* What happens to the thread that runs, at certain points. */
void
sim_search_point(void)
{
	search.points++;
	if (search.points == search.how.limit ||
	    sim.cpu->sc_clock > search.end)
		sim_give_up("there is no end");
	if (sim.order == SIM_PCT && search.how.depth > 1 &&
	    is_among(search.changes, search.how.depth - 1))
		step_back(sim.cpu->sc_running);
	if (is_among(search.jumps, JUMPS))
		jump(sim.cpu);
}

/* Takes it in the place of the best so far, of which n were offered. */
static void
offer(struct candidate *best, struct mach_thread *mt, struct sim_cpu *cpu,
    unsigned *n)
{
	++*n;
	if (sim.order == SIM_PCT ? best->mt == NULL ||
	    mt->mt_priority > best->mt->mt_priority : chance(*n) == 0)
		*best = (struct candidate){ mt, cpu };
}

/* NULL: nobody can run. */
struct sim_cpu *
sim_search_next(void)
{
	struct candidate best = { NULL, NULL };
	struct mach_thread *mt, *other;
	unsigned n = 0;

	for (unsigned i = 0; i < sim.config.ncpus; i++) {
		struct sim_cpu *cpu = &sim.cpus[i];

		if (cpu->sc_running != NULL)
			offer(&best, cpu->sc_running, cpu, &n);
		TAILQ_FOREACH(mt, &cpu->sc_queue, mt_link)
			offer(&best, mt, cpu, &n);
	}
	if (best.mt == NULL || best.mt == best.cpu->sc_running)
		return (best.cpu);
	other = best.cpu->sc_running;
	TAILQ_REMOVE(&best.cpu->sc_queue, best.mt, mt_link);
	if (other != NULL) {
		sim_event(SIM_PREEMPT, best.cpu->sc_clock, best.cpu,
		    other->mt_number);
		TAILQ_INSERT_TAIL(&best.cpu->sc_queue, other, mt_link);
	}
	sim_cpu_begin(best.cpu, best.mt);
	return (best.cpu);
}
