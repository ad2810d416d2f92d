/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics counters with a copy for each thread.
 */
#include "kern/counter.h"

#include <sys/queue.h>

#include "kern/lock.h"

static struct mtx counter_lock;

/* A thread's copy of the section. */
struct counters {
	LIST_ENTRY(counters) c_link GUARDED_BY(counter_lock);	/* [c] */
	char		 c_data[] __attribute__((aligned(8)));
};

static LIST_HEAD(, counters) copies GUARDED_BY(counter_lock);	/* [c] */

/* Ensures that the section exists in programs without counters. */
static atomic_u64 nothing COUNTERS __attribute__((used));

static size_t
section_size(void)
{
	return ((uintptr_t)__stop_counters - (uintptr_t)__start_counters);
}

static bool
has_copies(const atomic_u64 *c)
{
	return ((uintptr_t)c - (uintptr_t)__start_counters < section_size());
}

void
counters_attach(struct thread *td)
{
	struct counters *own = kmalloc(sizeof(*own) + section_size());

	mtx_lock(&counter_lock);
	LIST_INSERT_HEAD(&copies, own, c_link);
	mtx_unlock(&counter_lock);
	td->td_counters = own->c_data;
	mach_counters = (intptr_t)own->c_data - (intptr_t)__start_counters;
}

/* Adds the thread's counts to the section itself. */
void
counters_detach(struct thread *td)
{
	struct counters *own;
	atomic_u64 *from, *to = (atomic_u64 *)(void *)__start_counters;

	if (td->td_counters == NULL)
		return;
	own = container_of(td->td_counters, struct counters, c_data[0]);
	from = (atomic_u64 *)(void *)own->c_data;
	mtx_lock(&counter_lock);
	LIST_REMOVE(own, c_link);
	for (size_t i = 0; i < section_size() / sizeof(*to); i++)
		if (atomic_load_u64(&from[i]) != 0)
			atomic_count_u64(&to[i], atomic_load_u64(&from[i]));
	mtx_unlock(&counter_lock);
	td->td_counters = NULL;
	mach_counters = 0;
	kfree(own);
}

uint64_t
counter_read(atomic_u64 *c)
{
	struct counters *copy;
	uint64_t sum;

	if (!has_copies(c))
		return (atomic_load_u64(c));
	mtx_lock(&counter_lock);
	sum = atomic_load_u64(c);
	LIST_FOREACH(copy, &copies, c_link)
		sum += atomic_load_u64((atomic_u64 *)(void *)(copy->c_data +
		    ((char *)c - __start_counters)));
	mtx_unlock(&counter_lock);
	return (sum);
}

void
counter_init(void)
{
	mtx_init(&counter_lock, LC_COUNTER);
}
