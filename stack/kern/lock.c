/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes and reader-writer locks.
 *
 * The owner word of a mutex is the owner's struct thread, with bit 0 set
 * while somebody may be parked.  A thread that does not get the lock spins a
 * little, since sections are short, then sets the bit and parks on mtx_seq,
 * which every unlock of a contested mutex changes: a wake-up between the
 * look and the park is not lost, because the word differs by then.
 *
 * The checker cannot see through these functions, which are the locks.
 */
#include "kern/lock.h"

#include "kern/thread.h"

#define	CONTESTED	((uintptr_t)1)
#define	SPIN_LIMIT	100	/* about a short section; measured in turns */

const struct lock_class_info lock_classes[LC_COUNT] = {
#define	X(id, name, rank, dup)	[LC_##id] = { name, rank, dup },
	LOCK_CLASSES(X)
#undef X
};

static inline uintptr_t
self_word(void)
{
	return ((uintptr_t)curthread);
}

static inline void
count_held(int n)
{
#ifdef INVARIANTS
	curthread->td_locks += (unsigned)n;
#else
	(void)n;
#endif
}

void
mtx_init(struct mtx *m, enum lock_class class)
{
	KASSERT(class < LC_COUNT, ("mtx_init: class %d", class));
	atomic_store_uptr(&m->mtx_owner, 0);
	atomic_store_u32(&m->mtx_seq, 0);
	m->mtx_class = (uint8_t)class;
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

static bool
mtx_try(struct mtx *m, uintptr_t self)
{
	uintptr_t owner = 0;

	return (atomic_cmpset_uptr(&m->mtx_owner, &owner, self));
}

static void
mtx_lock_slow(struct mtx *m, uintptr_t self)
{
	uintptr_t owner;

	for (unsigned i = 0; i < SPIN_LIMIT; i++) {
		if (atomic_load_uptr(&m->mtx_owner) == 0 && mtx_try(m, self))
			return;
		mach_cpu_relax();
	}
	for (;;) {
		uint32_t seq = atomic_load_acq_u32(&m->mtx_seq);

		owner = atomic_load_uptr(&m->mtx_owner);
		if (owner == 0) {
			/* Others may be parked still: stay contested. */
			if (atomic_cmpset_uptr(&m->mtx_owner, &owner,
			    self | CONTESTED))
				return;
			continue;
		}
		if ((owner & CONTESTED) == 0 &&
		    !atomic_cmpset_uptr(&m->mtx_owner, &owner,
		    owner | CONTESTED))
			continue;
		mach_park(&m->mtx_seq, seq, NSEC_FOREVER);
	}
}

void
mtx_lock(struct mtx *m) NO_LOCK_ANALYSIS
{
	uintptr_t self = self_word();

	KASSERT(!mtx_owned(m), ("mtx_lock: %s is held already",
	    lock_classes[m->mtx_class].lc_name));
	if (__builtin_expect(!mtx_try(m, self), 0))
		mtx_lock_slow(m, self);
	count_held(1);
}

bool
mtx_trylock(struct mtx *m) NO_LOCK_ANALYSIS
{
	if (!mtx_try(m, self_word()))
		return (false);
	count_held(1);
	return (true);
}

void
mtx_unlock(struct mtx *m) NO_LOCK_ANALYSIS
{
	uintptr_t owner;

	KASSERT(mtx_owned(m), ("mtx_unlock: %s is not held",
	    lock_classes[m->mtx_class].lc_name));
	count_held(-1);
	owner = atomic_swap_uptr(&m->mtx_owner, 0);
	if ((owner & CONTESTED) != 0) {
		atomic_fetchadd_u32(&m->mtx_seq, 1);
		mach_unpark(&m->mtx_seq, 1);
	}
}

/*
 * Reader-writer lock.  Owner word: 0 free; (readers << 1) | 1; or the
 * writer's struct thread, whose bit 0 is clear.  rw_writers counts writers
 * that wait; while it is not zero new readers wait too.  Every unlock that
 * leaves the lock free changes rw_seq and wakes all who parked, if any did.
 */
#define	RW_READER	((uintptr_t)1)
#define	RW_ONE		((uintptr_t)2)

void
rw_init(struct rwlock *l, enum lock_class class)
{
	KASSERT(class < LC_COUNT, ("rw_init: class %d", class));
	atomic_store_uptr(&l->rw_owner, 0);
	atomic_store_u32(&l->rw_writers, 0);
	atomic_store_u32(&l->rw_seq, 0);
	atomic_store_u32(&l->rw_parked, 0);
	l->rw_class = (uint8_t)class;
}

void
rw_destroy(struct rwlock *l)
{
	KASSERT(atomic_load_uptr(&l->rw_owner) == 0,
	    ("rw_destroy: %s is held", lock_classes[l->rw_class].lc_name));
	(void)l;
}

static bool
rw_tryread(struct rwlock *l)
{
	uintptr_t owner = atomic_load_uptr(&l->rw_owner);

	while ((owner == 0 || (owner & RW_READER) != 0) &&
	    atomic_load_acq_u32(&l->rw_writers) == 0) {
		uintptr_t next = owner == 0 ? RW_ONE | RW_READER :
		    owner + RW_ONE;

		if (atomic_cmpset_uptr(&l->rw_owner, &owner, next))
			return (true);
	}
	return (false);
}

static bool
rw_trywrite(struct rwlock *l)
{
	uintptr_t owner = 0;

	return (atomic_cmpset_uptr(&l->rw_owner, &owner, self_word()));
}

static void
rw_wait(struct rwlock *l, bool (*try)(struct rwlock *))
{
	for (unsigned i = 0; i < SPIN_LIMIT; i++) {
		if (try(l))
			return;
		mach_cpu_relax();
	}
	atomic_fetchadd_u32(&l->rw_parked, 1);
	for (;;) {
		uint32_t seq = atomic_load_acq_u32(&l->rw_seq);

		if (try(l))
			break;
		mach_park(&l->rw_seq, seq, NSEC_FOREVER);
	}
	atomic_fetchadd_u32(&l->rw_parked, UINT32_MAX);
}

static void
rw_wakeall(struct rwlock *l)
{
	atomic_fetchadd_u32(&l->rw_seq, 1);
	if (atomic_load_acq_u32(&l->rw_parked) != 0)
		mach_unpark(&l->rw_seq, INT32_MAX);
}

void
rw_rlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	KASSERT(atomic_load_uptr(&l->rw_owner) != self_word(),
	    ("rw_rlock: %s is write-held by us",
	    lock_classes[l->rw_class].lc_name));
	if (!rw_tryread(l))
		rw_wait(l, rw_tryread);
	count_held(1);
}

void
rw_runlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	uintptr_t owner = atomic_load_uptr(&l->rw_owner), next;

	count_held(-1);
	do {
		KASSERT((owner & RW_READER) != 0 && owner > RW_READER,
		    ("rw_runlock: %s is not read-held",
		    lock_classes[l->rw_class].lc_name));
		next = owner == (RW_ONE | RW_READER) ? 0 : owner - RW_ONE;
	} while (!atomic_cmpset_uptr(&l->rw_owner, &owner, next));
	/* Only a writer waits for readers to go. */
	if (next == 0 && atomic_load_acq_u32(&l->rw_writers) != 0)
		rw_wakeall(l);
}

void
rw_wlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	KASSERT(atomic_load_uptr(&l->rw_owner) != self_word(),
	    ("rw_wlock: %s is held already",
	    lock_classes[l->rw_class].lc_name));
	if (!rw_trywrite(l)) {
		atomic_fetchadd_u32(&l->rw_writers, 1);
		rw_wait(l, rw_trywrite);
		atomic_fetchadd_u32(&l->rw_writers, UINT32_MAX);
	}
	count_held(1);
}

void
rw_wunlock(struct rwlock *l) NO_LOCK_ANALYSIS
{
	KASSERT(atomic_load_uptr(&l->rw_owner) == self_word(),
	    ("rw_wunlock: %s is not held", lock_classes[l->rw_class].lc_name));
	count_held(-1);
	atomic_swap_uptr(&l->rw_owner, 0);
	rw_wakeall(l);
}
