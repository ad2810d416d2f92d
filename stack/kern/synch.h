/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wakeup on wait channels, msleep(9) style.
 */
#ifndef KERN_SYNCH_H
#define KERN_SYNCH_H

#include "kern/lock.h"

#define	PCATCH	0x1	/* a signal ends the sleep with EINTR */
#define	PDUE	0x2	/* waits for a thread that already works on it */

/*
 * Sleeps on chan.  m (held by the caller) and Giant are released meanwhile;
 * both are held again on return, Giant first.  wmesg is a constant string that
 * names the wait channel (sbwait, accept, connec).  timeout is relative;
 * NSEC_FOREVER means no timeout.  Returns 0, EWOULDBLOCK (timeout) or EINTR
 * (with PCATCH).
 */
int	 msleep(const void *chan, struct mtx *m, int flags, const char *wmesg,
	    nsec_t timeout) REQUIRES(*m);
void	 wakeup(const void *chan);
bool	 wakeup_one(const void *chan);	/* false: no thread slept */

/*
 * Between wakeup_hold() and wakeup_release() the calling thread's wakeups are
 * deferred.  A woken thread then finds the locks free and does not preempt the
 * waker.  Calls nest; a thread that sleeps flushes its deferred wakeups first.
 */
void	 wakeup_hold(void);
void	 wakeup_release(void);

/*
 * Polls done(arg) for up to machine.spin_us and yields the CPU in between.
 * Returns true as soon as done() does; false: the caller should sleep.
 */
bool	 spin_until(bool (*done)(void *), void *arg);

#endif /* KERN_SYNCH_H */
