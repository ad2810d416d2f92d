/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wakeup on wait channels, msleep(9) style.
 */
#ifndef KERN_SYNCH_H
#define KERN_SYNCH_H

#include "kern/lock.h"

#define	PCATCH	0x1	/* a signal ends the sleep with EINTR */
#define	PDUE	0x2	/* another thread is at work on what is waited for */

/*
 * Sleeps on chan, with m (held by the caller) and Giant released
 * meanwhile; both are held again on return, Giant first.  wmesg is a
 * constant string that names the wait channel (sbwait, accept, connec).
 * timeout is relative; NSEC_FOREVER sleeps without one.
 * Returns 0, EWOULDBLOCK (timeout) or EINTR (with PCATCH).
 */
int	 msleep(const void *chan, struct mtx *m, int flags, const char *wmesg,
	    nsec_t timeout) REQUIRES(*m);
void	 wakeup(const void *chan);
void	 wakeup_one(const void *chan);

/*
 * Between the two the calling thread's wake-ups are gathered, and go out
 * together at the end: whoever is woken finds the locks free, and does not
 * take the CPU from a thread with more to hand out.  May nest; a thread
 * that sleeps lets them go before.
 */
void	 wakeup_hold(void);
void	 wakeup_release(void);

/*
 * Calls done(arg), again and again for machine.spin_us with others on this
 * CPU going first.  True as soon as done() is; false: sleep now.
 */
bool	 spin_until(bool (*done)(void *), void *arg);

#endif /* KERN_SYNCH_H */
