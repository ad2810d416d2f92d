/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: reports what hangs when the stack makes no progress.  It
 * exists only in builds with lock tracking (LOCK_TRACKING).
 */
#ifndef KERN_WATCHDOG_H
#define KERN_WATCHDOG_H

#include "kern/systm.h"

struct thread;

/*
 * A watched queue: items waiting now, and items done since boot.  The function
 * must not wait for a lock; false: no queue has this number.
 */
struct watched {
	unsigned	 wd_waiting;
	uint64_t	 wd_done;
};
typedef bool watch_t(unsigned number, struct watched *);

#ifdef LOCK_TRACKING
void	 watchdog_init(void);		/* registers the tunable */
int	 watchdog_start(void);		/* the last step of the boot */
void	 watchdog_stop(void);
void	 watchdog_watch(const char *what, watch_t *);
/* The calling thread waits for a step that another thread must make soon. */
void	 watchdog_wait_begins(struct thread *);
void	 watchdog_wait_ended(struct thread *);
#else
static inline int
watchdog_start(void)
{
	return (0);
}

static inline void
watchdog_stop(void)
{
}

static inline void
watchdog_watch(const char *what, watch_t *watch)
{
	(void)what, (void)watch;
}

static inline void
watchdog_wait_begins(struct thread *td)
{
	(void)td;
}

static inline void
watchdog_wait_ended(struct thread *td)
{
	(void)td;
}
#endif

#endif /* KERN_WATCHDOG_H */
