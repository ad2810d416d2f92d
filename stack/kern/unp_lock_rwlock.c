/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=rwlock: FreeBSD of 2007.  A reader-writer lock protects all
 * links.  A change takes it for writing and the mutexes of both pcbs.  A
 * sender takes it for reading and the mutex of its peer's pcb.  A receiver
 * takes only its own mutex, which protects its link.
 */
#include "kern/unpcb.h"

static struct rwlock unp_link_rwlock;

static void
rwlock_init(void)
{
	rw_init(&unp_link_rwlock, LC_UNPLINK);
}

static void
rwlock_link(struct unpcb *a, struct unpcb *b)
    ACQUIRES(unp_link_rwlock, unp_linkage)
{
	rw_wlock(&unp_link_rwlock);
	unp_lock_two(a, b);
}

static struct unpcb *
rwlock_link_with(struct unpcb *a, unp_pick *pick)
    ACQUIRES(unp_link_rwlock, unp_linkage)
{
	struct unpcb *b;

	rw_wlock(&unp_link_rwlock);
	b = pick(a);
	unp_lock_two(a, b);
	return (b);
}

static void
rwlock_linked(struct unpcb *a, struct unpcb *b)
    RELEASES(unp_link_rwlock, unp_linkage)
{
	unp_unlock_two(a, b);
	rw_wunlock(&unp_link_rwlock);
}

static struct unpcb *
rwlock_send(struct unpcb *unp) ACQUIRES_SHARED(unp_link_rwlock)
    ACQUIRES(unp_linkage)
{
	struct unpcb *peer;

	rw_rlock(&unp_link_rwlock);
	role_take(&unp_linkage);
	peer = unp->unp_conn;
	unp_mtx_lock(peer != NULL ? peer : unp);
	return (peer);
}

static void
rwlock_sent(struct unpcb *unp, struct unpcb *peer)
    RELEASES_SHARED(unp_link_rwlock) RELEASES(unp_linkage)
{
	unp_unlock_own(peer != NULL ? peer : unp, NULL);
	rw_runlock(&unp_link_rwlock);
}

const struct unp_lockops unp_rwlock = {
	.ulo_name = "rwlock",
	.ulo_init = rwlock_init,
	.ulo_link = rwlock_link,
	.ulo_link_with = rwlock_link_with,
	.ulo_linked = rwlock_linked,
	.ulo_send = rwlock_send,
	.ulo_sent = rwlock_sent,
	.ulo_rcvd = unp_lock_own,
	.ulo_rcvd_done = unp_unlock_own,
};
