/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giant: one recursive lock over the whole stack (Watson 2004).
 *
 * With debug.mpsafenet=0 every way into the stack takes it; with 1 only what
 * declared that it needs it.  It comes before every other lock, and is
 * dropped while its owner sleeps, whatever the depth of recursion.
 */
#include "kern/kern_private.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

bool mpsafenet = true;

static struct mtx giant;

static const struct sysctl_oid giant_oids[] = {
	{ .oid_name = "debug.mpsafenet", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &mpsafenet,
	    .oid_descr = "0: Giant over the whole stack" },
};

void
giant_init(void)
{
	mtx_init(&giant, LC_GIANT);
	sysctl_register(giant_oids, nitems(giant_oids));
}

void
giant_lock_at(const struct lock_site *site) NO_LOCK_ANALYSIS
{
	struct thread *td = curthread;

	if (td->td_giant++ == 0) {
		mtx_lock_at(&giant, site);
	}
}

void
giant_unlock(void) NO_LOCK_ANALYSIS
{
	struct thread *td = curthread;

	KASSERT(td->td_giant > 0, ("giant_unlock: %s does not hold it",
	    td->td_name));
	if (--td->td_giant == 0)
		mtx_unlock(&giant);
}

void
giant_enter_at(const struct lock_site *site)
{
	if (!mpsafenet)
		giant_lock_at(site);
}

void
giant_exit(void)
{
	if (!mpsafenet)
		giant_unlock();
}

unsigned
giant_drop(void) NO_LOCK_ANALYSIS
{
	struct thread *td = curthread;
	unsigned depth = td->td_giant;

	if (depth > 0) {
		td->td_giant = 0;
		mtx_unlock(&giant);
	}
	return (depth);
}

void
giant_pickup(unsigned depth) NO_LOCK_ANALYSIS
{
	if (depth > 0) {
		mtx_lock(&giant);
		curthread->td_giant = depth;
	}
}
