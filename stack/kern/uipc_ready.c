/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readiness: the poll(2) events of a socket, and notification of waiters; and
 * whether a read waits.  The rules are Linux's (tcp(7), poll(2)), because
 * programs depend on them.
 */
#include <errno.h>
#include <poll.h>

#include "kern/socopies.h"
#include "kern/synch.h"

#define	READ_EVENTS	(POLLIN | POLLPRI | POLLRDNORM | POLLRDHUP | \
			    POLLHUP | POLLERR)
#define	WRITE_EVENTS	(POLLOUT | POLLWRNORM | POLLHUP | POLLERR)

static bool
soreadable(struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_state & SS_LISTENING)
		return (atomic_load_u32(&so->so_qlen) > 0 ||
		    socopies_ready(so) ||
		    (so->so_state & SS_CANTRCVMORE) != 0);
	if (so->so_state & SS_CANTRCVMORE)
		return (true);
	/* as in Linux, SO_RCVLOWAT is for TCP's readiness only */
	if (!so->so_proto->pr_stream || so->so_proto->pr_local)
		return (so->so_rcv.sb_cc > 0);
	return (so->so_rcv.sb_cc >= sbreadable(&so->so_rcv));
}

/*
 * Writable if a third of the buffer is free, as in Linux: programs write many
 * blocks after a notification, and waking for a single block is inefficient.
 */
static bool
sowriteable(struct socket *so) REQUIRES(so->so_lock)
{
	const struct sockbuf *sb = &so->so_snd;

	if (so->so_state & SS_LISTENING)
		return (false);
	if (so->so_state & SS_CANTSENDMORE)
		return (true);
	if (so->so_state & SS_ISCONNECTING)
		return (false);
	if (sbspace(sb) >= sb->sb_cc / 2 &&
	    sosendspace(so, SIZE_MAX, false) > 0)
		return (true);
	so->so_state |= SS_NOSPACE;
	return (false);
}

NOINLINE int
soready(struct socket *so) REQUIRES(so->so_lock)
{
	const unsigned both = SS_CANTRCVMORE | SS_CANTSENDMORE;
	int events = 0;

	if (soreadable(so))
		events |= POLLIN | POLLRDNORM;
	if (sowriteable(so))
		events |= POLLOUT | POLLWRNORM;
	if (so->so_oob == OOB_HERE)
		events |= POLLPRI;
	if (so->so_errors.sb_head != NULL)
		events |= POLLERR;
	if (so->so_error != 0)
		events |= POLLERR | POLLOUT | POLLWRNORM;
	if (so->so_error != 0 && so->so_proto->pr_stream)
		events |= POLLIN | POLLRDNORM;
	if ((so->so_state & SS_LISTENING) == 0) {
		if (so->so_state & SS_CANTRCVMORE)
			events |= POLLRDHUP;
		/* closed in both directions, or never connected */
		if ((so->so_state & both) == both ||
		    (so->so_proto->pr_stream && (so->so_state &
		    (SS_ISCONNECTED | SS_ISCONNECTING)) == 0))
			events |= POLLHUP;
	}
	return (events);
}

/*
 * A new connection wakes one thread in accept(), with its own wakeup, so that
 * no thread wakes without a connection.  The end of a listener wakes all.
 */
NOINLINE static void
sowake(struct socket *so, struct sockbuf *sb) REQUIRES(so->so_lock)
{
	if ((so->so_state & (SS_LISTENING | SS_CANTRCVMORE)) == SS_LISTENING &&
	    so->so_error == 0)
		(void)wakeup_one(sb);
	else
		wakeup(sb);
}

NOINLINE static void
tell_watches(struct socket *so, int mask) REQUIRES(so->so_lock)
{
	const int events = soready(so) & mask;
	struct sowatch *sw, *next;

	if (events == 0)
		return;
	for (sw = LIST_FIRST(&so->so_watch); sw != NULL; sw = next) {
		next = LIST_NEXT(sw, sw_link);
		sw->sw_fn(sw, events);
	}
}

static void
sonotify(struct socket *so, struct sockbuf *sb, int mask)
{
	so_assert_locked(so);
	if (sb->sb_waiters > 0)
		sowake(so, sb);
	if (!LIST_EMPTY(&so->so_watch))
		tell_watches(so, mask);
}

__hot void
sorwakeup(struct socket *so) REQUIRES(so->so_lock)
{
	sonotify(so, &so->so_rcv, READ_EVENTS);
}

__hot void
sowwakeup(struct socket *so) REQUIRES(so->so_lock)
{
	sonotify(so, &so->so_snd, WRITE_EVENTS);
}

/* The requested events, and those that poll() always reports. */
static int
soreadymask(struct socket *so, int events) REQUIRES(so->so_lock)
{
	return (soready(so) & (events | POLLERR | POLLHUP));
}

/* Copies of a listener test the number after they have queued a connection. */
void
sowatch_link(struct socket *so, struct sowatch *sw)
{
	LIST_INSERT_HEAD(&so->so_watch, sw, sw_link);
	atomic_store_u32(&so->so_nwatches,
	    atomic_load_u32(&so->so_nwatches) + 1);
	if (__predict_false(socopies_of(so) != NULL))
		atomic_fence();
}

void
sowatch_unlink(struct socket *so, struct sowatch *sw)
{
	LIST_REMOVE(sw, sw_link);
	atomic_store_u32(&so->so_nwatches,
	    atomic_load_u32(&so->so_nwatches) - 1);
}

int
sopoll(struct socket *so, int events)
{
	int ready;

	so_enter(so);
	ready = soreadymask(so, events);
	so_leave(so);
	return (ready);
}

int
sowatch_add(struct socket *so, struct sowatch *sw, int events)
{
	int ready;

	so_enter(so);
	sowatch_link(so, sw);
	ready = soreadymask(so, events);
	so_leave(so);
	return (ready);
}

void
sowatch_remove(struct socket *so, struct sowatch *sw)
{
	so_enter(so);
	sowatch_unlink(so, sw);
	so_leave(so);
}

bool
solistens(struct socket *so)
{
	bool listens;

	so_enter(so);
	listens = (so->so_state & SS_LISTENING) != 0;
	so_leave(so);
	return (listens);
}

int
soavail(struct socket *so)
{
	uint32_t n;

	so_enter(so);
	n = sooobbound(so, so->so_rcv.sb_cc);
	if (so->so_proto->pr_avail != NULL)
		n = so->so_proto->pr_avail(so);
	else if (!so->so_proto->pr_stream && so->so_rcv.sb_head != NULL)
		n = sbdatalen(so->so_rcv.sb_head);
	so_leave(so);
	return ((int)n);
}

int
sonotsent(struct socket *so)
{
	uint32_t n;

	so_enter(so);
	n = so->so_proto->pr_notsent != NULL && so->so_pcb != NULL ?
	    so->so_proto->pr_notsent(so) : so->so_snd.sb_cc;
	so_leave(so);
	return ((int)n);
}

int
sounsent(struct socket *so)
{
	uint32_t n;

	so_enter(so);
	n = so->so_snd.sb_cc;
	so_leave(so);
	return ((int)n);
}

NOINLINE bool
soreceive_ended(struct socket *so, bool partial, int flags, int *error)
    REQUIRES(so->so_lock)
{
	const struct sockbuf *sb = &so->so_rcv;

	*error = 0;
	/* EPIPE is for writers: the stream had ended before the reset */
	if (so->so_error != 0 && so->so_error != EPIPE) {
		if (sb->sb_cc > 0 || partial)
			return (true);
		*error = so->so_error;
		if ((flags & MSG_PEEK) == 0)
			so->so_error = 0;
		return (true);
	}
	if ((so->so_state & SS_CANTRCVMORE) &&
	    (so->so_proto->pr_stream || (flags & MSG_DONTWAIT) == 0))
		return (true);
	if (so->so_proto->pr_stream && (so->so_state &
	    (SS_ISCONNECTED | SS_ISCONNECTING)) == 0) {
		*error = ENOTCONN;
		return (true);
	}
	return (false);
}

bool
soreceiveblocks(struct socket *so, size_t len, int flags)
{
	bool blocks;
	int error;

	if (so->so_proto->pr_local)	/* it waits again for each part */
		flags &= ~MSG_WAITALL;
	so_enter(so);
	blocks = so->so_rcv.sb_cc < sooobbound(so, sowant(&so->so_rcv, len,
	    flags)) && !soreceive_ended(so, false, flags | MSG_PEEK, &error);
	so_leave(so);
	return (blocks);
}
