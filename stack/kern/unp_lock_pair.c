/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=pair: FreeBSD since 2018.  There is no global lock.  The
 * mutexes of both pcbs protect their link; the lower address is locked first.
 * A thread that knows only one pcb locks it and tries the other.  If that
 * fails and the other comes first, it unlocks, takes both in order and checks
 * again.  A sender keeps only its peer's mutex, without which the peer cannot
 * be unlinked.
 */
#include "kern/planted.h"
#include "kern/unpcb.h"

static void
pair_link(struct unpcb *a, struct unpcb *b) ACQUIRES(unp_linkage)
{
	if (b != NULL)
		unp_ref(b);
	unp_lock_two(a, b);
}

/*
 * Locks b, which comes first, behind a.  True if a still picks it; otherwise
 * only a is locked.
 */
static bool
pair_relock(struct unpcb *a, struct unpcb *b, unp_pick *pick)
    REQUIRES(unp_linkage)
{
	counter_add(&unp_relocks, 1);
	unp_unlock_own(a, NULL);
	unp_lock_two(a, b);
	if (pick(a) == b || PLANTED(PAIR_RECHECK))
		return (true);
	unp_mtx_unlock(b);
	return (false);
}

static struct unpcb *
pair_link_with(struct unpcb *a, unp_pick *pick) ACQUIRES(unp_linkage)
{
	struct unpcb *b;

	(void)unp_lock_own(a);
	while ((b = pick(a)) != NULL) {
		unp_ref(b);
		if (b == a || unp_mtx_trylock(b))
			break;
		counter_add(&unp_tryfails, 1);
		if ((uintptr_t)a < (uintptr_t)b || PLANTED(PAIR_ORDER)) {
			unp_mtx_lock(b);
			break;
		}
		if (pair_relock(a, b, pick))
			break;
		unp_rele(b);
	}
	return (b);
}

/* The reference lasts until b's mutex has been released. */
static void
pair_linked(struct unpcb *a, struct unpcb *b) RELEASES(unp_linkage)
{
	unp_unlock_two(a, b);
	if (b != NULL)
		unp_rele(b);
}

static struct unpcb *
pair_peer(struct unpcb *unp) ACQUIRES(unp_linkage)
{
	struct unpcb *peer = pair_link_with(unp, unp_peer);

	if (peer != NULL && peer != unp)
		unp_mtx_unlock(unp);
	return (peer);
}

static void
pair_peer_done(struct unpcb *unp, struct unpcb *peer) RELEASES(unp_linkage)
{
	unp_unlock_own(peer != NULL ? peer : unp, NULL);
	if (peer != NULL)
		unp_rele(peer);
}

const struct unp_lockops unp_pair = {
	.ulo_name = "pair",
	.ulo_link = pair_link,
	.ulo_link_with = pair_link_with,
	.ulo_linked = pair_linked,
	.ulo_send = pair_peer,
	.ulo_sent = pair_peer_done,
	.ulo_rcvd = pair_peer,
	.ulo_rcvd_done = pair_peer_done,
};
