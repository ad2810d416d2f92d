/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "backlog": a socket call owns its socket without holding the mutex.  The
 * mutex is held only to acquire and release ownership (Linux's lock_sock()).
 * Input never waits for a call: a segment for an owned socket is queued, and
 * the owner processes the queue before it releases the socket or sleeps.
 *
 * While the queue is not empty, the owner or its successor will process it.
 * Later segments must be queued, too, to keep the order.  Input and timers
 * hold the mutex while they run.
 */
#include "kern/planted.h"
#include "kern/synch.h"
#include "kern/thread.h"
#include "netinet/tcp_lock.h"
#include "netinet/tcp_socket.h"

#define	BACKLOG_MAX	1024	/* max queue of a socket */

/* A queued segment.  [v] reached only through the socket's backlog */
struct tcp_backlog {
	STAILQ_ENTRY(tcp_backlog) bl_link;	/* [v] */
	struct tcpseg	 bl_seg;		/* [v] */
};

static void
await_owner(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcp_socket *tso = sototcp(so);

	so_assert_locked(&tso->so);
	while (tso->owner != NULL) {
		tso->ownerwaits++;
		(void)msleep(&tso->owner, &so->so_lock, PDUE, "sockcall",
		    NSEC_FOREVER);
		tso->ownerwaits--;
	}
}

static void
own(struct socket *so) REQUIRES(so->so_lock)
{
	await_owner(so);
	so_assert_locked(&sototcp(so)->so);
	sototcp(so)->owner = curthread;
}

/*
 * Wakes all waiters, because a timer that was woken alone would not wake the
 * next.
 */
static void
disown(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcp_socket *tso = sototcp(so);

	so_assert_locked(&tso->so);
	KASSERT(tso->owner == curthread, ("disown: not the owner"));
	tso->owner = NULL;
	if (tso->ownerwaits > 0)
		wakeup(&tso->owner);
}

/*
 * Release and acquire the mutex of a socket that a call owns.  Not analysed:
 * the socket stays locked for the call, which so_lock represents.
 */
static void
mutex_leave(struct socket *so) REQUIRES(so->so_lock) NO_LOCK_ANALYSIS
{
	mtx_unlock(&so->so_lock);
}

static void
mutex_return(struct socket *so) REQUIRES(so->so_lock) NO_LOCK_ANALYSIS
{
	mtx_lock(&so->so_lock);
}

/*
 * Processes queued segments until the queue is empty or an owner will do it.
 * Called with the mutex held, returns without it.
 */
static void
drain(struct socket *so) RELEASES(so->so_lock)
{
	struct tcp_socket *tso = sototcp(so);
	struct tcp_backlog *bl;

	wakeup_hold();
	so_assert_locked(&tso->so);
	while (tso->owner == NULL &&
	    (bl = STAILQ_FIRST(&tso->backlog)) != NULL) {
		STAILQ_REMOVE_HEAD(&tso->backlog, bl_link);
		tso->nbacklog--;
		soref(so);
		if (!tcp_input_locked(so, &bl->bl_seg))
			tcp_input_single(&bl->bl_seg);
		m_freem(bl->bl_seg.sg_m);
		kfree(bl);
		mtx_lock(&so->so_lock);
	}
	mtx_unlock(&so->so_lock);
	wakeup_release();
}

static void
backlog_enter(struct socket *so) ACQUIRES(so->so_lock)
{
	mtx_lock(&so->so_lock);
	own(so);
	mutex_leave(so);
}

static void
backlog_leave(struct socket *so) RELEASES(so->so_lock)
{
	const bool looked = PLANTED(BACKLOG_LEAVE) &&
	    STAILQ_EMPTY(&sototcp(so)->backlog);

	so_assert_locked(&sototcp(so)->so);
	mutex_return(so);
	disown(so);
	if (looked || STAILQ_EMPTY(&sototcp(so)->backlog))
		mtx_unlock(&so->so_lock);
	else
		drain(so);
}

static int
backlog_sleep(struct socket *so, const void *chan, const char *wmesg,
    nsec_t timeout) REQUIRES(so->so_lock)
{
	int error;

	so_assert_locked(&sototcp(so)->so);
	mutex_return(so);
	disown(so);
	if (!STAILQ_EMPTY(&sototcp(so)->backlog) && !PLANTED(BACKLOG_SLEEP)) {
		drain(so);	/* the queue may contain the awaited event */
		backlog_enter(so);
		return (0);
	}
	error = msleep(chan, &so->so_lock, PCATCH, wmesg, timeout);
	own(so);
	mutex_leave(so);
	return (error);
}

static void
backlog_lock(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock)
{
	mtx_lock_at(&so->so_lock, site);
	await_owner(so);
}

static bool
backlog_owned(struct socket *so)
{
	/* only this thread can make itself the owner */
	mtx_stable(&sototcp(so)->so.so_lock);
	return (mtx_owned(&so->so_lock) || sototcp(so)->owner == curthread);
}

/* Queues a segment for the owner, or drops it if the queue is full. */
static void
backlog_put(struct socket *so, struct tcpseg *sg) REQUIRES(so->so_lock)
{
	struct tcp_socket *tso = sototcp(so);
	struct tcp_backlog *bl;

	so_assert_locked(&tso->so);
	if (tso->nbacklog == BACKLOG_MAX) {
		TCPLOCK_INC(backlogdrops);
		return;
	}
	if (tso->nbacklog++ == 0)
		STAILQ_INIT(&tso->backlog);
	TCPLOCK_INC(backlogged);
	bl = kmalloc(sizeof(*bl));
	bl->bl_seg = *sg;
	sg->sg_m = NULL;
	STAILQ_INSERT_TAIL(&tso->backlog, bl, bl_link);
}

static void
backlog_input(struct tcpseg *sg)
{
	struct socket *so;

	do {
		so = tcp_find(sg);
		if (so == NULL)
			return;
		mtx_lock(&so->so_lock);
		so_assert_locked(&sototcp(so)->so);
		if (sototcp(so)->owner != NULL ||
		    !STAILQ_EMPTY(&sototcp(so)->backlog)) {
			backlog_put(so, sg);
			mtx_unlock(&so->so_lock);
			sorele(so);
			return;
		}
	} while (!tcp_input_locked(so, sg));
}

static const struct so_lockops backlog_ops = {
	.sl_enter = backlog_enter, .sl_leave = backlog_leave,
	.sl_sleep = backlog_sleep, .sl_lock = backlog_lock,
	.sl_unlock = tcp_lock_leave, .sl_owned = backlog_owned,
	.sl_waits = true,
};

const struct tcp_lockops tcp_lock_backlog = {
	.tlo_input = backlog_input, .tlo_lockops = &backlog_ops,
};
