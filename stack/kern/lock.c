/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes and reader-writer locks.
 *
 * The owner word of a mutex is the owner's struct thread, with bit 0 set while
 * a thread may be parked.  A thread that does not get the lock may spin
 * (lock_wait.c).  Finally it sets the bit and parks on mtx_seq.  Every unlock
 * of a contested mutex changes mtx_seq, so a wakeup between the test and the
 * park is not lost.
 *
 * The functions that acquire or release a lock are not analysed, because
 * atomic operations on the owner word implement it.
 */
#include "kern/lock_private.h"
#include "kern/planted.h"

const struct lock_class_info lock_classes[LC_COUNT] = {
#define	X(id, name, rank, twice)					\
	[LC_##id] = { name, rank, LOCK_##twice },
	LOCK_CLASSES(X)
#undef X
};

static inline uintptr_t
self_word(void)
{
	return ((uintptr_t)curthread);
}

void
mtx_init(struct mtx *m, enum lock_class class)
{
	KASSERT(class < LC_COUNT, ("mtx_init: class %d", class));
	atomic_store_uptr(&m->mtx_owner, 0);
	atomic_store_u32(&m->mtx_seq, 0);
	m->mtx_class = (uint8_t)class;
#ifdef LOCK_PROFILING
	m->mtx_prof = (struct mtx_prof){ 0 };
#endif
}

void
mtx_destroy(struct mtx *m)
{
	KASSERT(atomic_load_uptr(&m->mtx_owner) == 0,
	    ("mtx_destroy: %s is held", lock_classes[m->mtx_class].lc_name));
	(void)m;
}

bool
mtx_owned(struct mtx *m)
{
	return ((atomic_load_uptr(&m->mtx_owner) & ~CONTESTED) == self_word());
}

void
mtx_assert_owned(struct mtx *m)
{
	KASSERT(mtx_owned(m), ("mtx_assert_owned: %s is not held",
	    lock_classes[m->mtx_class].lc_name));
	(void)m;
}

__hot void
mtx_lock_at(struct mtx *m, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	uintptr_t self = self_word();
	nsec_t since = 0;

	KASSERT(!mtx_owned(m), ("mtx_lock: %s is held already",
	    lock_classes[m->mtx_class].lc_name));
	lock_wanted(m, m->mtx_class, site);
	if (__predict_false(!mtx_try(m, self))) {
		since = lock_wait_begins();
		lock_waits(m, m->mtx_class, site);
		mtx_wait(m, self);
		lock_waited();
	}
	mtx_prof_got(m, site, since != 0);
	lock_got(m, m->mtx_class, site, since);
}

bool
mtx_trylock_at(struct mtx *m, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	if (!mtx_try(m, self_word()))
		return (false);
	mtx_prof_got(m, site, false);
	lock_got(m, m->mtx_class, site, 0);
	return (true);
}

/* Unlocks a mutex for which threads may be parked. */
NOINLINE static void
mtx_pass_on(struct mtx *m)
{
	if (!PLANTED(MUTEX_SEQ))
		atomic_fetchadd_u32(&m->mtx_seq, 1);
	mach_unpark(&m->mtx_seq, 1);
}

__hot void
mtx_unlock(struct mtx *m) NO_LOCK_ANALYSIS
{
	uintptr_t owner;

	KASSERT(mtx_owned(m), ("mtx_unlock: %s is not held",
	    lock_classes[m->mtx_class].lc_name));
	lock_leaving(m);
	mtx_prof_leaving(m);
	owner = atomic_swap_uptr(&m->mtx_owner, 0);
	if (__predict_false((owner & CONTESTED) != 0))
		mtx_pass_on(m);
}

/*
 * Reader-writer lock.  Owner word: 0 free; (readers << 1) | 1; or the writer's
 * struct thread, whose bit 0 is clear.  rw_writers counts waiting writers; new
 * readers wait while it is not zero.  Every unlock that leaves the lock free
 * changes rw_seq and wakes all parked threads, if any.
 */
#define	RW_READER	((uintptr_t)1)
#define	RW_ONE		((uintptr_t)2)
/*
 * A thread that releases the lock and wants it again is faster than one that
 * has to wake up.  After so many lost races a writer is let pass by all.
 */
#define	RW_STARVED	16

void
rw_init(struct rwlock *l, enum lock_class class)
{
	KASSERT(class < LC_COUNT, ("rw_init: class %d", class));
	atomic_store_uptr(&l->rw_owner, 0);
	atomic_store_u32(&l->rw_writers, 0);
	atomic_store_u32(&l->rw_seq, 0);
	atomic_store_u32(&l->rw_parked, 0);
	atomic_store_u32(&l->rw_starving, 0);
	l->rw_class = (uint8_t)class;
}

void
rw_destroy(struct rwlock *l)
{
	KASSERT(atomic_load_uptr(&l->rw_owner) == 0,
	    ("rw_destroy: %s is held", lock_classes[l->rw_class].lc_name));
	(void)l;
}

void
rw_assert_rlocked(struct rwlock *l)
{
	KASSERT((atomic_load_uptr(&l->rw_owner) & RW_READER) != 0,
	    ("rw_assert_rlocked: %s has no reader",
	    lock_classes[l->rw_class].lc_name));
	(void)l;
}

void
rw_assert_wlocked(struct rwlock *l)
{
	KASSERT(atomic_load_uptr(&l->rw_owner) == self_word(),
	    ("rw_assert_wlocked: %s is not held",
	    lock_classes[l->rw_class].lc_name));
	(void)l;
}

static bool
rw_tryread(struct rwlock *l)
{
	uintptr_t owner = atomic_load_uptr(&l->rw_owner);

	/* free, or held by readers */
	while (__predict_true(owner == 0 || (owner & RW_READER) != 0) &&
	    __predict_true(atomic_load_acq_u32(&l->rw_writers) == 0)) {
		uintptr_t next = (owner | RW_READER) + RW_ONE;

		if (__predict_true(atomic_cmpset_uptr(&l->rw_owner, &owner,
		    next)))
			return (true);
	}
	return (false);
}

static bool
rw_trywrite_first(struct rwlock *l)
{
	uintptr_t owner = 0;

	return (atomic_cmpset_uptr(&l->rw_owner, &owner, self_word()));
}

static bool
rw_trywrite(struct rwlock *l)
{
	return (__predict_true(atomic_load_u32(&l->rw_starving) == 0) &&
	    rw_trywrite_first(l));
}

/* True if the lock was acquired. */
static bool
rw_spin(struct rwlock *l, bool (*try)(struct rwlock *))
{
	for (unsigned i = lock_spin_limit(); i > 0; i--) {
		if (try(l))
			return (true);
		mach_cpu_relax();
	}
	return (false);
}

/* Parks until the lock is acquired; writers is 1 for a writer. */
static void
rw_park(struct rwlock *l, bool (*try)(struct rwlock *), uint32_t writers)
{
	uint32_t starving = 0;

	atomic_fetchadd_u32(&l->rw_writers, writers);
	atomic_fetchadd_u32(&l->rw_parked, 1);
	for (unsigned lost = 0;; lost++) {
		uint32_t seq = atomic_load_acq_u32(&l->rw_seq);

		if (try(l))
			break;
		if (lost == RW_STARVED && writers > 0) {
			starving = 1;
			atomic_fetchadd_u32(&l->rw_starving, starving);
			try = rw_trywrite_first;
		}
		lock_park(&l->rw_seq, seq);
	}
	if (starving > 0)
		atomic_fetchadd_u32(&l->rw_starving, -starving);
	atomic_fetchadd_u32(&l->rw_parked, UINT32_MAX);
	atomic_fetchadd_u32(&l->rw_writers, -writers);
}

/*
 * Spins first, unless this thread holds Giant, for which others may wait.
 * Then a writer counts itself, so that no more readers overtake it.  Returns
 * the time when the wait began, if a profile is on.
 */
__cold static nsec_t
rw_wait(struct rwlock *l, bool (*try)(struct rwlock *), uint32_t writers,
    const struct lock_site *site)
{
	nsec_t since = lock_wait_begins();

	lock_waits(l, l->rw_class, site);
	if (giant_owned() || !rw_spin(l, try))
		rw_park(l, try, writers);
	lock_waited();
	return (since);
}

static void
rw_wakeall(struct rwlock *l)
{
	atomic_fetchadd_u32(&l->rw_seq, 1);
	if (atomic_load_acq_u32(&l->rw_parked) != 0)
		mach_unpark(&l->rw_seq, INT32_MAX);
}

bool
rw_rlock_at(struct rwlock *l, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	nsec_t since = 0;
	bool waited = false;

	KASSERT(atomic_load_uptr(&l->rw_owner) != self_word(),
	    ("rw_rlock: %s is write-held by this thread",
	    lock_classes[l->rw_class].lc_name));
	lock_wanted(l, l->rw_class, site);
	mach_prefetch_write(l);
	if (__predict_false(!rw_tryread(l))) {
		since = rw_wait(l, rw_tryread, 0, site);
		waited = true;
	}
	lock_got(l, l->rw_class, site, since);
	return (waited);
}

__hot void
rw_runlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	uintptr_t owner, next;

	lock_leaving(l);
	mach_prefetch_write(l);
	owner = atomic_load_uptr(&l->rw_owner);
	do {
		KASSERT((owner & RW_READER) != 0 && owner > RW_READER,
		    ("rw_runlock: %s is not read-held",
		    lock_classes[l->rw_class].lc_name));
		next = owner == (RW_ONE | RW_READER) ? 0 : owner - RW_ONE;
	} while (__predict_false(!atomic_cmpset_uptr(&l->rw_owner, &owner,
	    next)));
	/* The last reader wakes waiting writers. */
	if (__predict_false(atomic_load_acq_u32(&l->rw_writers) != 0) &&
	    next == 0)
		rw_wakeall(l);
}

bool
rw_wlock_at(struct rwlock *l, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	nsec_t since = 0;
	bool waited = false;

	KASSERT(atomic_load_uptr(&l->rw_owner) != self_word(),
	    ("rw_wlock: %s is held already",
	    lock_classes[l->rw_class].lc_name));
	lock_wanted(l, l->rw_class, site);
	if (__predict_false(!rw_trywrite(l))) {
		since = rw_wait(l, rw_trywrite, 1, site);
		waited = true;
	}
	lock_got(l, l->rw_class, site, since);
	return (waited);
}

void
rw_wunlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	KASSERT(atomic_load_uptr(&l->rw_owner) == self_word(),
	    ("rw_wunlock: %s is not held", lock_classes[l->rw_class].lc_name));
	lock_leaving(l);
	atomic_swap_uptr(&l->rw_owner, 0);
	rw_wakeall(l);
}
