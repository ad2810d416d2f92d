/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wakeup on wait channels, msleep(9) style.
 */
#ifndef KERN_SYNCH_H
#define KERN_SYNCH_H

#include "kern/lock.h"

#define	PCATCH	0x1	/* a signal ends the sleep with EINTR */

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

#endif /* KERN_SYNCH_H */
