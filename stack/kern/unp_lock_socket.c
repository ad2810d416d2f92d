/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=socket: as in OpenBSD.  The sockets' own locks, which also
 * protect their buffers, are the only ones.  An operation on two sockets holds
 * both, the lower address first.  A thread that knows only one socket and
 * finds that the other comes first unlocks, takes both in order and checks
 * again.
 */
#include "kern/unpcb.h"

/*
 * Locks a socket for unp_solock(), which finds it locked.  Not analysed,
 * because it returns with the mutex held.
 */
static void
sopair_take(struct socket *so) NO_LOCK_ANALYSIS
{
	mtx_lock(&so->so_lock);
}

static void
sopair_give(struct socket *so)
{
	mtx_assert_owned(&so->so_lock);
	mtx_unlock(&so->so_lock);
}

static void
sopair_lock(struct socket *a, struct socket *b) ACQUIRES(unp_linkage)
{
	struct socket *first = (uintptr_t)a < (uintptr_t)b ? a : b;

	sopair_take(first);
	if (a != b)
		sopair_take(first == a ? b : a);
	role_take(&unp_linkage);
}

/* Unlocks the only socket that is locked. */
static void
sopair_leave(struct socket *so) RELEASES(unp_linkage)
{
	role_drop(&unp_linkage);
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
			sopair_take(other);
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
};
