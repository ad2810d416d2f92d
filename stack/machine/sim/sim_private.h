/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of the simulated machine.
 *
 * All data belongs to one host thread.  A function switches coroutines only
 * where its comment allows it; therefore no locks are needed.
 */
#ifndef MACHINE_SIM_SIM_PRIVATE_H
#define MACHINE_SIM_SIM_PRIVATE_H

#include <sys/queue.h>

#include "machine/sim/context.h"
#include "machine/sim/explain.h"
#include "machine/sim/sim.h"

#define	PSEC_FOREVER	UINT64_MAX

struct sim_cpu;

struct mach_thread {
	/* in the run queue of a CPU, or in the list of parked threads */
	TAILQ_ENTRY(mach_thread) mt_link;
	TAILQ_ENTRY(mach_thread) mt_timer;	/* sorted by deadline */
	SLIST_ENTRY(mach_thread) mt_all;
	struct context	 mt_context;
	void		*mt_stack;	/* NULL: uses the host thread's stack */
	unsigned	 mt_number;	/* starts at 1 */
	char		 mt_name[16];
	/* in a search: the highest priority runs */
	int64_t		 mt_priority;
	int		 mt_bound;	/* to this CPU, or MACH_CPU_ANY */
	struct sim_cpu	*mt_cpu;	/* where it runs or ran last, or NULL */
	psec_t		 mt_used;	/* CPU time */
	void		(*mt_fn)(void *);
	void		*mt_arg;
	bool		 mt_ended;
	struct mach_thread *mt_joiner; /* thread that joins this one, or NULL */
	/* Valid while the thread is parked. */
	const volatile void *mt_word;
	psec_t		 mt_deadline;
	int		 mt_result;	/* result of mach_park() */
	/* explain.c: what it waits for, or NULL; a lock has a class */
	const volatile void *mt_awaited;
	const char	*mt_class;
	/*
	 * Thread-local variables of the host thread, saved while another
	 * coroutine runs.
	 */
	struct thread	*mt_self;
	intptr_t	 mt_counters;
	int		 mt_errno;
	void		(*mt_exit)(struct thread *);
};
TAILQ_HEAD(sim_threads, mach_thread);

/* A CPU whose run queue is not empty runs a thread. */
struct sim_cpu {
	unsigned	 sc_number, sc_core, sc_socket;
	bool		 sc_used;	/* in machine.cpus: used by the stack */
	psec_t		 sc_clock;
	psec_t		 sc_slice; /* end of the running thread's time slice */
	struct mach_thread *sc_running;	/* NULL: idle */
	unsigned	 sc_last; /* number of the thread that ran last, or 0 */
	struct sim_threads sc_queue;	/* run queue */
};

struct sim {
	struct sim_config config;
	struct sim_costs costs;
	struct sim_report report;
	struct sim_cpu	 cpus[SIM_CPUS_MAX];
	struct sim_cpu	*cpu;		/* CPU that runs now; NULL: none yet */
	psec_t		 pending;	/* cost not yet added to its clock */
	enum sim_order	 order;
	/* at this time another CPU's clock may be earlier */
	psec_t		 stop;
	struct sim_threads parked, timers;
	SLIST_HEAD(, mach_thread) all;
	unsigned	 nthreads;
	uint64_t	 chance; /* state of the machine's random numbers */
	uint64_t	 random;	/* ... of the stack's */
	struct context	 host;		/* caller of sim_run() */
};
extern struct sim sim;
extern uint64_t	 sim_blocks, sim_instructions;	/* not charged yet */
extern bool	 sim_every_block;	/* sim_sync() after every basic block */

#define	SIM_COST(name)	(sim.costs.name)
/* Estimated instructions of a basic block where they were not counted. */
#define	SIM_BLOCK	5

/* Charges time to the calling thread. */
static inline void
sim_charge(psec_t time)
{
	sim.pending += time;
}

/*
 * Scheduling (sched.c).  sim_sync() runs before every effect that other
 * threads can see: it adds the pending cost to this CPU's clock, and CPUs with
 * earlier clocks run first.
 */
void	 sim_sync(void);
/* Only adds the pending cost: no other thread runs. */
void	 sim_settle(void);
/*
 * Returns when the calling thread runs again; other threads may run meanwhile.
 */
void	 sim_yield(void);
/*
 * Parks the calling thread until sim_wake().  word (or NULL) identifies the
 * wait to wakers.  Returns 0, or ETIMEDOUT at the deadline.
 */
int	 sim_wait(const volatile void *word, psec_t deadline);
void	 sim_wake(struct mach_thread *);
/* Makes a new thread runnable. */
void	 sim_start(struct mach_thread *);
/* Ends the calling thread: it never runs again. */
_Noreturn void sim_leave(void);
/* Prints the reason and the waiting threads, and aborts. */
_Noreturn void sim_give_up(const char *why);
/*
 * Starts the first thread on the first CPU.  Returns when a thread switches to
 * sim.host.
 */
void	 sim_begin(struct mach_thread *);

/* Starts a thread that is in no queue on an idle CPU. */
void	 sim_cpu_begin(struct sim_cpu *, struct mach_thread *);

/*
 * The order of a search (search.c).  The functions handle a new thread, a
 * scheduling point, a yield, and the choice of the next CPU (NULL: none has a
 * thread).
 */
void	 sim_search_enter(struct mach_thread *);
void	 sim_search_point(void);
void	 sim_search_yield(void);
struct sim_cpu *sim_search_next(void);

/* CPUs (cpu.c) that the stack uses. */
void	 sim_cpus_reset(void);
struct sim_cpu *sim_cpus_get(unsigned stack_cpu);

/* Threads (thread.c): the list, and the first thread. */
void	 sim_threads_reset(void);
struct mach_thread *sim_thread_new(const char *name, int cpu,
	    void (*fn)(void *), void *arg);

/* Cache lines (lines.c), the log (log.c), memory (memory.c). */
void	 sim_lines_reset(void);
void	 sim_event(enum sim_event, psec_t date, const struct sim_cpu *,
	    unsigned thread);
void	 sim_memory_reset(void);
void	 sim_memory_watch(void);
size_t	 sim_memory_offset(const volatile void *);	/* from the heap's start */
size_t	 sim_stack_size(void);
void	*sim_stack_take(size_t *size);		/* NULL: no memory */
void	 sim_stack_free(void *);

/*
 * The account of lost time (explain.c).  An allocation begins at an offset of
 * the heap, which has a size.
 */
void	 sim_explain_reset(void);
void	 sim_explain_busy(psec_t);
void	 sim_explain_lost(enum sim_loss, const volatile void *word,
	    const char *lock, psec_t);
void	 sim_explain_allocated(const char *start, size_t size, size_t offset,
	    size_t heap);

#endif /* MACHINE_SIM_SIM_PRIVATE_H */
