/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net lock.  net.lock.readers selects how shared holders are known: by a
 * count in the lock's word, or by a mark of each thread.  With marks a reader
 * that finds a writer waits for the word, as do writers for each other.
 */
#include "kern/netlock.h"

#include "kern/counter.h"
#include "kern/lock_private.h"
#include "kern/netmark.h"
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

enum { READERS_WORD, READERS_MARK };
static const char *const readers_names[] = { "word", "mark", NULL };
static atomic_u32 readers = READERS_MARK;	/* [I] after boot */

static const struct sysctl_oid netlock_oids[] = {
	{ .oid_name = "net.lock.readers", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &readers,
	    .oid_names = readers_names,
	    .oid_descr = "shared holders of the net lock: word (a count in the "
	    "lock), mark (one of each thread)" },
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

static bool
has_marks(void)
{
	return (netlock_mode == NETLOCK_SHARED &&
	    atomic_load_u32(&readers) == READERS_MARK);
}

/* Lock tracking follows a mark like the lock's word. */
static bool
lock_marked(struct thread *td)
{
	lock_wanted(&netlock, LC_NET, LOCK_SITE);
	if (!netmark_enter(td))
		return (false);
	lock_got(&netlock, LC_NET, LOCK_SITE, 0);
	counter_add(&stats.shared, 1);
	td->td_netmarked = true;
	return (true);
}

static void
unlock_marked(struct thread *td)
{
	td->td_netmarked = false;
	lock_leaving(&netlock);
	netmark_exit(td);
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
	bool waited;

	counter_add(&stats.exclusive, 1);
	waited = rw_wlock(&netlock);
	if (has_marks())
		waited |= netmark_stop(&netlock);
	if (waited)
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
	else if (!has_marks() || !lock_marked(td))
		lock_shared();
}

static void
release(struct thread *td)
{
	if (td->td_netexclusive) {
		td->td_netexclusive = false;
		if (has_marks())
			netmark_start();
		rw_assert_wlocked(&netlock);
		rw_wunlock(&netlock);
	} else if (td->td_netmarked) {
		unlock_marked(td);
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
