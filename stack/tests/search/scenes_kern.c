/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of kern/: sleep and wakeup, callouts, epochs, mbufs.
 */
#include "tests/search/scenes.h"

#include "kern/callout.h"
#include "kern/epoch.h"
#include "kern/mbuf.h"
#include "kern/netlock.h"
#include "kern/synch.h"
#include "tests/net.h"
#include "tests/threads.h"

/* Some threads wait for items and take them, others add them. */
#define	THINGS		3

static struct {
	struct mtx	 lock;
	unsigned	 there, taken;	/* under the lock */
} store;

static void
put_or_take(void *arg)
{
	const bool puts = (uintptr_t)arg % 2 == 0;

	for (unsigned i = 0; i < THINGS; i++) {
		mtx_lock(&store.lock);
		if (puts) {
			store.there++;
			wakeup_one(&store);
		} else {
			while (store.there == 0)
				(void)msleep(&store, &store.lock, 0, "store",
				    NSEC_FOREVER);
			store.there--;
			store.taken++;
		}
		mtx_unlock(&store.lock);
	}
}

static void
sleep_scene(void)
{
	mtx_init(&store.lock, LC_TEST);
	run_threads(put_or_take);
	CHECK_EQ(store.there, 0);
	CHECK_EQ(store.taken, NTHREADS / 2 * THINGS);
}

/* A callout that is reset, stopped, and drained before its memory is freed. */
struct alarm {
	struct callout	 callout;
	atomic_u32	 rings;
};

static void
ring(void *arg)
{
	struct alarm *a = arg;

	for (unsigned i = 0; i < 4; i++)
		atomic_fetchadd_u32(&a->rings, 1);
}

static void
use_alarm(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		struct alarm *a = kmalloc(sizeof(*a));

		callout_init(&a->callout);
		(void)callout_reset(&a->callout, NSEC_PER_MSEC, ring, a);
		(void)callout_reset(&a->callout, NSEC_PER_MSEC / 2, ring, a);
		(void)callout_drain(&a->callout);
		CHECK(!callout_pending(&a->callout));
		kfree(a);
	}
}

static void
callout_scene(void)
{
	run_threads(use_alarm);
}

/* Threads that sleep until the callout that they have set. */
static void
rouse(void *arg)
{
	mtx_lock(&store.lock);
	*(bool *)arg = true;
	wakeup(arg);
	mtx_unlock(&store.lock);
}

static void
sleep_by_alarm(void *arg)
{
	const nsec_t delay = (1 + (uintptr_t)arg) * NSEC_PER_MSEC / 2;
	struct callout c;

	callout_init(&c);
	for (unsigned i = 0; i < 3; i++) {
		bool rung = false;

		(void)callout_reset(&c, delay, rouse, &rung);
		mtx_lock(&store.lock);
		while (!rung)
			(void)msleep(&rung, &store.lock, 0, "alarm",
			    NSEC_FOREVER);
		mtx_unlock(&store.lock);
		(void)callout_drain(&c);
	}
}

static void
clock_scene(void)
{
	mtx_init(&store.lock, LC_TEST);
	run_threads(sleep_by_alarm);
}

/* An object that is read without a lock is replaced and retired. */
#define	REPLACED	3

static atomic_uptr shown;

static void
show(uint64_t value)
{
	uint64_t *p = kmalloc(sizeof(*p));

	*p = value;
	p = (void *)atomic_swap_uptr(&shown, (uintptr_t)p);
	if (p != NULL)
		epoch_call(kfree, p);
}

static void
look_or_replace(void *arg)
{
	for (uint64_t i = 1; i <= REPLACED; i++)
		if (arg == NULL) {
			show(i);
			(void)epoch_reclaim();
		} else {
			const uint64_t *p;

			epoch_enter();
			p = (void *)atomic_load_acq_uptr(&shown);
			atomic_fence();
			CHECK(*p <= REPLACED);
			epoch_exit();
		}
}

static void
epoch_scene(void)
{
	show(0);
	run_threads(look_or_replace);
	kfree((void *)atomic_swap_uptr(&shown, 0));
	CHECK_EQ(epoch_reclaim(), 0);
}

/*
 * Each thread frees what it and others have allocated, so that the large
 * buffers, of which a thread caches four, go through the depots.
 */
#define	BUFFERS		6

static void
use_buffers(void *arg)
{
	const unsigned char mine = (unsigned char)(uintptr_t)arg;
	struct mbuf *m[BUFFERS];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < BUFFERS; i++) {
			m[i] = m_getcl(MMAXBYTES);
			m[i]->m_data[0] = (char)(mine + i * NTHREADS);
		}
		for (unsigned i = 0; i < BUFFERS; i++) {
			CHECK_EQ(m[i]->m_data[0], (char)(mine + i * NTHREADS));
			(void)m_free(m[i]);
		}
	}
}

static void
mbuf_scene(void)
{
	run_threads(use_buffers);
}

/*
 * Readers and writers of the net lock.  A writer is alone, and what it has
 * written stays while a thread reads.
 */
static struct {
	atomic_u32	 readers, writers, value;
} shared;

static void
share_or_write(void *arg)
{
	const bool writes = (uintptr_t)arg % 2 == 0;
	uint32_t value;

	for (unsigned i = 0; i < THINGS; i++)
		if (writes) {
			net_enter_exclusive();
			CHECK_EQ(atomic_fetchadd_u32(&shared.writers, 1), 0);
			CHECK_EQ(atomic_load_u32(&shared.readers), 0);
			atomic_fetchadd_u32(&shared.value, 1);
			atomic_fetchadd_u32(&shared.writers, -1U);
			net_exit();
		} else {
			net_enter();
			atomic_fetchadd_u32(&shared.readers, 1);
			value = atomic_load_u32(&shared.value);
			CHECK_EQ(atomic_load_u32(&shared.writers), 0);
			CHECK_EQ(atomic_load_u32(&shared.value), value);
			atomic_fetchadd_u32(&shared.readers, -1U);
			net_exit();
		}
}

static void
netlock_scene(void)
{
	run_threads(share_or_write);
	CHECK_EQ(atomic_load_u32(&shared.value), NTHREADS / 2 * THINGS);
}

const struct scene kern_scenes[] = {
	{ "sleep", "two threads wait for what two others bring",
	    "lock.mutex=block", NULL, sleep_scene },
	{ "callout", "callouts are set, reset and drained by four threads",
	    "lock.mutex=block", NULL, callout_scene },
	{ "clock", "four threads sleep until callouts of their own",
	    "lock.mutex=block", NULL, clock_scene },
	{ "epoch", "three threads look at what one replaces",
	    "lock.mutex=block", NULL, epoch_scene },
	{ "mbuf", "four threads exchange large buffers through two depots",
	    "lock.mutex=block kern.mbuf.depots=2", NULL, mbuf_scene },
	{ "netlock", "two threads share the net lock, two need it alone",
	    "lock.mutex=block net.inet.tcp.input=shared-socket", NULL,
	    netlock_scene },
	{ .name = NULL },
};
