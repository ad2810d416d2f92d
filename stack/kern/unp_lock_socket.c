/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=socket: as in OpenBSD.  The sockets' own locks, which also
 * protect their buffers, are the only ones.  An operation on two sockets holds
 * both, the lower address first.  A thread that knows only one socket and
 * finds that the other comes first unlocks, takes both in order and checks
 * again.  A stream first tries to lock its peer behind its own socket, in
 * either order.
 */
#include "kern/planted.h"
#include "kern/unpcb.h"

/*
 * Locks a socket for unp_solock(), which finds it locked; false: another
 * thread has it, and this one must not wait.  Not analysed, because it returns
 * with the mutex held.
 */
static bool
sopair_take(struct socket *so, bool waits) NO_LOCK_ANALYSIS
{
	if (!waits)
		return (mtx_trylock(&so->so_lock));
	mtx_lock(&so->so_lock);
	return (true);
}

static void
sopair_give(struct socket *so)
{
	mtx_assert_owned(&so->so_lock);
	mtx_unlock(&so->so_lock);
}

static void
sopair_enter(void) ACQUIRES(unp_linkage)
{
	role_take(&unp_linkage);
}

static void
sopair_exit(void) RELEASES(unp_linkage)
{
	role_drop(&unp_linkage);
}

static void
sopair_lock(struct socket *a, struct socket *b) ACQUIRES(unp_linkage)
{
	struct socket *first = (uintptr_t)a < (uintptr_t)b ? a : b;

	(void)sopair_take(first, true);
	if (a != b)
		(void)sopair_take(first == a ? b : a, true);
	sopair_enter();
}

/* Unlocks the only socket that is locked. */
static void
sopair_leave(struct socket *so) RELEASES(unp_linkage)
{
	sopair_exit();
	sopair_give(so);
}

static void
sopair_link(struct unpcb *a, struct unpcb *b) ACQUIRES(unp_linkage)
{
	if (b != NULL)
		unp_ref(b);
	sopair_lock(a->unp_socket, (b != NULL ? b : a)->unp_socket);
}

static struct unpcb *
sopair_link_with(struct unpcb *a, unp_pick *pick) ACQUIRES(unp_linkage)
{
	struct socket *so = a->unp_socket, *other;
	struct unpcb *b;

	sopair_lock(so, so);
	while ((b = pick(a)) != NULL) {
		unp_ref(b);
		other = b->unp_socket;
		if (other == so)
			break;
		if ((uintptr_t)so < (uintptr_t)other) {
			(void)sopair_take(other, true);
			break;
		}
		counter_add(&unp_relocks, 1);
		sopair_leave(so);
		sopair_lock(so, other);
		if (pick(a) == b)
			break;
		sopair_give(other);
		/*
		 * Releasing the last reference would lock a socket that comes
		 * first.
		 */
		sopair_leave(so);
		unp_rele(b);
		sopair_lock(so, so);
	}
	return (b);
}

/* b may be a child, whose listener is woken when no socket is locked. */
static void
sopair_unlock(struct unpcb *a, struct unpcb *b) RELEASES(unp_linkage)
{
	sopair_leave(a->unp_socket);
	if (b == NULL)
		return;
	if (b != a) {
		so_assert_locked(b->unp_socket);
		sounlock_input(b->unp_socket);
	}
	unp_rele(b);
}

static struct unpcb *
sopair_send(struct unpcb *unp) ACQUIRES(unp_linkage)
{
	return (sopair_link_with(unp, unp_peer));
}

static struct unpcb *
sopair_rcvd(struct unpcb *unp) ACQUIRES(unp_linkage)
{
	return (sopair_link_with(unp, unp_peer));
}

/*
 * Locks a second socket, and waits only for one that comes after the first.
 */
static bool
sopair_take_second(struct socket *so, struct socket *other)
{
	if (sopair_take(other, false))
		return (true);
	counter_add(&unp_tryfails, 1);
	return (((uintptr_t)so < (uintptr_t)other || PLANTED(SOPAIR_ORDER)) &&
	    sopair_take(other, true));
}

/*
 * Returns the peer, with its socket locked; NULL: ulo_send() finds it.  That
 * also has a peer in a listener's queue, whose listener may have to be woken.
 */
static struct unpcb *
sopair_take_peer(struct unpcb *unp) REQUIRES(unp_linkage)
{
	struct unpcb *peer = unp->unp_conn;
	struct socket *other;

	if (peer == NULL || peer == unp)
		return (NULL);
	other = peer->unp_socket;
	if (!sopair_take_second(unp->unp_socket, other))
		return (NULL);
	so_assert_locked(other);
	if (__predict_true(other->so_head == NULL))
		return (peer);
	sopair_give(other);
	return (NULL);
}

/*
 * A change of a link needs the locks of both sockets, so the lock of one
 * keeps its peer, which therefore needs no reference.
 */
static bool
sopair_try(struct unpcb *unp, struct unpcb **peer)
    TRY_ACQUIRES(true, unp_linkage)
{
	so_assert_locked(unp->unp_socket);
	sopair_enter();
	*peer = sopair_take_peer(unp);
	if (__predict_true(*peer != NULL))
		return (true);
	sopair_exit();
	return (false);
}

static void
sopair_tried(struct unpcb *peer) RELEASES(unp_linkage)
{
	so_assert_locked(peer->unp_socket);
	so_keep_time(peer->unp_socket);
	sopair_leave(peer->unp_socket);
}

const struct unp_lockops unp_sopair = {
	.ulo_name = "socket",
	.ulo_sockets = true,
	.ulo_link = sopair_link,
	.ulo_link_with = sopair_link_with,
	.ulo_linked = sopair_unlock,
	.ulo_send = sopair_send,
	.ulo_sent = sopair_unlock,
	.ulo_rcvd = sopair_rcvd,
	.ulo_rcvd_done = sopair_unlock,
	.ulo_try = sopair_try,
	.ulo_tried = sopair_tried,
};
