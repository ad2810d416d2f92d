/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=global: Watson's patch of 2006.  One mutex protects all links,
 * and each pcb has a mutex that protects its own link.  A change takes the
 * global mutex and both pcbs', a sender the global one and its own, a receiver
 * only its own.
 */
#include "kern/unpcb.h"

static struct mtx unp_global_mtx;

static void
global_init(void)
{
	mtx_init(&unp_global_mtx, LC_UNPGLOBAL);
}

static void
global_link(struct unpcb *a, struct unpcb *b)
    ACQUIRES(unp_global_mtx, unp_linkage)
{
	mtx_lock(&unp_global_mtx);
	unp_lock_two(a, b);
}

static struct unpcb *
global_link_with(struct unpcb *a, unp_pick *pick)
    ACQUIRES(unp_global_mtx, unp_linkage)
{
	struct unpcb *b;

	mtx_lock(&unp_global_mtx);
	b = pick(a);
	unp_lock_two(a, b);
	return (b);
}

static void
global_linked(struct unpcb *a, struct unpcb *b)
    RELEASES(unp_global_mtx, unp_linkage)
{
	unp_unlock_two(a, b);
	mtx_unlock(&unp_global_mtx);
}

static struct unpcb *
global_send(struct unpcb *unp)
    ACQUIRES(unp_global_mtx, unp->unp_mtx, unp_linkage)
{
	mtx_lock(&unp_global_mtx);
	mtx_lock(&unp->unp_mtx);
	role_take(&unp_linkage);
	return (unp->unp_conn);
}

static void
global_sent(struct unpcb *unp, struct unpcb *peer)
    RELEASES(unp_global_mtx, unp->unp_mtx, unp_linkage)
{
	(void)peer;
	role_drop(&unp_linkage);
	mtx_unlock(&unp->unp_mtx);
	mtx_unlock(&unp_global_mtx);
}

const struct unp_lockops unp_global = {
	.ulo_name = "global",
	.ulo_init = global_init,
	.ulo_link = global_link,
	.ulo_link_with = global_link_with,
	.ulo_linked = global_linked,
	.ulo_send = global_send,
	.ulo_sent = global_sent,
	.ulo_rcvd = unp_lock_own,
	.ulo_rcvd_done = unp_unlock_own,
};
