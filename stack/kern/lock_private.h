/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of the lock code: the owner word, mutex contention
 * strategies (lock_wait.c) and lock tracking (lock_track.c).
 */
#ifndef KERN_LOCK_PRIVATE_H
#define KERN_LOCK_PRIVATE_H

#include "kern/lock.h"
#include "kern/thread.h"

#define	CONTESTED	((uintptr_t)1)

static inline bool
mtx_try(struct mtx *m, uintptr_t self)
{
	uintptr_t owner = 0;

	return (atomic_cmpset_uptr(&m->mtx_owner, &owner, self));
}

/* Returns with the mutex held by self, the calling thread. */
__cold void mtx_wait(struct mtx *, uintptr_t self);
/* Max number of tests of a held lock before parking. */
unsigned lock_spin_limit(void);
/* Parks on a lock's word and marks the thread as off-CPU. */
void	 lock_park(atomic_u32 *word, uint32_t expected);

/*
 * Hooks of lock tracking: before a lock is requested; when it is acquired,
 * after waiting since a time (0: it was free); and before it is released.
 */
#ifdef LOCK_TRACKING
void	 lock_wanted(const void *, enum lock_class, const struct lock_site *);
void	 lock_got(const void *, enum lock_class, const struct lock_site *,
	    nsec_t since);
void	 lock_leaving(const void *);
void	 lock_track_wait(struct thread *, const void *, enum lock_class,
	    const struct lock_site *);
void	 lock_track_waited(struct thread *);
#else
static inline void
lock_wanted(const void *l, enum lock_class class, const struct lock_site *site)
{
	(void)l, (void)class, (void)site;
}

static inline void
lock_got(const void *l, enum lock_class class, const struct lock_site *site,
    nsec_t since)
{
	(void)l, (void)class, (void)site, (void)since;
	sim_lock_got();
}

static inline void
lock_leaving(const void *l)
{
	(void)l;
}

static inline void
lock_track_wait(struct thread *td, const void *l, enum lock_class class,
    const struct lock_site *site)
{
	(void)td, (void)l, (void)class, (void)site;
}

static inline void
lock_track_waited(struct thread *td)
{
	(void)td;
}
#endif

/* Mark the calling thread as waiting for a lock, and clear the mark. */
static inline void
lock_waits(const void *l, enum lock_class class, const struct lock_site *site)
{
	struct thread *td = curthread;

	atomic_store_ptr(&td->td_blocked, lock_classes[class].lc_name);
	lock_track_wait(td, l, class, site);
	sim_lock_waits(l, lock_classes[class].lc_name);
}

static inline void
lock_waited(void)
{
	struct thread *td = curthread;

	sim_waited();
	lock_track_waited(td);
	atomic_store_ptr(&td->td_blocked, NULL);
}

/* The current time if a profile measures waiting, else 0. */
#ifdef LOCK_PROFILING
nsec_t	 lock_wait_begins(void);
/*
 * mtx_prof_bounce() counts an attempt that found the mutex held.  The other
 * two run when a thread has acquired it and before it is released.
 */
void	 mtx_prof_bounce(struct mtx *);
void	 mtx_prof_got(struct mtx *, const struct lock_site *, bool waited);
void	 mtx_prof_leaving(struct mtx *);
#else
static inline nsec_t
lock_wait_begins(void)
{
	return (0);
}

static inline void
mtx_prof_bounce(struct mtx *m)
{
	(void)m;
}

static inline void
mtx_prof_got(struct mtx *m, const struct lock_site *site, bool waited)
{
	(void)m, (void)site, (void)waited;
}

static inline void
mtx_prof_leaving(struct mtx *m)
{
	(void)m;
}
#endif

#endif /* KERN_LOCK_PRIVATE_H */
