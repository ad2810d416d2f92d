/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets.  A listener has two queues: children in their handshake,
 * and connections that wait for accept, limited by the backlog.  The queues
 * have their own lock, so that a child can leave them while only the child is
 * locked, for example after a reset.  A thread wakes the listener after it has
 * unlocked the child, because the order of socket locks is listener, then
 * child.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "kern/planted.h"
#include "kern/socketvar.h"
#include "kern/synch.h"
#include "kern/thread.h"

int
solisten(struct socket *so, int backlog)
{
	int error = 0;

	so_enter(so);
	if (!so->so_proto->pr_stream)
		error = EOPNOTSUPP;
	else if (so->so_pcb == NULL ||
	    (so->so_state & (SS_ISCONNECTED | SS_ISCONNECTING)))
		error = EINVAL;
	else if ((so->so_state & SS_LISTENING) == 0)
		error = so->so_proto->pr_listen(so);
	if (error == 0) {
		/* Linux: a backlog of 0 permits one connection */
		if (backlog < 0 || backlog > SOMAXCONN)
			backlog = SOMAXCONN;
		so->so_qlimit = (unsigned)backlog + 1;
		so->so_state |= SS_LISTENING;
	}
	so_leave(so);
	return (error);
}

#define	soq_lock(head)	do {						\
	mtx_lock(&(head)->so_qlock);					\
	role_take(&so_queues);						\
} while (0)
#define	soq_unlock(head) do {						\
	role_drop(&so_queues);						\
	mtx_unlock(&(head)->so_qlock);					\
} while (0)

/* Takes a child off whichever queue it is on; the queue's reference stays. */
static void
queue_remove(struct socket *head, struct socket *so)
    REQUIRES(head->so_qlock, so_queues)
{
	if (so->so_onqueue == SQ_INCOMPLETE) {
		TAILQ_REMOVE(&head->so_incomp, so, so_link);
	} else if (so->so_onqueue == SQ_COMPLETE) {
		TAILQ_REMOVE(&head->so_comp, so, so_link);
		head->so_qlen--;
	}
	so->so_onqueue = SQ_NONE;
}

/* Removes the first child of a queue with the queue's reference; or NULL. */
static struct socket *
queue_pop(struct socket *head, enum so_queue which)
{
	struct socket *so;

	soq_lock(head);
	so = TAILQ_FIRST(which == SQ_COMPLETE ? &head->so_comp :
	    &head->so_incomp);
	if (so != NULL)
		queue_remove(head, so);
	soq_unlock(head);
	return (so);
}

/* Aborts a child that queue_pop() returned. */
static void
soabort(struct socket *so)
{
	so_resume(so);
	so->so_state |= SS_NOFDREF;
	if (so->so_pcb != NULL)
		so->so_proto->pr_abort(so);
	so_pause(so);
	sorele(so);
}

bool
soacceptfull(struct socket *head)
{
	bool full;

	so_assert_locked(head);
	soq_lock(head);
	full = head->so_qlen >= head->so_qlimit;
	soq_unlock(head);
	return (full);
}

void
sonewconn(struct socket *head, struct socket **sop)
{
	struct socket *so = sonewchild(head);

	*sop = so;
	solock_child(*sop);
	so_assert_locked(so);
	soref(head);
	so->so_head = head;
	soref(so);
	soq_lock(head);
	TAILQ_INSERT_TAIL(&head->so_incomp, so, so_link);
	so->so_onqueue = SQ_INCOMPLETE;
	soq_unlock(head);
}

bool
sounqueue(struct socket *so) REQUIRES(so->so_lock)
{
	struct socket *head = so->so_head;
	bool found = false;

	so_assert_locked(so);
	if (head == NULL)
		return (false);
	soq_lock(head);
	if (so->so_onqueue == SQ_INCOMPLETE) {
		queue_remove(head, so);
		found = true;
	}
	soq_unlock(head);
	if (found) {
		so->so_state |= SS_NOFDREF;
		sorele(so);
	}
	return (found);
}

void
soisconnected(struct socket *so) REQUIRES(so->so_lock)
{
	struct socket *head = so->so_head;

	so_assert_locked(so);
	so->so_state &= ~(unsigned)(SS_ISCONNECTING | SS_ISDISCONNECTING);
	so->so_state |= SS_ISCONNECTED | SS_WASCONNECTED;
	if (head == NULL) {
		sorwakeup(so);
		sowwakeup(so);
		return;
	}
	soq_lock(head);
	if (so->so_onqueue == SQ_INCOMPLETE || PLANTED(ACCEPT_QUEUE)) {
		queue_remove(head, so);
		TAILQ_INSERT_TAIL(&head->so_comp, so, so_link);
		so->so_onqueue = SQ_COMPLETE;
		head->so_qlen++;
		so->so_state |= SS_WAKEHEAD;
	}
	soq_unlock(head);
}

__hot void
sounlock_input(struct socket *so)
{
	struct socket *head = NULL;

	if (__predict_false(so->so_state & SS_WAKEHEAD)) {
		so->so_state &= ~(unsigned)SS_WAKEHEAD;
		head = so->so_head;
		if (head != NULL && !PLANTED(ACCEPT_WAKE))
			soref(head);
	}
	sounlock(so);
	if (__predict_true(head == NULL))
		return;
	solock(head);
	sorwakeup(head);
	sounlock(head);
	if (!PLANTED(ACCEPT_WAKE))
		sorele(head);
}

/* The listener is closed: aborts the children in its queues. */
void
sodrainqueues(struct socket *head)
{
	struct socket *so;

	while ((so = queue_pop(head, SQ_INCOMPLETE)) != NULL ||
	    (so = queue_pop(head, SQ_COMPLETE)) != NULL) {
		/* A protocol may have locks that come before a socket's. */
		so_pause(head);
		soabort(so);
		so_resume(head);
	}
}

/* Waits for a connection; the child has the queue's reference. */
static int
soacceptwait(struct socket *head, int flags, struct socket **sop)
    REQUIRES(head->so_lock)
{
	nsec_t deadline = sbdeadline(&head->so_rcv);
	int error;

	if ((head->so_state & SS_LISTENING) == 0)
		return (head->so_proto->pr_stream ? EINVAL : EOPNOTSUPP);
	while ((*sop = queue_pop(head, SQ_COMPLETE)) == NULL) {
		if (head->so_error != 0) {
			error = head->so_error;
			head->so_error = 0;
			return (error);
		}
		if (head->so_state & SS_CANTRCVMORE)
			return (EINVAL);	/* shut down */
		if (flags & MSG_DONTWAIT)
			return (EWOULDBLOCK);
		error = sbwait(head, &head->so_rcv, "accept", deadline);
		if (error != 0)
			return (error);
	}
	return (0);
}

int
soaccept(struct socket *head, int flags, struct sockaddr *sa, socklen_t *len,
    struct socket **sop)
{
	struct sockname name = sockname_none(head);
	struct socket *so;
	int error;

	so_enter(head);
	error = soacceptwait(head, flags, &so);
	if (error == 0 && head->so_proto->pr_accepted != NULL)
		head->so_proto->pr_accepted(head, so);
	so_leave(head);
	if (error != 0)
		return (error);

	so_enter(so);
	KASSERT(so->so_head == head, ("soaccept: child of another listener"));
	so->so_head = NULL;
	if (so->so_pcb != NULL)
		(void)so->so_proto->pr_peeraddr(so, &name);
	so_leave(so);
	sorele(head);
	if (sa != NULL && len != NULL)
		sockname_put(&name, sa, len);
	*sop = so;
	return (0);
}
