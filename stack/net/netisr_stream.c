/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr of 2009 (netisr(9), "netisr2"): workstreams, one for each CPU and
 * each worker thread.
 *
 * A workstream has a queue for each protocol.  The first net.isr.maxthreads
 * workstreams have a thread.  A protocol's policy selects the stream of a
 * packet.  A worker takes the whole queue of a protocol at a time: one lock
 * operation for many packets, and up to twice the limit in flight.
 *
 * Direct dispatch runs the handler without the policy, and counts on the
 * stream of this CPU.  Hybrid dispatch runs the handler if the policy selects
 * this CPU's stream and no packet is queued or being handled there, so that no
 * packet overtakes another.
 *
 * A program that sends to its own host handles the packets itself when it holds
 * no locks, unless dispatch is deferred or another thread is handling the
 * stream: as on Linux, its packets have arrived when the call returns.
 */
#include "net/netisr_private.h"

#include <errno.h>
#include <stdio.h>

#include "kern/ast.h"
#include "kern/counter.h"
#include "kern/lock.h"
#include "kern/planted.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/worker.h"
#include "net/if_var.h"

/* A Toeplitz hash of RSS maps to one of these buckets, and these to CPUs. */
#define	RSS_BUCKETS	128

/*
 * A sender handles the queue as many times as Linux's softirqs do before they
 * leave the rest to a thread (MAX_SOFTIRQ_RESTART).
 */
#define	SENDER_ROUNDS	10

/*
 * Max time that a receive thread waits for a queue, in case that its worker
 * hangs or stops.
 */
#define	FEEDBACK_MAX	(100 * NSEC_PER_MSEC)

/*
 * Locks used to protect struct workstream members:
 *	[I] immutable after boot
 *	[w] ws_lock
 *	[a] atomic
 */
struct workstream {
	struct mtx	 ws_lock;
	struct thread	*ws_thread; /* [I] worker, or NULL */
	/* [w] worker is busy */
	bool		 ws_running GUARDED_BY(ws_lock);
	/* [w] hybrid in progress */
	bool		 ws_dispatching GUARDED_BY(ws_lock);
	/* [w] worker was woken */
	bool		 ws_scheduled GUARDED_BY(ws_lock);
	/* [w] will handle the queue when it holds no locks, or NULL */
	struct thread	*ws_sender GUARDED_BY(ws_lock);
	struct ast	 ws_ast;	/* ws_sender's */
	/* [w] bit per protocol */
	unsigned	 ws_pending GUARDED_BY(ws_lock);
	/* [w] */
	struct mbufq	 ws_queue[NETISR_NPROTO] GUARDED_BY(ws_lock);
	/* [w] receive threads that wait for room */
	unsigned	 ws_waiters GUARDED_BY(ws_lock);
	struct isr_count ws_count[NETISR_NPROTO];	/* [a] */
	struct worker	 ws_worker;
} __attribute__((aligned(64)));

/* If there are more CPUs, some share a stream. */
static struct workstream streams[NETISR_WORKERS_MAX];
static unsigned nstreams = 1;			/* [I] */
static unsigned nworkers = 1;			/* [I] streams with a worker */

/* The stream of this CPU, which may have no worker. */
static unsigned
stream_here(void)
{
	const unsigned cpu = nstreams == 1 ? 0 : mach_curcpu();

	/* a division would cost as much as all the rest */
	return (__predict_true(cpu < nstreams) ? cpu : cpu % nstreams);
}

static uint32_t
flow_of(const struct isr_proto *ps, struct mbuf *m)
{
	if (m->m_pkthdr.flowid == 0 && ps->np.nh_m2flow != NULL)
		m->m_pkthdr.flowid = ps->np.nh_m2flow(m);
	return (m->m_pkthdr.flowid);
}

static struct workstream *
select_stream(enum netisr_proto proto, struct mbuf *m, enum isr_dispatch way)
{
	struct isr_proto *ps = &isr_protos[proto];
	uint32_t policy = atomic_load_u32(&ps->policy), flow;

	KASSERT(m->m_pkthdr.rcvif != NULL, ("select_stream: no interface"));
	if (nworkers == 1)
		return (&streams[0]);
	flow = policy != NETISR_POLICY_SOURCE ? flow_of(ps, m) : 0;
	if (policy == NETISR_POLICY_FLOW && flow != 0)
		return (&streams[flow % nworkers]);
	if (policy == NETISR_POLICY_CPU && flow != 0)
		return (&streams[flow % RSS_BUCKETS % mach_ncpus() %
		    nworkers]);
	if (policy == NETISR_POLICY_CPU && way == DISPATCH_HYBRID)
		return (&streams[mach_curcpu() % nworkers]);
	return (&streams[(m->m_pkthdr.rcvif->if_index +
	    (m->m_flags >> M_QUEUE_SHIFT)) % nworkers]);
}

static bool
is_busy(const struct workstream *ws) REQUIRES(ws->ws_lock)
{
	return (ws->ws_running || ws->ws_dispatching || ws->ws_scheduled ||
	    ws->ws_sender != NULL);
}

/* Wakes the worker, unless a thread that runs now will handle the queue. */
static void
wake(struct workstream *ws) REQUIRES(ws->ws_lock)
{
	if (ws->ws_running || ws->ws_dispatching || ws->ws_scheduled)
		return;
	ws->ws_scheduled = true;
	worker_wake(&ws->ws_worker);
}

/*
 * Whether a sender may run the protocol's handler instead of the worker.  A
 * worker that owns connections handles their segments at once: it would
 * overtake those that a sender hands to it.
 */
static bool
may_be_senders(enum netisr_proto proto)
{
	return (isr_protos[proto].mpsafe &&
	    isr_protos[NETISR_TCP].np.nh_handler == NULL &&
	    isr_way(proto) != DISPATCH_DEFERRED);
}

/*
 * Finds a thread that handles the queue, unless one will.  Other threads do not
 * wait for the sender that took it: it may be in a long call.
 */
static void
schedule(struct workstream *ws, enum netisr_proto proto) REQUIRES(ws->ws_lock)
{
	if (!is_busy(ws) && may_be_senders(proto) && ast_take(&ws->ws_ast)) {
		ws->ws_sender = thread_known();
		return;
	}
	if (ws->ws_sender != thread_known() || !may_be_senders(proto))
		wake(ws);
}

static bool
is_crowded(const struct workstream *ws, enum netisr_proto proto)
    REQUIRES(ws->ws_lock)
{
	return (ws->ws_queue[proto].mq_len > isr_qlimit(proto) / 2);
}

static bool
is_full(const struct workstream *ws) REQUIRES(ws->ws_lock)
{
	bool full = false;

	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
		full |= is_crowded(ws, p);
	return (full);
}

/* False: the queue is full; the caller still owns m. */
static bool
enqueue(struct workstream *ws, enum netisr_proto proto, struct mbuf *m)
    REQUIRES(ws->ws_lock)
{
	if (isr_feedback && is_crowded(ws, proto))
		isr_burst_crowded((unsigned)(ws - streams));
	if (!isr_enqueue(proto, &ws->ws_queue[proto], &ws->ws_count[proto], m))
		return (false);
	ws->ws_pending |= 1U << proto;
	schedule(ws, proto);
	return (true);
}

NOINLINE static int
queue_to(struct workstream *ws, enum netisr_proto proto, struct mbuf *m)
{
	bool fits;

	mtx_lock(&ws->ws_lock);
	fits = enqueue(ws, proto, m);
	mtx_unlock(&ws->ws_lock);
	if (!fits)
		m_freem(m);
	return (fits ? 0 : ENOBUFS);
}

unsigned
netisr_workers(void)
{
	return (streams[0].ws_thread != NULL ? nworkers : 0);
}

bool
netisr_is_worker(unsigned worker)
{
	return (curthread == streams[worker].ws_thread);
}

int
netisr_queue_to(unsigned worker, enum netisr_proto proto, struct mbuf *m)
{
	return (queue_to(&streams[worker], proto, m));
}

void
netisr_wake(unsigned worker, enum netisr_proto proto)
{
	struct workstream *ws = &streams[worker];

	mtx_lock(&ws->ws_lock);
	ws->ws_pending |= 1U << proto;
	schedule(ws, proto);
	mtx_unlock(&ws->ws_lock);
}

/* Queues a packet, at the end of the burst if this thread has one. */
static int
queue_soon(struct workstream *ws, enum netisr_proto proto, struct mbuf *m)
{
	return (isr_burst_add((unsigned)(ws - streams), proto, m) ? 0 :
	    queue_to(ws, proto, m));
}

void
isr_stream_put(unsigned stream, enum netisr_proto proto, struct mbufq *mq,
    struct mbufq *dropped)
{
	struct workstream *ws = &streams[stream];
	struct mbuf *m;

	mtx_lock(&ws->ws_lock);
	while ((m = mbufq_dequeue(mq)) != NULL)
		if (!enqueue(ws, proto, m))
			mbufq_enqueue(dropped, m);
	mtx_unlock(&ws->ws_lock);
}

void
isr_stream_relay(unsigned stream)
{
	struct workstream *ws = &streams[stream];
	bool wakes;

	mtx_lock(&ws->ws_lock);
	wakes = ws->ws_waiters > 0 && !is_full(ws);
	mtx_unlock(&ws->ws_lock);
	if (wakes)
		wakeup_one(ws);
}

bool
isr_stream_await(unsigned stream)
{
	struct workstream *ws = &streams[stream];
	bool others = false;

	mtx_lock(&ws->ws_lock);
	if (is_full(ws)) {
		ws->ws_waiters++;
		(void)msleep(ws, &ws->ws_lock, 0, "isrfull",
		    FEEDBACK_MAX);
		others = --ws->ws_waiters > 0;
	}
	mtx_unlock(&ws->ws_lock);
	return (others);
}

NOINLINE static int
stream_queue(enum netisr_proto proto, struct mbuf *m)
{
	return (queue_to(select_stream(proto, m, DISPATCH_DEFERRED), proto,
	    m));
}

static int
dispatch_direct(enum netisr_proto proto, struct mbuf *m)
{
	counter_add(&isr_direct.id_count[stream_here()][proto], 1);
	isr_handle(proto, m);
	return (0);
}

NOINLINE static int
dispatch_hybrid(enum netisr_proto proto, struct mbuf *m)
{
	struct workstream *ws = select_stream(proto, m, DISPATCH_HYBRID);
	bool busy, fits = true;

	if (ws != &streams[stream_here()])
		return (queue_soon(ws, proto, m));
	/* Earlier packets, if this thread was on another CPU then. */
	isr_burst_flush((unsigned)(ws - streams));
	mtx_lock(&ws->ws_lock);
	busy = PLANTED(HYBRID_OVERTAKE) ? ws->ws_dispatching : is_busy(ws);
	if (busy)
		fits = enqueue(ws, proto, m);
	else
		ws->ws_dispatching = true;
	mtx_unlock(&ws->ws_lock);
	if (!fits)
		m_freem(m);
	if (busy)
		return (fits ? 0 : ENOBUFS);
	atomic_count_u64(&ws->ws_count[proto].hybrid, 1);
	isr_handle(proto, m);
	mtx_lock(&ws->ws_lock);
	KASSERT(ws->ws_dispatching && !ws->ws_running,
	    ("dispatch_hybrid: the worker ran meanwhile"));
	ws->ws_dispatching = false;
	if (ws->ws_pending != 0 && !PLANTED(HYBRID_LOST))
		wake(ws);
	mtx_unlock(&ws->ws_lock);
	return (0);
}

__hot static int
stream_dispatch(enum netisr_proto proto, struct mbuf *m, enum isr_dispatch way)
{
	if (way == DISPATCH_DIRECT)
		return (dispatch_direct(proto, m));
	if (way == DISPATCH_HYBRID)
		return (dispatch_hybrid(proto, m));
	return (queue_soon(select_stream(proto, m, DISPATCH_DEFERRED), proto,
	    m));
}

/* Handles all queued packets of one protocol, without the lock. */
static void
work_proto(struct workstream *ws, enum netisr_proto proto)
    REQUIRES(ws->ws_lock)
{
	struct mbufq work;
	struct mbuf *m;
	bool waited_for;

	KASSERT(ws->ws_running && !ws->ws_dispatching,
	    ("work_proto: running %d, dispatching %d", ws->ws_running,
	    ws->ws_dispatching));
	mbufq_take(&work, &ws->ws_queue[proto]);
	ws->ws_pending &= ~(1U << proto);
	waited_for = ws->ws_waiters > 0;
	mtx_unlock(&ws->ws_lock);
	if (waited_for)
		wakeup_one(ws);
	atomic_count_u64(&ws->ws_count[proto].worked, work.mq_len);
	isr_rx_burst_begin(proto);
	while ((m = mbufq_next(&work)) != NULL)
		isr_handle(proto, m);
	isr_rx_burst_end(proto);
	if (isr_protos[proto].np.nh_drained != NULL)
		isr_protos[proto].np.nh_drained((unsigned)(ws - streams));
	witness_none(isr_protos[proto].np.nh_name);
	mtx_lock(&ws->ws_lock);
}

static nsec_t
stream_work(void *arg)
{
	struct workstream *ws = arg;

	mtx_assert_owned(&ws->ws_lock);
	ws->ws_scheduled = false;
	/* A hybrid dispatcher or a sender will wake the worker when it is done. */
	if (ws->ws_pending == 0 || ws->ws_dispatching || ws->ws_running)
		return (NSEC_FOREVER);
	ws->ws_running = true;
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
		if ((ws->ws_pending & (1U << p)) != 0)
			work_proto(ws, p);
	ws->ws_running = false;
	return (0);
}

/* Handles the queue in the thread whose call filled it. */
static void
sender_work(struct ast *a)
{
	struct workstream *ws = container_of(a, struct workstream, ws_ast);
	const unsigned rounds = PLANTED(SENDER_LOST) ? 1 : SENDER_ROUNDS;

	mtx_lock(&ws->ws_lock);
	ws->ws_sender = NULL;
	if (ws->ws_running || ws->ws_dispatching) {
		mtx_unlock(&ws->ws_lock);
		return;
	}
	ws->ws_running = true;
	for (unsigned i = 0; i < rounds && ws->ws_pending != 0; i++) {
		forget_uptime();	/* or a round trip takes no time */
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			if ((ws->ws_pending & (1U << p)) != 0 &&
			    may_be_senders(p))
				work_proto(ws, p);
	}
	ws->ws_running = false;
	if (ws->ws_pending != 0 && !PLANTED(SENDER_LOST))
		wake(ws);
	mtx_unlock(&ws->ws_lock);
}

static int
stream_start(void)
{
	int want = (int)atomic_load_u32(&isr_maxthreads), error = 0;
	unsigned cpus = mach_ncpus();
	char name[24];

	nworkers = want < 0 ? cpus : (unsigned)want;
	if (nworkers > NETISR_WORKERS_MAX)
		nworkers = NETISR_WORKERS_MAX;
	if (want < 0) {
		atomic_store_u32(&isr_maxthreads, nworkers);
		snprintf(name, sizeof(name), "%u", nworkers);
		sysctl_forced("net.isr.maxthreads", "-1", name,
		    "one for each CPU");
	}
	nstreams = cpus > nworkers ? cpus : nworkers;
	if (nstreams > NETISR_WORKERS_MAX)
		nstreams = NETISR_WORKERS_MAX;
	for (unsigned i = 0; i < nstreams; i++) {
		mtx_init(&streams[i].ws_lock, LC_NETISR);
		mtx_private(&streams[i].ws_lock);
		streams[i].ws_ast.ast_fn = sender_work;
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			mbufq_init(&streams[i].ws_queue[p]);
	}
	for (unsigned i = 0; i < nworkers && error == 0; i++) {
		struct workstream *ws = &streams[i];

		ws->ws_worker = (struct worker){ .w_lock = &ws->ws_lock,
		    .w_fn = stream_work, .w_arg = ws, .w_wmesg = "netisr" };
		snprintf(name, sizeof(name), "swi: netisr %u", i);
		error = worker_start(&ws->ws_worker, name, isr_bindthreads ?
		    (int)(i % cpus) : MACH_CPU_ANY);
		ws->ws_thread = ws->ws_worker.w_thread;
	}
	return (error);
}

static void
stream_stop(void)
{
	for (unsigned i = 0; i < nworkers; i++)
		worker_stop(&streams[i].ws_worker);
	for (unsigned i = 0; i < nworkers; i++)
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
			mtx_private(&streams[i].ws_lock);
			isr_drain(&streams[i].ws_lock,
			    &streams[i].ws_queue[p]);
		}
}

static void
stream_show(struct ctl_out *co)
{
	for (unsigned i = 0; i < nstreams; i++) {
		struct workstream *ws = &streams[i];
		unsigned len[NETISR_NPROTO];

		mtx_lock(&ws->ws_lock);
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			len[p] = ws->ws_queue[p].mq_len;
		mtx_unlock(&ws->ws_lock);
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			isr_show_count(co, i, p, &ws->ws_count[p], len[p]);
	}
}

/* A thread that holds the lock is reported as hanging itself. */
static bool
stream_watch(unsigned i, struct watched *w)
{
	struct workstream *ws = &streams[i];

	*w = (struct watched){ 0 };
	if (i >= nworkers)
		return (false);
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
		w->wd_done += atomic_load_u64(&ws->ws_count[p].worked);
	if (!mtx_trylock(&ws->ws_lock))
		return (true);
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
		w->wd_waiting += ws->ws_queue[p].mq_len;
	mtx_unlock(&ws->ws_lock);
	return (true);
}

const struct isr_generation isr_2009 = {
	.ig_start = stream_start, .ig_stop = stream_stop,
	.ig_dispatch = stream_dispatch, .ig_queue = stream_queue,
	.ig_show = stream_show, .ig_watch = stream_watch,
};
