/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unix.locking=giant: Giant protects the UNIX domain, as until 2004, while the
 * rest of the stack does not use it.  Calls that move data hold it throughout,
 * also while copying, except while they sleep.
 */
#include "kern/unpcb.h"

static void
under_giant(struct unpcb *a, struct unpcb *b) ACQUIRES(unp_linkage)
{
	(void)a;
	(void)b;
	giant_lock();
	role_take(&unp_linkage);
}

static void
leave_giant(struct unpcb *a, struct unpcb *b) RELEASES(unp_linkage)
{
	(void)a;
	(void)b;
	role_drop(&unp_linkage);
	giant_unlock();
}

static struct unpcb *
pick_under_giant(struct unpcb *a, unp_pick *pick) ACQUIRES(unp_linkage)
{
	giant_lock();
	role_take(&unp_linkage);
	return (pick(a));
}

static struct unpcb *
peer_under_giant(struct unpcb *unp) ACQUIRES(unp_linkage)
{
	giant_lock();
	role_take(&unp_linkage);
	return (unp->unp_conn);
}

const struct unp_lockops unp_giant = {
	.ulo_name = "giant",
	.ulo_giant = true,
	.ulo_link = under_giant,
	.ulo_link_with = pick_under_giant,
	.ulo_linked = leave_giant,
	.ulo_send = peer_under_giant,
	.ulo_sent = leave_giant,
	.ulo_rcvd = peer_under_giant,
	.ulo_rcvd_done = leave_giant,
};
