/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=socket: as in OpenBSD.  The sockets' own locks, which also
 * protect their buffers, are the only ones.  An operation on two sockets holds
 * both, the lower address first.  A thread that knows only one socket and
 * finds that the other comes first unlocks, takes both in order and checks
 * again.
 */
#include "kern/unpcb.h"

/* Not analysed: whether there is a second lock depends on the sockets. */
static void
sopair_lock(struct socket *a, struct socket *b) ACQUIRES(unp_linkage)
    NO_LOCK_ANALYSIS
{
	struct socket *first = (uintptr_t)a < (uintptr_t)b ? a : b;

	mtx_lock(&first->so_lock);
	if (a != b)
		mtx_lock(first == a ? &b->so_lock : &a->so_lock);
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
    NO_LOCK_ANALYSIS
{
	struct socket *so = a->unp_socket, *other;
	struct unpcb *b;

	mtx_lock(&so->so_lock);
	while ((b = pick(a)) != NULL) {
		unp_ref(b);
		other = b->unp_socket;
		if (other == so)
			break;
		if ((uintptr_t)so < (uintptr_t)other) {
			mtx_lock(&other->so_lock);
			break;
		}
		atomic_count_u64(&unp_relocks, 1);
		mtx_unlock(&so->so_lock);
		sopair_lock(so, other);
		if (pick(a) == b)
			break;
		mtx_unlock(&other->so_lock);
		/*
		 * Releasing the last reference would lock a socket that comes
		 * first.
		 */
		mtx_unlock(&so->so_lock);
		unp_rele(b);
		mtx_lock(&so->so_lock);
	}
	return (b);
}

/*
 * b may be a child, whose listener is woken when no socket is locked.
 * Not analysed, like sopair_link_with(): b is locked unless it is NULL or a.
 */
static void
sopair_unlock(struct unpcb *a, struct unpcb *b) NO_LOCK_ANALYSIS
{
	mtx_unlock(&a->unp_socket->so_lock);
	if (b == NULL)
		return;
	if (b != a)
		sounlock_input(b->unp_socket);
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
