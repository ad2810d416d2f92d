/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling in a search for failing schedules.  Instead of the CPU with the
 * earliest clock, any runnable thread may be next, whether it has a CPU or
 * waits for one.  The choice is made before each visible effect (sim_sync),
 * which is called a point.
 *
 * SIM_RANDOM chooses any of them.  SIM_PCT gives each thread a random
 * priority, runs the highest, and at depth - 1 points lowers the running
 * thread below all others: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A
 * randomized scheduler with probabilistic guarantees of finding bugs", 2010,
 * section 3.  A thread that spins or yields is lowered, too, because others
 * might never run otherwise.
 *
 * All CPUs then share one clock.  At a few points it jumps to the next
 * deadline, as if the host had stopped all CPUs until then.  Otherwise races
 * with timers would end before the timers fire.
 */
#include <stdio.h>
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	JUMPS		6
#define	JUMP_MAX	(10 * 1000000 * PSEC_PER_USEC)

struct candidate {
	struct mach_thread *mt;
	struct sim_cpu	*cpu;		/* CPU that it has or waits for */
};

static struct {
	struct sim_search how;
	/* state of the random number generator */
	uint64_t	 state;
	uint64_t	 points;	/* so far */
	psec_t		 end;		/* end of the search in virtual time */
	uint64_t	 changes[SIM_DEPTH_MAX]; /* change points of SIM_PCT */
	uint64_t	 jumps[JUMPS];
	int64_t		 lowest;	/* lowest priority assigned */
} search;

static uint64_t
chance(uint64_t n)
{
	return (splitmix(search.state += SPLITMIX_STEP) % n);
}

/* Initial priorities are above all lowered ones; a collision is unlikely. */
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
	/* Latencies that only spread threads over time do not help a search. */
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

/* All threads stop until the next deadline, unless that is far away. */
static void
jump(struct sim_cpu *cpu)
{
	const struct mach_thread *mt = TAILQ_FIRST(&sim.timers);

	if (mt != NULL && mt->mt_deadline > cpu->sc_clock &&
	    mt->mt_deadline - cpu->sc_clock < JUMP_MAX)
		cpu->sc_clock = mt->mt_deadline;
}

/* Applies a change to the running thread at selected points. */
void
sim_search_point(void)
{
	search.points++;
	if (search.points == search.how.limit ||
	    sim.cpu->sc_clock > search.end)
		sim_give_up("the limit was reached");
	if (sim.order == SIM_PCT && search.how.depth > 1 &&
	    is_among(search.changes, search.how.depth - 1))
		step_back(sim.cpu->sc_running);
	if (is_among(search.jumps, JUMPS))
		jump(sim.cpu);
}

/*
 * Considers a candidate: SIM_PCT keeps the highest priority, SIM_RANDOM any of
 * n.
 */
static void
offer(struct candidate *best, struct mach_thread *mt, struct sim_cpu *cpu,
    unsigned *n)
{
	++*n;
	if (sim.order == SIM_PCT ? best->mt == NULL ||
	    mt->mt_priority > best->mt->mt_priority : chance(*n) == 0)
		*best = (struct candidate){ mt, cpu };
}

/* NULL: no thread is runnable. */
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
