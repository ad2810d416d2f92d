/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the stack, and application threads, attached at their first call.
 */
#include "kern/thread.h"

#include <stdio.h>
#include <string.h>

#include "kern/counter.h"
#include "kern/epoch.h"
#include "kern/mbuf_private.h"
#include "kern/spin.h"

struct kthread_start {
	struct thread	*ks_thread;
	void		(*ks_fn)(void *);
	void		*ks_arg;
};

/* Frees the caches and other data of a thread. */
static void
thread_strip(struct thread *td)
{
	mbuf_cache_free(td->td_mcache);
	td->td_mcache = NULL;
	counters_detach(td);
	for (int i = 0; i < TD_HINTS; i++) {
		kfree(td->td_hints[i]);
		td->td_hints[i] = NULL;
	}
}

/*
 * A struct thread is reused, never freed: a thread that waits for a lock reads
 * its owner's, which may have unlocked and ended (kern/lock_wait.c).
 */
struct spin threads_lock;
static SLIST_HEAD(, thread) threads GUARDED_BY(threads_lock);

static void
thread_free(struct thread *td)
{
	thread_strip(td);
	spin_lock(&threads_lock);
	td->td_ended = true;
	spin_unlock(&threads_lock);
}

/* kthread_join() releases a thread of the stack. */
static void
thread_exit(struct thread *td)
{
	witness_none("thread_exit");
	epoch_thread_exit(td);
	thread_strip(td);
	if (!td->td_kernel)
		thread_free(td);
}

static struct thread *
thread_new(const char *name, bool kernel)
{
	const size_t kept = offsetof(struct thread, td_name);
	struct thread *td;

	spin_lock(&threads_lock);
	SLIST_FOREACH(td, &threads, td_link)
		if (td->td_ended)
			break;
	if (td == NULL) {
		td = kmalloc(sizeof(*td));
		SLIST_INSERT_HEAD(&threads, td, td_link);
	}
	td->td_ended = false;
	memset((char *)td + kept, 0, sizeof(*td) - kept);
	snprintf(td->td_name, sizeof(td->td_name), "%s", name);
	td->td_kernel = kernel;
	spin_unlock(&threads_lock);
	return (td);
}

void
thread_foreach(void (*fn)(struct thread *, void *), void *arg)
{
	struct thread *td;

	spin_lock(&threads_lock);
	SLIST_FOREACH(td, &threads, td_link)
		fn(td, arg);
	spin_unlock(&threads_lock);
}

void
threads_forked(void)
{
	atomic_store_u32(&threads_lock.s_held, 0);
}

/* Makes td the calling thread. */
static void
thread_begin(struct thread *td)
{
	mach_thread_attach(td, thread_exit);
	atomic_store_u32(&td->td_id, mach_thread_id());
}

struct thread *
thread_attach(void)
{
	struct thread *td = thread_new("application", false);

	thread_begin(td);
	return (td);
}

/*
 * A thread that has tested the flag and is about to park would miss the flag.
 * The word is therefore changed, too, so that the park returns.
 */
void
thread_interrupt(void)
{
	struct thread *td = mach_thread_self();

	if (td == NULL)
		return;
	atomic_store_u32(&td->td_interrupt, 1);
	atomic_fetchadd_u32(&td->td_park, 2);
}

static void
kthread_main(void *arg)
{
	struct kthread_start ks = *(struct kthread_start *)arg;

	kfree(arg);
	thread_begin(ks.ks_thread);
	ks.ks_fn(ks.ks_arg);
}

int
kthread_create(const char *name, int cpu, void (*fn)(void *), void *arg,
    struct thread **tdp)
{
	struct kthread_start *ks = kmalloc(sizeof(*ks));
	struct thread *td = thread_new(name, true);
	int error;

	*ks = (struct kthread_start){ td, fn, arg };
	*tdp = td;
	error = mach_thread_create(name, cpu, kthread_main, ks,
	    &td->td_machine);
	if (error != 0) {
		kfree(ks);
		thread_free(td);
		*tdp = NULL;
	}
	return (error);
}

__hot nsec_t
thread_read_clock(struct thread *td)
{
	td->td_now = mach_uptime();
	return (td->td_now);
}

void
thread_hints_attach(struct thread *td, unsigned slot, size_t size)
{
	KASSERT(slot < TD_HINTS, ("thread_hints_attach: slot %u", slot));
	td->td_hints[slot] = kmalloc(size);
}

void
kthread_join(struct thread *td)
{
	mach_thread_join(td->td_machine);
	thread_free(td);
}
