/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets.  A listener has two queues: children in their handshake,
 * and connections that wait for accept, limited by the backlog.  The queues
 * have their own lock, so that a child can leave them while only the child is
 * locked, for example after a reset.  A thread wakes the listener after it has
 * unlocked the child, because the order of socket locks is listener, then
 * child.  A listener may have copies, which share its work (socopies.h).
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "kern/epoch.h"
#include "kern/planted.h"
#include "kern/socopies.h"
#include "kern/synch.h"
#include "kern/thread.h"

/* The copies come first: the protocol finds the listener from then on. */
static int
listen_begin(struct socket *so, struct socopies **failed)
    REQUIRES(so->so_lock)
{
	int error;

	socopies_make(so);
	error = so->so_proto->pr_listen(so);
	if (error != 0)
		*failed = socopies_detach(so);
	return (error);
}

int
solisten(struct socket *so, int backlog)
{
	struct socopies *failed = NULL;
	int error = 0;

	so_enter(so);
	if (!so->so_proto->pr_stream)
		error = EOPNOTSUPP;
	else if (so->so_pcb == NULL ||
	    (so->so_state & (SS_ISCONNECTED | SS_ISCONNECTING)))
		error = EINVAL;
	if (error == 0) {
		/* Linux: a backlog of 0 permits one connection */
		if (backlog < 0 || backlog > SOMAXCONN)
			backlog = SOMAXCONN;
		so->so_qlimit = (unsigned)backlog + 1;
		if ((so->so_state & SS_LISTENING) == 0)
			error = listen_begin(so, &failed);
	}
	if (error == 0) {
		socopies_limit(so, so->so_qlimit);
		so->so_state |= SS_LISTENING;
	}
	so_leave(so);
	socopies_close(failed);
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

/*
 * so_comp has changed by one child.  Other CPUs read the number, and of a copy
 * since when the first one waits.
 */
static void
comp_changed(struct socket *head, int by) REQUIRES(head->so_qlock, so_queues)
{
	const struct socket *so = TAILQ_FIRST(&head->so_comp);

	atomic_store_u32(&head->so_qlen, atomic_load_u32(&head->so_qlen) +
	    (uint32_t)by);
	if (socopies_of(head) != NULL)
		atomic_store_u64(&head->so_oldest,
		    so != NULL ? (uint64_t)so->so_queued : 0);
}

/* Takes a child off whichever queue it is on; the queue's reference stays. */
static void
queue_remove(struct socket *head, struct socket *so)
    REQUIRES(head->so_qlock, so_queues)
{
	if (so->so_onqueue == SQ_INCOMPLETE) {
		TAILQ_REMOVE(&head->so_incomp, so, so_link);
	} else if (so->so_onqueue == SQ_COMPLETE) {
		TAILQ_REMOVE(&head->so_comp, so, so_link);
		comp_changed(head, -1);
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

struct socket *
soq_take(struct socket *head, atomic_u64 *word, uint64_t bits)
{
	struct socket *so;

	soq_lock(head);
	so = TAILQ_FIRST(&head->so_comp);
	if (so != NULL)
		queue_remove(head, so);
	if (TAILQ_EMPTY(&head->so_comp) && (atomic_load_u64(word) & bits) != 0)
		atomic_clear_u64(word, bits);
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
	so_assert_locked(head);
	if (socopies_of(head) != NULL)
		return (socopies_full(head));
	return (atomic_load_u32(&head->so_qlen) >= head->so_qlimit);
}

void
sonewconn(struct socket *head, struct socket **sop)
{
	struct socket *so = sonewchild(head);

	so_enlist(so);
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
		so->so_queued = getuptime();
		comp_changed(head, 1);
		so->so_state |= SS_WAKEHEAD;
	}
	soq_unlock(head);
}

/* Wakes a thread for a connection that was queued. */
static void
head_wake(struct socket *head)
{
	struct socopies *sc;

	if (socopies_of(head) == NULL) {
		solock(head);
		sorwakeup(head);
		sounlock(head);
		return;
	}
	epoch_enter();
	sc = socopies_of(head);
	if (sc != NULL)
		socopies_wake(sc, head);
	epoch_exit();
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
	head_wake(head);
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

/* Why accept() does not wait, or what ended its wait; or 0. */
static int
accept_refused(struct socket *head, int flags, nsec_t deadline)
    REQUIRES(head->so_lock)
{
	int error = head->so_error;

	head->so_error = 0;
	if (error != 0)
		return (error);
	if (head->so_state & SS_CANTRCVMORE)
		return (EINVAL);	/* shut down */
	if (flags & MSG_DONTWAIT)
		return (EWOULDBLOCK);
	return (sbwait(head, &head->so_rcv, "accept", deadline));
}

/*
 * Waits for a connection; the child has the queue's reference.  A thread whose
 * wait has ended looks again, because it may have been woken for a connection.
 */
static int
soacceptwait(struct socket *head, int flags, struct socket **sop)
    REQUIRES(head->so_lock)
{
	nsec_t deadline = sbdeadline(&head->so_rcv);
	int error = 0;

	if ((head->so_state & SS_LISTENING) == 0)
		return (head->so_proto->pr_stream ? EINVAL : EOPNOTSUPP);
	for (;;) {
		*sop = socopies_of(head) != NULL ? socopies_take(head) :
		    queue_pop(head, SQ_COMPLETE);
		if (*sop != NULL)
			return (0);
		if (error != 0)
			return (error);
		error = accept_refused(head, flags, deadline);
	}
}

/* Accepts a connection of a listener or of one of its copies. */
static int
accept_from(struct socket *head, int flags, struct socket **sop)
{
	int error;

	so_enter(head);
	error = soacceptwait(head, flags, sop);
	if (error == 0 && head->so_proto->pr_accepted != NULL)
		head->so_proto->pr_accepted(head, *sop);
	so_leave(head);
	return (error);
}

int
soaccept(struct socket *head, int flags, struct sockaddr *sa, socklen_t *len,
    struct socket **sop)
{
	struct sockname name = sockname_none(head);
	struct socket *so, *from = NULL;
	int error;

	if (socopies_of(head) != NULL)
		from = socopies_ref(head);
	error = accept_from(from != NULL ? from : head, flags, &so);
	if (from != NULL)
		sorele(from);
	if (error != 0)
		return (error);

	so_enter(so);
	from = so->so_head;
	if (so->so_pcb != NULL)		/* as a child: it may have been reset */
		(void)so->so_proto->pr_peeraddr(so, &name);
	so->so_head = NULL;
	so_leave(so);
	sorele(from);
	if (sa != NULL && len != NULL)
		sockname_put(&name, sa, len);
	*sop = so;
	return (0);
}
