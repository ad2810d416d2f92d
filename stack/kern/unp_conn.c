/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links between UNIX-domain sockets: connecting and disconnecting.
 *
 * A change concerns two pcbs at a time, both locked by the strategy (ulo_link,
 * ulo_link_with).  A socket with several links, such as a datagram receiver,
 * changes them one by one.
 */
#include <errno.h>
#include <string.h>

#include "kern/synch.h"
#include "kern/unpcb.h"

/* Ends one side of a connection; error is 0 or the reason. */
static void
end_disconnected(struct socket *so, int error)
{
	unp_solock(so);
	so->so_snd.sb_cc = 0;	/* the peer no longer holds charged data */
	if (error != 0)
		so->so_error = error;
	soisdisconnected(so);
	unp_sounlock(so);
}

/* A datagram socket loses its peer.  Links of both locked. */
static void
datagram_disconnect(struct unpcb *unp, bool lost) REQUIRES(unp_linkage)
{
	struct socket *so = unp->unp_socket;

	LIST_REMOVE(unp, unp_sender);
	unp->unp_conn = NULL;
	unp->unp_lost = lost;
	unp_solock(so);
	so->so_state &= ~(unsigned)SS_ISCONNECTED;
	unp_sounlock(so);
}

struct unpcb *
unp_peer(struct unpcb *unp) REQUIRES(unp_linkage)
{
	return (unp->unp_conn);
}

/* A socket linked with this one, in either direction. */
static struct unpcb *
unp_connected(struct unpcb *unp) REQUIRES(unp_linkage)
{
	return (unp->unp_conn != NULL ? unp->unp_conn :
	    LIST_FIRST(&unp->unp_senders));
}

/* Ends one connection of a closed socket; links of both locked. */
static void
disconnect(struct unpcb *unp, struct unpcb *other, int error)
    REQUIRES(unp_linkage)
{
	if (unp->unp_socket->so_proto->pr_stream) {
		KASSERT(unp->unp_conn == other && other->unp_conn == unp,
		    ("disconnect: one-sided"));
		unp->unp_conn = other->unp_conn = NULL;
		end_disconnected(unp->unp_socket, 0);
		end_disconnected(other->unp_socket, error);
	} else if (unp->unp_conn == other) {
		datagram_disconnect(unp, false);
	} else {
		datagram_disconnect(other, true);
	}
}

void
unp_disconnect(struct unpcb *unp, int error)
{
	struct unpcb *other;

	while ((other = unp_lockops->ulo_link_with(unp, unp_connected)) !=
	    NULL) {
		disconnect(unp, other, error);
		unp_lockops->ulo_linked(unp, other);
	}
	unp->unp_closed = true;
	unp_solock(unp->unp_socket);
	unp->unp_socket->so_pcb = NULL;
	unp_sounlock(unp->unp_socket);
	unp_lockops->ulo_linked(unp, NULL);
}

/* Connects both sockets; links of both locked. */
static void
unp_link(struct unpcb *a, struct unpcb *b) REQUIRES(unp_linkage)
{
	struct unpcb *both[2] = { a, b };

	a->unp_conn = b;
	b->unp_conn = a;
	for (unsigned i = 0; i < 2; i++) {
		struct socket *so = both[i]->unp_socket;

		unp_solock(so);
		soisconnected(so);
		unp_sounlock(so);
	}
}

/* Links of both locked.  A datagram socket may connect to itself. */
static void
datagram_link(struct unpcb *unp, struct unpcb *peer) REQUIRES(unp_linkage)
{
	struct socket *so = unp->unp_socket;

	unp->unp_lost = false;
	unp->unp_conn = peer;
	LIST_INSERT_HEAD(&peer->unp_senders, unp, unp_sender);
	unp_solock(so);
	so->so_state |= SS_ISCONNECTED;
	unp_sounlock(so);
}

static void
datagram_forget(struct unpcb *unp)
{
	struct unpcb *peer = unp_lockops->ulo_link_with(unp, unp_peer);

	if (peer != NULL)
		datagram_disconnect(unp, false);
	unp->unp_lost = false;
	unp_lockops->ulo_linked(unp, peer);
}

/*
 * Gives a child the name and the place of its listener, and returns the
 * listener's credentials.  Both sockets are locked.
 */
static void
unp_inherit(struct unpcb *child, struct unpcb *listener, struct ucred *cred)
{
	struct sockname name = { .sn_len = 0 };

	so_assert_locked(child->unp_socket);
	so_assert_locked(listener->unp_socket);
	unp_getname(listener, &name);
	mtx_lock(&unp_name_lock);
	child->unp_name = name;
	mtx_unlock(&unp_name_lock);
	unp_credentials(&child->unp_cred);
	*cred = listener->unp_cred;
	unp_rights_head(child, listener);
}

/*
 * Creates the child that the listener will accept, with a reference, and
 * returns the listener's credentials; EWOULDBLOCK if the queue is full.
 */
static int
unp_newchild(struct socket *head, struct socket **sop, struct ucred *cred)
{
	struct socket *so;

	mtx_lock(&head->so_lock);
	if (head->so_pcb == NULL || (head->so_state & (SS_LISTENING |
	    SS_CANTRCVMORE | SS_NOFDREF)) != SS_LISTENING) {
		mtx_unlock(&head->so_lock);
		return (ECONNREFUSED);
	}
	if (soacceptfull(head)) {
		mtx_unlock(&head->so_lock);
		return (EWOULDBLOCK);
	}
	sonewconn(head, &so);
	(void)unp_attach(so);
	unp_inherit(sotounpcb(so), sotounpcb(head), cred);
	mtx_unlock(&so->so_lock);
	mtx_unlock(&head->so_lock);
	*sop = so;
	return (0);
}

/* Connects to a child that is not yet visible to its listener. */
static int
stream_link(struct unpcb *unp, struct unpcb *child, const struct ucred *cred)
{
	int error = 0;

	unp_lockops->ulo_link(unp, child);
	if (unp->unp_closed) {
		error = EBADF;
	} else if (unp->unp_conn != NULL) {
		error = EISCONN;	/* by another thread */
	} else if (child->unp_closed) {
		error = ECONNREFUSED;	/* the listener was closed */
	} else {
		unp_solock(unp->unp_socket);
		unp->unp_cred = *cred;
		unp_sounlock(unp->unp_socket);
		unp_link(unp, child);
	}
	unp_lockops->ulo_linked(unp, child);
	return (error);
}

static int
stream_connect(struct unpcb *unp, struct socket *head)
{
	struct unpcb *child;
	struct socket *so;
	struct ucred cred;
	int error;

	error = unp_newchild(head, &so, &cred);
	if (error != 0)
		return (error);
	mtx_lock(&so->so_lock);
	child = unp_hold(so);
	mtx_unlock(&so->so_lock);
	error = ECONNREFUSED;
	if (child != NULL) {
		error = stream_link(unp, child, &cred);
		unp_rele(child);
	}
	if (error != 0) {
		mtx_lock(&so->so_lock);
		if (sounqueue(so))	/* otherwise its listener ends it */
			unp_abort(so);
		mtx_unlock(&so->so_lock);
	}
	sorele(so);
	return (error);
}

static bool
queue_full(struct socket *head) REQUIRES(head->so_lock)
{
	return (atomic_load_u32(&head->so_qlen) >= head->so_qlimit);
}

/* Waits for space in the queue, as Linux does; BSD returns ECONNREFUSED. */
static int
wait_for_room(struct socket *head, nsec_t deadline)
{
	int error = 0;

	mtx_lock(&head->so_lock);
	while (error == 0 && (head->so_state &
	    (SS_NOFDREF | SS_CANTRCVMORE)) == 0 && queue_full(head))
		error = sbwait(head, &head->so_snd, "connec", deadline);
	mtx_unlock(&head->so_lock);
	return (error == EBADF ? ECONNREFUSED : error);
}

/* Why a datagram socket cannot connect; links of both locked. */
static int
datagram_error(const struct unpcb *unp, const struct unpcb *peer)
    REQUIRES(unp_linkage)
{
	if (unp->unp_closed)
		return (EBADF);
	if (peer->unp_closed)
		return (ECONNREFUSED);
	return (peer->unp_conn != NULL && peer->unp_conn != unp ? EPERM : 0);
}

/* Disconnects from the previous peer, a third socket, first. */
static int
datagram_connect(struct unpcb *unp, struct unpcb *peer)
{
	int error;

	for (;;) {
		unp_lockops->ulo_link(unp, peer);
		error = datagram_error(unp, peer);
		if (error != 0 || unp->unp_conn == NULL)
			break;
		unp_lockops->ulo_linked(unp, peer);
		datagram_forget(unp);
	}
	if (error == 0)
		datagram_link(unp, peer);
	unp_lockops->ulo_linked(unp, peer);
	return (error);
}

static int
connect_to(struct unpcb *unp, struct socket *to, int flags, nsec_t deadline)
{
	struct unpcb *peer;
	int error;

	if (to->so_type != unp->unp_socket->so_type)
		return (EPROTOTYPE);
	if (to->so_proto->pr_stream) {
		while ((error = stream_connect(unp, to)) == EWOULDBLOCK &&
		    (flags & MSG_DONTWAIT) == 0)
			if ((error = wait_for_room(to, deadline)) != 0)
				break;
		return (error);
	}
	mtx_lock(&to->so_lock);
	peer = unp_hold(to);
	mtx_unlock(&to->so_lock);
	if (peer == NULL)
		return (ECONNREFUSED);
	error = datagram_connect(unp, peer);
	unp_rele(peer);
	return (error);
}

int
unp_usr_connect(struct socket *so, const struct sockname *name, int flags)
    REQUIRES(so->so_lock)
{
	nsec_t deadline = sbdeadline(&so->so_snd);
	struct unpcb *unp;
	struct socket *to;
	int error = unp_hold_busy(so, &unp);

	if (error != 0)
		return (error);
	mtx_unlock(&so->so_lock);
	if (name == NULL) {
		datagram_forget(unp);
		error = 0;
	} else if ((error = unp_lookup(name, &to)) == 0) {
		error = connect_to(unp, to, flags, deadline);
		sorele(to);
	}
	mtx_lock(&so->so_lock);
	so_assert_locked(unp->unp_socket);
	unp_rele_busy(unp);
	return (error);
}

/* socketpair(): both are new and not visible to other threads. */
int
unp_connect2(struct socket *a, struct socket *b)
{
	struct unpcb *x, *y;

	mtx_private(&a->so_lock);
	mtx_private(&b->so_lock);
	x = sotounpcb(a);
	y = sotounpcb(b);
	mtx_private(&x->unp_socket->so_lock);
	mtx_private(&y->unp_socket->so_lock);
	unp_credentials(&x->unp_cred);
	unp_credentials(&y->unp_cred);
	unp_lockops->ulo_link(x, y);
	if (a->so_proto->pr_stream) {
		unp_link(x, y);
	} else {
		datagram_link(x, y);
		datagram_link(y, x);
	}
	unp_lockops->ulo_linked(x, y);
	return (0);
}
