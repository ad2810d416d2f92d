/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locking strategy of the UNIX domain, selected at boot, and functions
 * shared by strategies.  Each strategy has its own file, unp_lock_*.c.
 */
#include <errno.h>

#include "kern/sysctl.h"
#include "kern/unpcb.h"

const struct unp_lockops *const unp_strategies[] = {
	&unp_giant, &unp_single, &unp_global, &unp_rwlock, &unp_pair,
	&unp_sopair, NULL
};
const struct unp_lockops *unp_lockops = &unp_single;
atomic_u64 unp_relocks COUNTERS, unp_tryfails COUNTERS;

static const char *const names[] = { "giant", "single", "global", "rwlock",
    "pair", "socket", NULL };
static atomic_u32 locking = 1;		/* index of "single" */
_Static_assert(nitems(names) == nitems(unp_strategies),
    "each strategy has a name");

static const struct sysctl_oid lock_oids[] = {
	{ .oid_name = "unix.locking", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &locking, .oid_names = names,
	  .oid_descr = "locking strategy of UNIX-domain sockets: giant, "
	      "single, global, rwlock, pair, socket "
	      "(docs/explanation/unix-locking.md)" },
	{ .oid_name = "unix.stats.relocks", .oid_type = CTL_U64,
	  .oid_ptr = &unp_relocks, .oid_descr = "lock pairs taken again in "
	      "order after the first was released" },
	{ .oid_name = "unix.stats.try_failures", .oid_type = CTL_U64,
	  .oid_ptr = &unp_tryfails, .oid_descr = "second locks of a pair "
	      "that trylock did not get" },
};

void
unp_lock_init(void)
{
	for (size_t i = 0; unp_strategies[i] != NULL; i++)
		if (unp_strategies[i]->ulo_init != NULL)
			unp_strategies[i]->ulo_init();
	sysctl_register(lock_oids, nitems(lock_oids));
}

/* With Giant, finer locks would never be contended. */
int
unp_lock_start(void)
{
	unp_lockops = unp_strategies[atomic_load_u32(&locking)];
	if (mpsafenet || unp_lockops == &unp_giant ||
	    unp_lockops == &unp_single)
		return (0);
	console("unix.locking=\"%s\" with debug.mpsafenet=\"0\": every "
	    "socket call holds Giant, so finer locks have no effect; set "
	    "debug.mpsafenet to 1, or unix.locking to giant or single",
	    unp_lockops->ulo_name);
	return (EINVAL);
}

/* Neither is analysed, because they return with the mutex held. */
void
unp_mtx_lock_at(struct unpcb *unp, const struct lock_site *site)
    NO_LOCK_ANALYSIS
{
	mtx_lock_at(&unp->unp_mtx, site);
}

bool
unp_mtx_trylock(struct unpcb *unp) NO_LOCK_ANALYSIS
{
	return (mtx_trylock(&unp->unp_mtx));
}

void
unp_mtx_unlock(struct unpcb *unp)
{
	mtx_assert_owned(&unp->unp_mtx);
	mtx_unlock(&unp->unp_mtx);
}

void
unp_lock_two(struct unpcb *a, struct unpcb *b)
{
	struct unpcb *first = a, *second = b;

	if ((uintptr_t)b < (uintptr_t)a && b != NULL) {
		first = b;
		second = a;
	}
	unp_mtx_lock(first);
	if (second != NULL && second != first)
		unp_mtx_lock(second);
	role_take(&unp_linkage);
}

void
unp_unlock_two(struct unpcb *a, struct unpcb *b)
{
	role_drop(&unp_linkage);
	if (b != NULL && b != a)
		unp_mtx_unlock(b);
	unp_mtx_unlock(a);
}

struct unpcb *
unp_lock_own(struct unpcb *unp)
{
	unp_mtx_lock(unp);
	role_take(&unp_linkage);
	return (unp->unp_conn);
}

void
unp_unlock_own(struct unpcb *unp, struct unpcb *peer)
{
	(void)peer;
	role_drop(&unp_linkage);
	unp_mtx_unlock(unp);
}
