/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=single: one mutex over all links, as in BSD until 2006.  Every
 * send and every receive takes it, around the locks of the sockets.
 */
#include "kern/unpcb.h"

static struct mtx unp_mtx;

static void
single_link(struct unpcb *a, struct unpcb *b) ACQUIRES(unp_mtx, unp_linkage)
{
	(void)a;
	(void)b;
	mtx_lock(&unp_mtx);
	role_take(&unp_linkage);
}

static struct unpcb *
single_link_with(struct unpcb *a, unp_pick *pick) ACQUIRES(unp_mtx, unp_linkage)
{
	mtx_lock(&unp_mtx);
	role_take(&unp_linkage);
	return (pick(a));
}

static struct unpcb *
single_send(struct unpcb *unp) ACQUIRES(unp_mtx, unp_linkage)
{
	mtx_lock(&unp_mtx);
	role_take(&unp_linkage);
	return (unp->unp_conn);
}

static struct unpcb *
single_rcvd(struct unpcb *unp) ACQUIRES(unp_mtx, unp_linkage)
{
	mtx_lock(&unp_mtx);
	role_take(&unp_linkage);
	return (unp->unp_conn);
}

static void
single_unlock(struct unpcb *a, struct unpcb *b)
    RELEASES(unp_mtx, unp_linkage)
{
	(void)a;
	(void)b;
	role_drop(&unp_linkage);
	mtx_unlock(&unp_mtx);
}

static void
single_init(void)
{
	mtx_init(&unp_mtx, LC_UNP);
}

const struct unp_lockops unp_single = {
	.ulo_name = "single",
	.ulo_init = single_init,
	.ulo_link = single_link,
	.ulo_link_with = single_link_with,
	.ulo_linked = single_unlock,
	.ulo_send = single_send,
	.ulo_sent = single_unlock,
	.ulo_rcvd = single_rcvd,
	.ulo_rcvd_done = single_unlock,
};
