/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the simulated machine share.
 *
 * All of it belongs to the one thread of the host, and no function here is
 * left in the middle but where it says so: there are no locks.
 */
#ifndef MACHINE_SIM_SIM_PRIVATE_H
#define MACHINE_SIM_SIM_PRIVATE_H

#include <sys/queue.h>

#include "machine/sim/context.h"
#include "machine/sim/sim.h"

#define	PSEC_FOREVER	UINT64_MAX

struct sim_cpu;

struct mach_thread {
	TAILQ_ENTRY(mach_thread) mt_link;	/* threads that want its CPU, or
						   those that are parked */
	TAILQ_ENTRY(mach_thread) mt_timer;	/* by deadline */
	SLIST_ENTRY(mach_thread) mt_all;
	struct context	 mt_context;
	void		*mt_stack;	/* NULL: the host's thread's */
	unsigned	 mt_number;	/* from 1 */
	char		 mt_name[16];
	int64_t		 mt_priority;	/* in a search: the highest runs */
	int		 mt_bound;	/* to this CPU, or MACH_CPU_ANY */
	struct sim_cpu	*mt_cpu;	/* where it runs or ran last, or NULL */
	psec_t		 mt_used;	/* of CPUs */
	void		(*mt_fn)(void *);
	void		*mt_arg;
	bool		 mt_ended;
	struct mach_thread *mt_joiner;	/* waits for that, or NULL */
	/* while it is parked */
	const volatile void *mt_word;
	psec_t		 mt_deadline;
	int		 mt_result;	/* of mach_park() */
	/* what is the host's thread's while this runs */
	struct thread	*mt_self;
	intptr_t	 mt_counters;
	int		 mt_errno;
	void		(*mt_exit)(struct thread *);
};
TAILQ_HEAD(sim_threads, mach_thread);

/* A CPU with threads that want it runs one. */
struct sim_cpu {
	unsigned	 sc_number, sc_core, sc_socket;
	bool		 sc_used;	/* by the stack: machine.cpus */
	psec_t		 sc_clock;
	psec_t		 sc_slice;	/* when who runs has had its share */
	struct mach_thread *sc_running;	/* NULL: it is idle */
	unsigned	 sc_last;	/* number of who ran last, or 0 */
	struct sim_threads sc_queue;	/* threads that want it */
};

struct sim {
	struct sim_config config;
	struct sim_costs costs;
	struct sim_report report;
	struct sim_cpu	 cpus[SIM_CPUS_MAX];
	struct sim_cpu	*cpu;		/* that runs now; NULL: none yet */
	psec_t		 pending;	/* spent there, not on its clock yet */
	enum sim_order	 order;
	psec_t		 stop;		/* then its clock may not be the last */
	struct sim_threads parked, timers;
	SLIST_HEAD(, mach_thread) all;
	unsigned	 nthreads;
	uint64_t	 chance;	/* state of the machine's random numbers */
	uint64_t	 random;	/* ... of the stack's */
	struct context	 host;		/* whoever called sim_run() */
};
extern struct sim sim;
extern uint64_t	 sim_blocks, sim_instructions;	/* not charged yet */
extern bool	 sim_every_block;	/* ... is followed by sim_sync() */

#define	SIM_COST(name)	(sim.costs.name)
/* Instructions of a basic block where they were not counted: estimate. */
#define	SIM_BLOCK	5

/* The calling thread has spent this. */
static inline void
sim_charge(psec_t time)
{
	sim.pending += time;
}

/*
 * Scheduling (sched.c).  Before anything that others may notice: what was
 * spent goes on this CPU's clock, and all CPUs that are behind it go first.
 */
void	 sim_sync(void);
/* The calling thread is as when it ran last: others have gone meanwhile. */
void	 sim_yield(void);
/*
 * The calling thread waits until somebody wakes it, who may find it by the
 * word, or NULL; 0, or ETIMEDOUT at the deadline.
 */
int	 sim_wait(const volatile void *word, psec_t deadline);
void	 sim_wake(struct mach_thread *);
/* A new thread, which runs when it has a CPU. */
void	 sim_start(struct mach_thread *);
/* The calling thread never runs again. */
_Noreturn void sim_leave(void);
/* Says why, and who waits, and aborts. */
_Noreturn void sim_give_up(const char *why);
/*
 * The first thread of all begins, on the first CPU; returns when somebody
 * switches to sim.host.
 */
void	 sim_begin(struct mach_thread *);

/* A CPU without a thread has this one, which is in no queue. */
void	 sim_cpu_begin(struct sim_cpu *, struct mach_thread *);

/*
 * The order of a search (search.c): a thread is new, the calling thread is at
 * a point or wants others to go first, and the CPU whose thread is next, or
 * NULL.
 */
void	 sim_search_enter(struct mach_thread *);
void	 sim_search_point(void);
void	 sim_search_yield(void);
struct sim_cpu *sim_search_next(void);

/* CPUs (cpu.c): which the stack uses. */
void	 sim_cpus_reset(void);
struct sim_cpu *sim_cpus_get(unsigned stack_cpu);

/* Threads (thread.c): all, and the first one. */
void	 sim_threads_reset(void);
struct mach_thread *sim_thread_new(const char *name, int cpu,
	    void (*fn)(void *), void *arg);

/* Cache lines (lines.c), the log (log.c), memory (memory.c). */
void	 sim_lines_reset(void);
void	 sim_event(enum sim_event, psec_t date, const struct sim_cpu *,
	    unsigned thread);
void	 sim_memory_reset(void);
void	 sim_memory_watch(void);
void	*sim_stack_take(size_t *size);		/* NULL: there is no more */
void	 sim_stack_free(void *);

#endif /* MACHINE_SIM_SIM_PRIVATE_H */
