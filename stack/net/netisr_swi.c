/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr of 2005 (netisr(9) of FreeBSD 6; Watson 2005): one software interrupt
 * thread for all protocols.
 *
 * Each protocol has one bounded queue with its own lock, and a bit in a word
 * that marks the queue as not empty.  The thread takes the whole word and
 * empties the marked queues, lowest bit first, with one lock operation for
 * each packet.  Packets keep their order only among those dispatched in the
 * same way: direct dispatch may overtake queued packets.
 */
#include "net/netisr_private.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "kern/worker.h"

/*
 * Locks used to protect struct swi_queue members:
 *	[q] sq_lock
 *	[a] atomic
 */
struct swi_queue {
	struct mtx	 sq_lock;
	struct mbufq	 sq_packets GUARDED_BY(sq_lock);	/* [q] */
	struct isr_count sq_count;	/* [a] */
};

static worker_fn swi_work;

static struct {
	struct swi_queue queues[NETISR_NPROTO];
	struct mtx	 lock; /* between the test of pending and the sleep */
	struct worker	 worker;
	atomic_u32	 pending;	/* [a] bit per protocol */
} swi = {
	.worker = { .w_lock = &swi.lock, .w_fn = swi_work,
	    .w_wmesg = "netisr" },
};

/* Counters with their names of 2005. */
static struct {
	atomic_u64	 count, directed, deferred, queued, drop, swi_count;
} isrstat;

#define	ISRSTAT(name, descr)						\
	{ .oid_name = "net.isr." #name, .oid_type = CTL_U64,		\
	    .oid_ptr = &isrstat.name, .oid_descr = descr }

static const struct sysctl_oid swi_oids[] = {
	ISRSTAT(count, "packets given to netisr_dispatch()"),
	ISRSTAT(directed, "packets handled by the dispatching thread"),
	ISRSTAT(deferred, "packets deferred to the thread"),
	ISRSTAT(queued, "packets given to netisr_queue()"),
	ISRSTAT(drop, "packets dropped: queue full"),
	ISRSTAT(swi_count, "wakeups of the thread"),
};

/* Sets a bit; the thread that sets the first bit wakes the worker. */
static void
schedule(enum netisr_proto proto)
{
	uint32_t old = atomic_load_u32(&swi.pending);

	while (!atomic_cmpset_u32(&swi.pending, &old, old | 1U << proto))
		continue;
	if (old != 0)
		return;
	mtx_lock(&swi.lock);
	worker_wake(&swi.worker);
	mtx_unlock(&swi.lock);
}

static int
handoff(enum netisr_proto proto, struct mbuf *m)
{
	struct swi_queue *sq = &swi.queues[proto];
	bool fits;

	mtx_lock(&sq->sq_lock);
	fits = isr_enqueue(proto, &sq->sq_packets, &sq->sq_count, m);
	mtx_unlock(&sq->sq_lock);
	if (fits) {
		schedule(proto);
		return (0);
	}
	atomic_count_u64(&isrstat.drop, 1);
	m_freem(m);
	return (ENOBUFS);
}

static int
swi_queue(enum netisr_proto proto, struct mbuf *m)
{
	atomic_count_u64(&isrstat.queued, 1);
	return (handoff(proto, m));
}

/* In 2005 Ethernet framing was not a netisr protocol. */
static int
swi_dispatch(enum netisr_proto proto, struct mbuf *m, enum isr_dispatch way)
{
	const bool direct = way == DISPATCH_DIRECT;

	if (proto != NETISR_ETHER || !direct) {
		atomic_count_u64(&isrstat.count, 1);
		atomic_count_u64(direct ? &isrstat.directed :
		    &isrstat.deferred, 1);
	}
	if (!direct)
		return (handoff(proto, m));
	counter_add(&isr_direct.id_count[0][proto], 1);
	isr_handle(proto, m);
	return (0);
}

static struct mbuf *
dequeue(struct swi_queue *sq)
{
	struct mbuf *m;

	mtx_lock(&sq->sq_lock);
	m = mbufq_dequeue(&sq->sq_packets);
	mtx_unlock(&sq->sq_lock);
	return (m);
}

static void
process_queue(enum netisr_proto proto)
{
	struct swi_queue *sq = &swi.queues[proto];
	struct mbuf *m;

	while ((m = dequeue(sq)) != NULL) {
		atomic_count_u64(&sq->sq_count.worked, 1);
		isr_handle(proto, m);
		witness_none(isr_protos[proto].np.nh_name);
	}
}

static nsec_t
swi_work(void *arg) REQUIRES(swi.lock)
{
	uint32_t bits;

	(void)arg;
	bits = atomic_swap_u32(&swi.pending, 0);
	if (bits == 0)
		return (NSEC_FOREVER);
	mtx_unlock(&swi.lock);
	atomic_count_u64(&isrstat.swi_count, 1);
	for (; bits != 0; bits &= bits - 1)
		process_queue((enum netisr_proto)(ffs((int)bits) - 1));
	mtx_lock(&swi.lock);
	return (0);
}

static const char *
swi_refuses(void)
{
	if (atomic_load_u32(&isr_maxthreads) != 1)
		return ("the generation of 2005 has one thread; set "
		    "net.isr.maxthreads to 1 or net.isr.generation to 2009");
	if (atomic_load_u32(&isr_dispatch) == DISPATCH_HYBRID)
		return ("the generation of 2005 supports only direct and "
		    "deferred; set net.isr.generation to 2009 for hybrid");
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		struct isr_proto *ps = &isr_protos[p];

		if (isr_way(p) == DISPATCH_HYBRID)
			return ("the generation of 2005 supports only direct "
			    "and deferred, but a protocol's dispatch is "
			    "hybrid");
		if (atomic_load_u32(&ps->policy) != ps->np.nh_policy)
			return ("the generation of 2005 has one thread and "
			    "no policies; set net.isr.generation to 2009");
	}
	return (NULL);
}

static int
swi_start(void)
{
	sysctl_register(swi_oids, nitems(swi_oids));
	mtx_init(&swi.lock, LC_NETISR);
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		mtx_init(&swi.queues[p].sq_lock, LC_NETISR);
		mtx_private(&swi.queues[p].sq_lock);
		mbufq_init(&swi.queues[p].sq_packets);
	}
	return (worker_start(&swi.worker, "swi: net", isr_bindthreads ? 0 :
	    MACH_CPU_ANY));
}

static void
swi_stop(void)
{
	worker_stop(&swi.worker);
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		mtx_private(&swi.queues[p].sq_lock);
		isr_drain(&swi.queues[p].sq_lock, &swi.queues[p].sq_packets);
	}
}

static void
swi_show(struct ctl_out *co)
{
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		struct swi_queue *sq = &swi.queues[p];
		unsigned len;

		mtx_lock(&sq->sq_lock);
		len = sq->sq_packets.mq_len;
		mtx_unlock(&sq->sq_lock);
		isr_show_count(co, 0, p, &sq->sq_count, len);
	}
}

/* A thread that holds a lock is reported as hanging itself. */
static bool
swi_watch(unsigned i, struct watched *w)
{
	*w = (struct watched){ 0 };
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		struct swi_queue *sq = &swi.queues[p];

		w->wd_done += atomic_load_u64(&sq->sq_count.worked);
		if (!mtx_trylock(&sq->sq_lock))
			continue;
		w->wd_waiting += sq->sq_packets.mq_len;
		mtx_unlock(&sq->sq_lock);
	}
	return (i == 0);
}

const struct isr_generation isr_2005 = {
	.ig_refuses = swi_refuses, .ig_start = swi_start, .ig_stop = swi_stop,
	.ig_dispatch = swi_dispatch, .ig_queue = swi_queue,
	.ig_show = swi_show, .ig_watch = swi_watch,
};
