/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locking strategies of the UNIX domain.
 *
 *	single	one mutex over all linkage, as BSD had until 2006: every send
 *		and every receive takes it, around the socket buffers' locks.
 */
#include <errno.h>

#include "kern/sysctl.h"
#include "kern/unpcb.h"

static struct mtx unp_mtx;

/* The checker cannot follow a lock that one function leaves to another. */
static void
single_link(struct unpcb *a, struct unpcb *b) NO_LOCK_ANALYSIS
{
	(void)a;
	(void)b;
	mtx_lock(&unp_mtx);
}

static void
single_linked(struct unpcb *a, struct unpcb *b) NO_LOCK_ANALYSIS
{
	(void)a;
	(void)b;
	mtx_unlock(&unp_mtx);
}

static struct unpcb *
single_peer(struct unpcb *unp) NO_LOCK_ANALYSIS
{
	mtx_lock(&unp_mtx);
	return (unp->unp_conn);
}

static const struct unp_lockops strategies[] = {
	{ "single", single_link, single_linked, single_peer, single_linked,
	  single_peer, single_linked },
};

const struct unp_lockops *unp_lockops = &strategies[0];

static atomic_u32 locking;
static const char *const names[] = { "single", NULL };

static const struct sysctl_oid lock_oids[] = {
	{ .oid_name = "unix.locking", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &locking, .oid_names = names,
	  .oid_descr = "locking strategy of UNIX-domain sockets: single" },
};

void
unp_lock_init(void)
{
	_Static_assert(nitems(names) == nitems(strategies) + 1,
	    "a name for each strategy");
	mtx_init(&unp_mtx, LC_UNP);
	sysctl_register(lock_oids, nitems(lock_oids));
}

int
unp_lock_start(void)
{
	unp_lockops = &strategies[atomic_load_u32(&locking)];
	return (0);
}
