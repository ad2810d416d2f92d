/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs: deferred freeing of memory that lock-free readers may still use.
 *
 * Each epoch_call() increments a global epoch, and tags what it retires with
 * the number before.  Each thread has a record with the epoch at which its
 * read section began.  Memory retired in epoch e can have been found only by
 * read sections that began in e or before.  It is freed when every record is
 * greater than e or inactive.
 */
#include "kern/epoch.h"

#include "kern/lock.h"
#include "kern/planted.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

#define	RECLAIM_EVERY	64	/* calls between scans of all records */

/*
 * Locks used to protect struct epoch_reader members:
 *	[I] immutable
 *	[a] atomic
 * The struct is as large as a cache line, so that two threads do not share
 * one.
 */
struct epoch_reader {
	atomic_u64	 er_epoch;	/* [a] when it entered; 0: outside */
	atomic_u32	 er_taken;	/* [a] belongs to a thread */
	struct epoch_reader *er_next;	/* [I] */
	char		 er_pad[104];
};

struct retired {
	struct retired	*next;
	uint64_t	 epoch;
	void		(*fn)(void *);
	void		*arg;
};

static atomic_u64 epoch_now = 1;
static atomic_uptr epoch_readers;	/* [a] all records; only grows */

static struct mtx epoch_lock;
static struct retired *retired, **retired_tail GUARDED_BY(epoch_lock);
static unsigned nretired GUARDED_BY(epoch_lock);

/* Takes the record of an ended thread, or makes a new one. */
static struct epoch_reader *
reader_take(void)
{
	struct epoch_reader *er;
	uintptr_t head = atomic_load_acq_uptr(&epoch_readers);
	uint32_t free;

	for (er = (void *)head; er != NULL; er = er->er_next) {
		free = 0;
		if (atomic_cmpset_u32(&er->er_taken, &free, 1))
			return (er);
	}
	er = kmalloc(sizeof(*er));
	atomic_store_u32(&er->er_taken, 1);
	do
		er->er_next = (void *)head;
	while (!atomic_cmpset_uptr(&epoch_readers, &head, (uintptr_t)er));
	return (er);
}

void
epoch_begin(struct thread *td)
{
	struct epoch_reader *er = td->td_epoch;

	if (__predict_false(er == NULL))
		er = td->td_epoch = reader_take();
	atomic_store_rel_u64(&er->er_epoch, atomic_load_u64(&epoch_now));
	/*
	 * Either a writer sees the record, or this thread sees the unlinking.
	 */
	atomic_fence();
}

void
epoch_end(struct thread *td)
{
	atomic_store_rel_u64(&td->td_epoch->er_epoch, 0);
}

/* The epoch of the oldest read section, or UINT64_MAX. */
static uint64_t
oldest_visit(void)
{
	struct epoch_reader *er;
	uint64_t oldest = UINT64_MAX, epoch;

	atomic_fence();
	for (er = (void *)atomic_load_acq_uptr(&epoch_readers); er != NULL;
	    er = er->er_next) {
		epoch = atomic_load_acq_u64(&er->er_epoch);
		if (epoch != 0 && epoch < oldest)
			oldest = epoch;
	}
	return (oldest);
}

static bool
is_over(const struct retired *r, uint64_t oldest)
{
	return (r->epoch < oldest ||
	    (PLANTED(EPOCH_EARLY) && r->epoch == oldest));
}

unsigned
epoch_reclaim(void)
{
	struct retired *list, *r;
	uint64_t oldest;
	unsigned left;

	mtx_lock(&epoch_lock);
	oldest = oldest_visit();
	list = retired;
	while ((r = retired) != NULL && is_over(r, oldest)) {
		retired = r->next;
		nretired--;
	}
	if (retired == NULL)
		retired_tail = &retired;
	left = nretired;
	r = retired;
	mtx_unlock(&epoch_lock);
	while (list != r) {
		struct retired *next = list->next;

		list->fn(list->arg);
		kfree(list);
		list = next;
	}
	return (left);
}

void
epoch_call(void (*fn)(void *), void *arg)
{
	struct retired *r = kmalloc(sizeof(*r));
	bool reclaim;

	r->fn = fn;
	r->arg = arg;
	mtx_lock(&epoch_lock);
	r->epoch = atomic_fetchadd_u64(&epoch_now, 1);
	*retired_tail = r;
	retired_tail = &r->next;
	reclaim = ++nretired % RECLAIM_EVERY == 0;
	mtx_unlock(&epoch_lock);
	if (reclaim)
		epoch_reclaim();
}

void
epoch_thread_exit(struct thread *td)
{
	struct epoch_reader *er = td->td_epoch;

	if (er == NULL)
		return;
	KASSERT(td->td_epochdepth == 0, ("epoch_thread_exit: %s is in a read "
	    "section", td->td_name));
	td->td_epoch = NULL;
	atomic_store_rel_u32(&er->er_taken, 0);
}

void
epoch_init(void)
{
	mtx_init(&epoch_lock, LC_EPOCH);
	mtx_lock(&epoch_lock);
	retired_tail = &retired;
	mtx_unlock(&epoch_lock);
}
