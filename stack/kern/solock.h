/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a socket; part of kern/socketvar.h.
 */
#ifndef KERN_SOLOCK_H
#define KERN_SOLOCK_H

#include "kern/socketvar.h"

/*
 * The lock of a socket.  A socket call uses so_enter() and so_leave(), which
 * also take Giant and the net lock.  In between, so_pause() and so_resume()
 * release the socket temporarily.  The sleep function waits for a wakeup of
 * chan, as msleep() with PCATCH, and may wake up spuriously.
 *
 * Input and timers hold Giant and the net lock already and use solock() and
 * sounlock().
 */
void	 so_enter(struct socket *so) ACQUIRES(so->so_lock);
void	 so_leave(struct socket *so) RELEASES(so->so_lock);
void	 so_resume(struct socket *so) ACQUIRES(so->so_lock);
void	 so_pause(struct socket *so) RELEASES(so->so_lock);
int	 so_sleep(struct socket *so, const void *chan, const char *wmesg,
	    nsec_t timeout) REQUIRES(so->so_lock);
bool	 so_owned(struct socket *);

static inline void
so_assert_locked(struct socket *so) ASSERTS_LOCK(so->so_lock)
{
	KASSERT(so_owned(so), ("socket %p is not locked", (void *)so));
	(void)so;
}

/*
 * The lock operations of a TCP locking strategy that needs more than the
 * socket's mutex (netinet/tcp_lock.h).  sl_enter, sl_leave and sl_sleep serve
 * socket calls; sl_lock and sl_unlock serve input and timers.
 */
struct so_lockops {
	void		(*sl_enter)(struct socket *so) ACQUIRES(so->so_lock);
	void		(*sl_leave)(struct socket *so) RELEASES(so->so_lock);
	int		(*sl_sleep)(struct socket *so, const void *chan,
			    const char *wmesg, nsec_t timeout)
			    REQUIRES(so->so_lock);
	void		(*sl_lock)(struct socket *so, const struct lock_site *)
			    ACQUIRES(so->so_lock);
	void		(*sl_unlock)(struct socket *so) RELEASES(so->so_lock);
	bool		(*sl_owned)(struct socket *);
	bool		 sl_waits; /* sl_lock may wait for the end of a call */
};
extern const struct so_lockops *so_lockops;	/* [I] NULL: the mutex */

static inline bool
so_lockwaits(void)
{
	return (so_lockops != NULL && so_lockops->sl_waits);
}

void	 solock_slow(struct socket *so, const struct lock_site *)
	    ACQUIRES(so->so_lock);
void	 sounlock_slow(struct socket *so) RELEASES(so->so_lock);

static inline void
solock_at(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock)
{
	if (__predict_true(so_lockops == NULL))
		mtx_lock_at(&so->so_lock, site);
	else
		solock_slow(so, site);
}
#define	solock(so)	solock_at((so), LOCK_SITE)
/*
 * Locks a child after its listener.  Two other sockets are locked by rising
 * address.
 */
#define	solock_child(so) solock_at((so), LOCK_SITE_OF(true))

/*
 * The timestamps of a socket never decrease.  This runs before the socket is
 * unlocked, and after a thread with a cached time has locked it.  The cached
 * time is discarded if another thread has used the socket later.  Strategies
 * need no such timestamp.
 */
static inline void
so_keep_time(struct socket *so) REQUIRES(so->so_lock)
{
	const nsec_t now = thread_known()->td_now;

	if (now > so->so_time)
		so->so_time = now;
}

static inline void
so_check_time(struct socket *so) REQUIRES(so->so_lock)
{
	struct thread *td = thread_known();

	if (__predict_false(so_lockops != NULL) || td->td_now < so->so_time)
		td->td_now = 0;
}

static inline void
sounlock(struct socket *so) RELEASES(so->so_lock)
{
	so_keep_time(so);
	if (__predict_true(so_lockops == NULL))
		mtx_unlock(&so->so_lock);
	else
		sounlock_slow(so);
}

#endif /* KERN_SOLOCK_H */
