/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net lock.
 */
#include "kern/netlock.h"

#include "kern/counter.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

enum netlock_mode netlock_mode;

static struct rwlock netlock;

#define	NETLOCK_STATS(X)						\
	X(shared, "shared acquisitions")				\
	X(exclusive, "exclusive acquisitions")				\
	X(sharedwaits, "shared acquisitions that had to wait")		\
	X(exclusivewaits, "exclusive acquisitions that had to wait")

#define	STAT_FIELD(name, descr)	atomic_u64 name;
static struct { NETLOCK_STATS(STAT_FIELD) } stats COUNTERS;

static const struct sysctl_oid netlock_oids[] = {
#define	STAT_OID(name, descr)						\
	{ .oid_name = "net.lock." #name, .oid_type = CTL_U64,		\
	    .oid_ptr = &stats.name, .oid_descr = descr },
	NETLOCK_STATS(STAT_OID)
};

void
netlock_init(void)
{
	rw_init(&netlock, LC_NET);
	sysctl_register(netlock_oids, nitems(netlock_oids));
}

static void
lock_shared(void) ACQUIRES_SHARED(netlock)
{
	counter_add(&stats.shared, 1);
	if (rw_rlock(&netlock))
		counter_add(&stats.sharedwaits, 1);
}

static void
lock_exclusive(struct thread *td) ACQUIRES(netlock)
{
	counter_add(&stats.exclusive, 1);
	if (rw_wlock(&netlock))
		counter_add(&stats.exclusivewaits, 1);
	td->td_netexclusive = true;
}

/*
 * Acquires the lock for td_netdepth and td_netexclusive, which record how the
 * thread holds it.  Not analysed, because it returns with the lock held.
 */
static void
acquire(struct thread *td, enum netlock_mode mode) NO_LOCK_ANALYSIS
{
	if (mode == NETLOCK_EXCLUSIVE)
		lock_exclusive(td);
	else
		lock_shared();
}

static void
release(struct thread *td)
{
	if (td->td_netexclusive) {
		td->td_netexclusive = false;
		rw_assert_wlocked(&netlock);
		rw_wunlock(&netlock);
	} else {
		rw_assert_rlocked(&netlock);
		rw_runlock(&netlock);
	}
}

void
netlock_take(void)
{
	struct thread *td = curthread;

	if (td->td_netdepth++ == 0)
		acquire(td, netlock_mode);
}

void
netlock_give(void)
{
	struct thread *td = curthread;

	KASSERT(td->td_netdepth > 0, ("netlock_give: %s does not hold it",
	    td->td_name));
	if (--td->td_netdepth == 0)
		release(td);
}

void
net_enter_exclusive(void)
{
	struct thread *td = curthread;

	if (netlock_mode == NETLOCK_NONE)
		return;
	KASSERT(td->td_netdepth == 0, ("net_enter_exclusive: %s holds it already",
	    td->td_name));
	td->td_netdepth = 1;
	acquire(td, NETLOCK_EXCLUSIVE);
}

unsigned
net_drop(void)
{
	struct thread *td = curthread;
	unsigned depth = td->td_netdepth;

	if (depth > 0) {
		td->td_netdepth = 0;
		release(td);
	}
	return (depth);
}

void
net_pickup(unsigned depth)
{
	struct thread *td = curthread;

	if (depth > 0) {
		acquire(td, netlock_mode);
		td->td_netdepth = depth;
	}
}

bool
net_held(void)
{
	return (curthread->td_netdepth > 0);
}

bool
net_is_exclusive(void)
{
	return (curthread->td_netexclusive);
}
