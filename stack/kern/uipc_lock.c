/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locking of a socket: its mutex, unless a strategy of net.inet.tcp.input
 * (netinet/tcp_lock.h) has other operations for TCP sockets; and the net lock
 * around it, if used.
 *
 * For the checker so_lock is the socket's lock with every strategy: the
 * operations of a strategy acquire and release it.
 */
#include "kern/ast.h"
#include "kern/netlock.h"
#include "kern/socketvar.h"
#include "kern/synch.h"
#include "kern/thread.h"

const struct so_lockops *so_lockops;

/* Strategies apply to TCP sockets only. */
static bool
has_strategy(const struct socket *so)
{
	return (so_lockops != NULL && so->so_proto->pr_stream &&
	    !so->so_proto->pr_local);
}

void
solock_slow(struct socket *so, const struct lock_site *site)
{
	if (has_strategy(so))
		so_lockops->sl_lock(so, site);
	else
		mtx_lock_at(&so->so_lock, site);
}

void
sounlock_slow(struct socket *so)
{
	if (has_strategy(so))
		so_lockops->sl_unlock(so);
	else
		mtx_unlock(&so->so_lock);
}

bool
so_owned(struct socket *so)
{
	return (has_strategy(so) ? so_lockops->sl_owned(so) :
	    mtx_owned(&so->so_lock));
}

/* The remainder of so_resume() with a strategy. */
NOINLINE static void
resume_slow(struct socket *so) ACQUIRES(so->so_lock)
{
	if (!so->so_proto->pr_local)
		net_enter();
	if (has_strategy(so))
		so_lockops->sl_enter(so);
	else
		mtx_lock(&so->so_lock);
}

NOINLINE static void
pause_slow(struct socket *so) RELEASES(so->so_lock)
{
	if (has_strategy(so))
		so_lockops->sl_leave(so);
	else
		mtx_unlock(&so->so_lock);
	if (!so->so_proto->pr_local)
		net_exit();
}

void
so_resume(struct socket *so)
{
	if (__predict_true(so_lockops == NULL))
		mtx_lock(&so->so_lock);
	else
		resume_slow(so);
	forget_uptime();
}

void
so_pause(struct socket *so)
{
	so_keep_time(so);
	if (__predict_true(so_lockops == NULL))
		mtx_unlock(&so->so_lock);
	else
		pause_slow(so);
}

void
so_enter(struct socket *so)
{
	giant_enter();
	ast_enter();
	so_resume(so);
}

void
so_leave(struct socket *so)
{
	so_pause(so);
	giant_exit();
	ast_leave();
}

int
so_sleep(struct socket *so, const void *chan, const char *wmesg,
    nsec_t timeout)
{
	so_keep_time(so);
	if (has_strategy(so))
		return (so_lockops->sl_sleep(so, chan, wmesg, timeout));
	return (msleep(chan, &so->so_lock, PCATCH, wmesg, timeout));
}
