/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling.  The next CPU is the one with the earliest clock, and of two
 * equal ones that with the lower number.  Each CPU runs its threads in turn.
 *
 * A CPU runs without a check as long as its clock cannot be later than
 * another's (sim.stop).  It checks before every effect that other threads can
 * see (sim_sync), so that all visible effects happen in the order of time.
 *
 * Threads are placed as by a work-conserving scheduler: a woken thread gets an
 * idle CPU if there is one, and an idle CPU takes a thread that waits for
 * another one.  A woken thread never preempts; only the end of a slice does.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

void
sim_settle(void)
{
	struct mach_thread *self = sim.cpu->sc_running;
	psec_t spent = sim.pending + sim_instructions * SIM_COST(instruction);

	sim.report.blocks += sim_blocks;
	sim.report.instructions += sim_instructions;
	sim.cpu->sc_clock += spent;
	self->mt_used += spent;
	sim.pending = 0;
	sim_blocks = sim_instructions = 0;
	sim_explain_busy(spent);
	if (__builtin_expect(self->mt_awaited != NULL, 0))
		sim_explain_lost(self->mt_class != NULL ? SIM_SPIN :
		    SIM_NO_WORK, self->mt_awaited, self->mt_class, spent);
}

/* From this time on another CPU's clock may be earlier. */
static void
stop_at(psec_t date)
{
	if (date < sim.stop)
		sim.stop = date;
}

/* A latency with random jitter. */
static psec_t
vary(psec_t latency)
{
	return (latency + splitmix(sim.chance += SPLITMIX_STEP) %
	    (SIM_COST(jitter) + 1));
}

void
sim_cpu_begin(struct sim_cpu *cpu, struct mach_thread *mt)
{
	if (mt->mt_cpu != cpu && mt->mt_cpu != NULL)
		sim_event(SIM_MIGRATE, cpu->sc_clock, cpu, mt->mt_number);
	if (cpu->sc_last != mt->mt_number && cpu->sc_last != 0)
		cpu->sc_clock += SIM_COST(change);
	mt->mt_cpu = cpu;
	cpu->sc_running = mt;
	cpu->sc_last = mt->mt_number;
	cpu->sc_slice = cpu->sc_clock + SIM_COST(slice);
	sim_event(SIM_RUN, cpu->sc_clock, cpu, mt->mt_number);
}

static unsigned
queue_length(const struct sim_cpu *cpu)
{
	const struct mach_thread *mt;
	unsigned n = 0;

	TAILQ_FOREACH(mt, &cpu->sc_queue, mt_link)
		n++;
	return (n);
}

/*
 * The CPU where it ran last if that is idle, else an idle one, else the one
 * with the shortest queue.
 */
static struct sim_cpu *
place(const struct mach_thread *mt)
{
	struct sim_cpu *best = mt->mt_cpu;
	unsigned least;

	if (mt->mt_bound != MACH_CPU_ANY)
		return (sim_cpus_get((unsigned)mt->mt_bound));
	if (best != NULL && best->sc_used && best->sc_running == NULL)
		return (best);
	least = UINT32_MAX;
	for (unsigned i = 0; i < mach_ncpus(); i++) {
		struct sim_cpu *cpu = sim_cpus_get(i);
		unsigned n = cpu->sc_running == NULL ? 0 :
		    2 + 2 * queue_length(cpu) - (cpu == mt->mt_cpu);

		if (n < least) {
			least = n;
			best = cpu;
		}
	}
	return (best);
}

/* Queues a thread for a CPU, runnable when latency has passed since date. */
static void
enqueue(struct mach_thread *mt, psec_t date, psec_t latency)
{
	struct sim_cpu *cpu = place(mt);

	if (cpu->sc_running != NULL) {
		TAILQ_INSERT_TAIL(&cpu->sc_queue, mt, mt_link);
		if (cpu == sim.cpu)
			stop_at(cpu->sc_slice);
		return;
	}
	if (cpu->sc_clock < date)
		cpu->sc_clock = date;
	cpu->sc_clock += latency;
	sim_cpu_begin(cpu, mt);
	stop_at(cpu->sc_clock);
}

void
sim_start(struct mach_thread *mt)
{
	psec_t now = sim.cpu->sc_clock;

	sim_search_enter(mt);
	sim_event(SIM_CREATE, now, sim.cpu, mt->mt_number);
	enqueue(mt, now, vary(SIM_COST(wake)));
}

/* Removes it from the list of parked threads. */
static void
unlist(struct mach_thread *mt)
{
	TAILQ_REMOVE(&sim.parked, mt, mt_link);
	if (mt->mt_deadline != PSEC_FOREVER)
		TAILQ_REMOVE(&sim.timers, mt, mt_timer);
}

void
sim_wake(struct mach_thread *mt)
{
	psec_t now = sim.cpu->sc_clock;

	unlist(mt);
	sim_event(SIM_WAKE, now, sim.cpu, mt->mt_number);
	enqueue(mt, now, vary(SIM_COST(wake)));
}

/*
 * The first parked thread whose deadline precedes the next CPU's clock; or
 * NULL.
 */
static struct mach_thread *
due(const struct sim_cpu *next)
{
	struct mach_thread *mt = TAILQ_FIRST(&sim.timers);

	return (mt != NULL && (next == NULL ||
	    mt->mt_deadline <= next->sc_clock) ? mt : NULL);
}

static void
expire(struct mach_thread *mt)
{
	mt->mt_result = ETIMEDOUT;
	unlist(mt);
	sim_event(SIM_TIMEOUT, mt->mt_deadline, mt->mt_cpu, mt->mt_number);
	enqueue(mt, mt->mt_deadline, vary(SIM_COST(timer)));
}

/* The CPU with the earliest clock; also sets how far it may run alone. */
static struct sim_cpu *
find_last(void)
{
	const struct mach_thread *timer = TAILQ_FIRST(&sim.timers);
	struct sim_cpu *last = NULL;

	sim.stop = timer != NULL ? timer->mt_deadline : PSEC_FOREVER;
	for (unsigned i = 0; i < sim.config.ncpus; i++) {
		struct sim_cpu *cpu = &sim.cpus[i];

		if (cpu->sc_running == NULL)
			continue;
		if (last == NULL || cpu->sc_clock < last->sc_clock) {
			if (last != NULL)
				stop_at(last->sc_clock);
			last = cpu;
		} else
			stop_at(cpu->sc_clock);
	}
	if (last != NULL && !TAILQ_EMPTY(&last->sc_queue))
		stop_at(last->sc_slice);
	return (last);
}

_Noreturn void
sim_give_up(const char *why)
{
	const struct mach_thread *mt;

	fprintf(stderr, "sim: %s: these threads wait:", why);
	TAILQ_FOREACH(mt, &sim.parked, mt_link)
		fprintf(stderr, " %u (%s)", mt->mt_number, mt->mt_name);
	fprintf(stderr, "\n");
	abort();
}

/* The next CPU, after threads with earlier deadlines were woken. */
static struct sim_cpu *
next_by_clock(void)
{
	struct sim_cpu *next;
	struct mach_thread *mt;

	while (next = find_last(), (mt = due(next)) != NULL)
		expire(mt);
	return (next);
}

/*
 * Like next_by_clock(), for a search, in which all CPUs share the latest
 * clock.
 */
static struct sim_cpu *
next_by_search(void)
{
	struct sim_cpu *last = sim.cpu, *next;
	struct mach_thread *mt;

	while ((mt = due(last)) != NULL)
		expire(mt);
	if ((next = sim_search_next()) == NULL && (mt = due(NULL)) != NULL) {
		expire(mt);
		next = sim_search_next();
	}
	if (next != NULL && next->sc_clock < last->sc_clock)
		next->sc_clock = last->sc_clock;
	sim.stop = 0;
	return (next);
}

/* Switches to the thread of the next CPU, which may be this one. */
static void
resume(struct mach_thread *from)
{
	struct sim_cpu *next = sim.order == SIM_CLOCKS ? next_by_clock() :
	    next_by_search();
	struct mach_thread *to;

	if (next == NULL)
		sim_give_up("all threads wait for each other");
	sim.cpu = next;
	to = next->sc_running;
	if (to == from)
		return;
	from->mt_self = mach_self;
	from->mt_counters = mach_counters;
	from->mt_errno = errno;
	mach_self = to->mt_self;
	mach_counters = to->mt_counters;
	errno = to->mt_errno;
	context_switch(&from->mt_context, &to->mt_context);
}

static struct mach_thread *
first_unbound(const struct sim_cpu *cpu)
{
	struct mach_thread *mt;

	TAILQ_FOREACH(mt, &cpu->sc_queue, mt_link)
		if (mt->mt_bound == MACH_CPU_ANY)
			break;
	return (mt);
}

/* The longest queue with a thread that may migrate; NULL: none. */
static struct sim_cpu *
longest_queue(void)
{
	struct sim_cpu *longest = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < mach_ncpus(); i++) {
		struct sim_cpu *cpu = sim_cpus_get(i);
		unsigned n = queue_length(cpu);

		if (n > most && first_unbound(cpu) != NULL) {
			most = n;
			longest = cpu;
		}
	}
	return (longest);
}

/*
 * Takes a thread for an idle CPU from its own queue, or else from the longest
 * one.
 */
static struct mach_thread *
find_work(struct sim_cpu *idle)
{
	struct mach_thread *mt = TAILQ_FIRST(&idle->sc_queue);
	struct sim_cpu *from = idle;

	if (mt == NULL && idle->sc_used) {
		from = longest_queue();
		mt = from != NULL ? first_unbound(from) : NULL;
	}
	if (mt != NULL)
		TAILQ_REMOVE(&from->sc_queue, mt, mt_link);
	return (mt);
}

/* Gives the calling thread's CPU to another thread, if one is queued. */
static void
give_up_cpu(void)
{
	struct sim_cpu *cpu = sim.cpu;
	struct mach_thread *mt;

	cpu->sc_running = NULL;
	mt = find_work(cpu);
	if (mt != NULL)
		sim_cpu_begin(cpu, mt);
}

/* Other queued threads of this CPU run first. */
static void
requeue(enum sim_event why)
{
	struct mach_thread *self = sim.cpu->sc_running;
	psec_t now = sim.cpu->sc_clock;

	sim_event(why, now, sim.cpu, self->mt_number);
	give_up_cpu();
	enqueue(self, now, 0);
	resume(self);
}

void
sim_sync(void)
{
	struct sim_cpu *cpu = sim.cpu;

	sim_settle();
	if (cpu->sc_clock < sim.stop)
		return;
	if (sim.order != SIM_CLOCKS) {
		sim_search_point();
		resume(cpu->sc_running);
	} else if (cpu->sc_clock < cpu->sc_slice)
		resume(cpu->sc_running);
	else if (!TAILQ_EMPTY(&cpu->sc_queue))
		requeue(SIM_PREEMPT);
	else {
		cpu->sc_slice = cpu->sc_clock + SIM_COST(slice);
		resume(cpu->sc_running);
	}
}

void
sim_yield(void)
{
	sim_search_yield();
	sim_sync();
	if (sim.order == SIM_CLOCKS && !TAILQ_EMPTY(&sim.cpu->sc_queue))
		requeue(SIM_YIELD);
}

static void
timer_insert(struct mach_thread *mt)
{
	struct mach_thread *other;

	TAILQ_FOREACH_REVERSE(other, &sim.timers, sim_threads, mt_timer)
		if (other->mt_deadline <= mt->mt_deadline)
			break;
	if (other != NULL)
		TAILQ_INSERT_AFTER(&sim.timers, other, mt, mt_timer);
	else
		TAILQ_INSERT_HEAD(&sim.timers, mt, mt_timer);
}

int
sim_wait(const volatile void *word, psec_t deadline)
{
	struct mach_thread *self = sim.cpu->sc_running;
	psec_t since;

	sim_settle();
	since = sim.cpu->sc_clock;
	self->mt_word = word;
	self->mt_deadline = deadline;
	self->mt_result = 0;
	TAILQ_INSERT_TAIL(&sim.parked, self, mt_link);
	if (deadline != PSEC_FOREVER)
		timer_insert(self);
	sim_event(SIM_PARK, sim.cpu->sc_clock, sim.cpu, self->mt_number);
	give_up_cpu();
	resume(self);
	if (self->mt_awaited != NULL)
		sim_explain_lost(SIM_PARKED, self->mt_awaited, self->mt_class,
		    sim.cpu->sc_clock - since);
	return (self->mt_result);
}

_Noreturn void
sim_leave(void)
{
	struct mach_thread *self = sim.cpu->sc_running;

	sim_settle();
	sim_event(SIM_EXIT, sim.cpu->sc_clock, sim.cpu, self->mt_number);
	self->mt_ended = true;
	if (self->mt_joiner != NULL)
		sim_wake(self->mt_joiner);
	/* the stack is not reused before the switch */
	sim_stack_free(self->mt_stack);
	give_up_cpu();
	resume(self);
	abort();
}

void
sim_begin(struct mach_thread *mt)
{
	sim.cpu = &sim.cpus[0];
	sim_cpu_begin(sim.cpu, mt);
	(void)find_last();
	context_switch(&sim.host, &mt->mt_context);
	sim.cpu = NULL;
}
