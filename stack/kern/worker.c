/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads: when they sleep and how they end.
 */
#include "kern/worker.h"

#include "kern/synch.h"
#include "kern/thread.h"

static void
worker_main(void *arg)
{
	struct worker *w = arg;
	nsec_t idle;

	mtx_lock(w->w_lock);
	while (!w->w_stop) {
		idle = w->w_fn(w->w_arg);
		/*
		 * The stop may have been requested while the lock was
		 * released.
		 */
		if (idle > 0 && !w->w_stop)
			(void)msleep(w, w->w_lock, 0, w->w_wmesg, idle);
	}
	mtx_unlock(w->w_lock);
}

int
worker_start(struct worker *w, const char *name, int cpu)
{
	mtx_private(w->w_lock);	/* it does not run yet */
	w->w_stop = false;
	return (kthread_create(name, cpu, worker_main, w, &w->w_thread));
}

void
worker_wake(struct worker *w)
{
	wakeup(w);
}

void
worker_stop(struct worker *w)
{
	if (w->w_thread == NULL)
		return;
	mtx_lock(w->w_lock);
	w->w_stop = true;
	worker_wake(w);
	mtx_unlock(w->w_lock);
	kthread_join(w->w_thread);
	w->w_thread = NULL;
}
