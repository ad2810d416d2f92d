/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr: who runs a protocol's input, and when (Watson 2005; netisr(9)).
 *
 *   direct    the thread that received the packet runs the handler, to
 *             completion
 *   deferred  the packet is queued to a workstream, whose thread runs it
 *   hybrid    direct if the packet belongs to this CPU's workstream and
 *             nothing is queued or running there, so that order is kept;
 *             else queued
 *
 * net.isr.dispatch chooses for all protocols, net.isr.proto.<p>.dispatch for
 * one.  A handler that is not MP-safe is always queued and runs under Giant.
 * Loopback and tunnels call netisr_queue().
 *
 * A workstream is one thread with a queue per protocol.  A packet goes to
 * the workstream of its flow when the protocol can tell it, else of its
 * interface, so that packets of one flow stay in order.  A worker takes the
 * whole queue of a protocol at a time: one lock operation for many packets,
 * and up to twice the limit in flight.
 */
#include "net/netisr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/burst.h"
#include "net/if_private.h"

#define	STREAMS_MAX	64

enum dispatch { DISPATCH_DEFAULT, DISPATCH_DIRECT, DISPATCH_HYBRID,
    DISPATCH_DEFERRED };

static const char *const dispatch_names[] = {
	"default", "direct", "hybrid", "deferred", NULL
};

static atomic_u32 isr_dispatch = DISPATCH_DIRECT;
static atomic_u32 isr_maxthreads = 1;	/* as text -1: one for each CPU */
static bool isr_bindthreads;
static atomic_u32 isr_defaultqlimit = 256;
static atomic_u32 isr_maxqlimit = 10240;

/* Registered at boot. */
static struct netisr_proto_state {
	struct netisr_handler np;
	atomic_u32	 dispatch;	/* [a] enum dispatch */
	atomic_u32	 qlimit;	/* [a] 0: the default */
	bool		 mpsafe;	/* [I] */
} protos[NETISR_NPROTO] = {
	/* Framing only: a queue here would be one too many. */
	[NETISR_ETHER] = { .dispatch = DISPATCH_DIRECT },
};

/* Counters of one protocol on one workstream. */
struct netisr_count {
	atomic_u64	 dispatched;	/* handled by direct dispatch */
	atomic_u64	 hybrid;	/* by hybrid, without a queue */
	atomic_u64	 queued;
	atomic_u64	 worked;	/* handled from the queue */
	atomic_u64	 qdrops;
	atomic_u32	 watermark;	/* longest queue seen */
};

/*
 * Locks used to protect struct workstream members:
 *	[I] immutable after boot
 *	[w] ws_lock
 *	[a] atomic
 */
struct workstream {
	struct mtx	 ws_lock;
	struct thread	*ws_thread;			/* [I] */
	bool		 ws_running;			/* [w] worker is busy */
	bool		 ws_dispatching;		/* [w] hybrid in progress */
	bool		 ws_scheduled;			/* [w] worker was woken */
	bool		 ws_stop;			/* [w] */
	unsigned	 ws_pending;			/* [w] bit per protocol */
	struct mbufq	 ws_queue[NETISR_NPROTO];	/* [w] */
	struct netisr_count ws_count[NETISR_NPROTO];	/* [a] */
} __attribute__((aligned(64)));

static struct workstream streams[STREAMS_MAX];
static unsigned nstreams = 1;			/* [I] */

/* Whoever the packet wakes is let go when its locks have been. */
static void
handle(enum netisr_proto proto, struct mbuf *m)
{
	struct netisr_proto_state *ps = &protos[proto];

	wakeup_hold();
	/* what a program's call brings about has the date of the call */
	if (curthread->td_astdepth == 0)
		forget_uptime();
	if (ps->mpsafe) {
		giant_enter();
		burst_begin();
		ps->np.nh_handler(m);
		burst_end();
		giant_exit();
	} else {
		giant_lock();
		burst_begin();
		ps->np.nh_handler(m);
		burst_end();
		giant_unlock();
	}
	wakeup_release();
}

static struct workstream *
select_stream(enum netisr_proto proto, struct mbuf *m)
{
	const struct netisr_proto_state *ps = &protos[proto];
	uint32_t key;

	KASSERT(m->m_pkthdr.rcvif != NULL, ("select_stream: no interface"));
	if (nstreams == 1)
		return (&streams[0]);
	if (m->m_pkthdr.flowid == 0 && ps->np.nh_m2flow != NULL)
		m->m_pkthdr.flowid = ps->np.nh_m2flow(m);
	key = m->m_pkthdr.flowid != 0 ? m->m_pkthdr.flowid :
	    m->m_pkthdr.rcvif->if_index;
	return (&streams[key % nstreams]);
}

/* That of this CPU. */
static struct workstream *
stream_here(void)
{
	return (&streams[nstreams == 1 ? 0 : mach_curcpu() % nstreams]);
}

static unsigned
qlimit(enum netisr_proto proto)
{
	unsigned limit = atomic_load_u32(&protos[proto].qlimit);
	unsigned max = atomic_load_u32(&isr_maxqlimit);

	if (limit == 0)
		limit = atomic_load_u32(&isr_defaultqlimit);
	return (limit < max ? limit : max);
}

/* Wakes the worker unless somebody will look at the queue anyway. */
static void
schedule(struct workstream *ws) REQUIRES(ws->ws_lock)
{
	if (ws->ws_running || ws->ws_dispatching || ws->ws_scheduled)
		return;
	ws->ws_scheduled = true;
	wakeup(ws);
}

/* False: the queue is full; m is the caller's still. */
static bool
enqueue(struct workstream *ws, enum netisr_proto proto, struct mbuf *m)
    REQUIRES(ws->ws_lock)
{
	struct mbufq *mq = &ws->ws_queue[proto];
	struct netisr_count *nc = &ws->ws_count[proto];

	if (mq->mq_len >= qlimit(proto)) {
		atomic_count_u64(&nc->qdrops, 1);
		return (false);
	}
	mbufq_enqueue(mq, m);
	atomic_count_u64(&nc->queued, 1);
	if (mq->mq_len > atomic_load_u32(&nc->watermark))
		atomic_store_u32(&nc->watermark, mq->mq_len);
	ws->ws_pending |= 1U << proto;
	schedule(ws);
	return (true);
}

static int
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

int
netisr_queue(enum netisr_proto proto, struct mbuf *m)
{
	KASSERT(protos[proto].np.nh_handler != NULL,
	    ("netisr_queue: protocol %d", proto));
	return (queue_to(select_stream(proto, m), proto, m));
}

static int
dispatch_direct(enum netisr_proto proto, struct mbuf *m)
{
	struct netisr_count *nc = &stream_here()->ws_count[proto];

	atomic_count_u64(&nc->dispatched, 1);
	handle(proto, m);
	return (0);
}

/*
 * Never overtakes: whatever is queued, running or about to run on this
 * workstream goes first.
 */
static int
dispatch_hybrid(enum netisr_proto proto, struct mbuf *m)
{
	struct workstream *ws = select_stream(proto, m);
	struct netisr_count *nc = &ws->ws_count[proto];
	bool busy, fits = true;

	if (ws != stream_here())
		return (queue_to(ws, proto, m));
	mtx_lock(&ws->ws_lock);
	busy = ws->ws_running || ws->ws_dispatching || ws->ws_scheduled;
	if (busy)
		fits = enqueue(ws, proto, m);
	else
		ws->ws_dispatching = true;
	mtx_unlock(&ws->ws_lock);
	if (!fits)
		m_freem(m);
	if (busy)
		return (fits ? 0 : ENOBUFS);
	atomic_count_u64(&nc->hybrid, 1);
	handle(proto, m);
	mtx_lock(&ws->ws_lock);
	KASSERT(ws->ws_dispatching && !ws->ws_running,
	    ("dispatch_hybrid: the worker ran meanwhile"));
	ws->ws_dispatching = false;
	if (ws->ws_pending != 0)
		schedule(ws);
	mtx_unlock(&ws->ws_lock);
	return (0);
}

static bool
dispatch_fast(const struct netisr_proto_state *ps, struct mbuf *m)
{
	bool handled;

	if (ps->np.nh_fast == NULL)
		return (false);
	giant_enter();
	handled = ps->np.nh_fast(m);
	giant_exit();
	return (handled);
}

int
netisr_dispatch(enum netisr_proto proto, struct mbuf *m)
{
	const struct netisr_proto_state *ps = &protos[proto];
	uint32_t how = atomic_load_u32(&protos[proto].dispatch);

	KASSERT(ps->np.nh_handler != NULL,
	    ("netisr_dispatch: protocol %d", proto));
	KASSERT(m->m_nextpkt == NULL, ("netisr_dispatch: packet is queued"));
	if (!ps->mpsafe)
		return (netisr_queue(proto, m));
	if (dispatch_fast(ps, m))
		return (0);
	if (how == DISPATCH_DEFAULT)
		how = atomic_load_u32(&isr_dispatch);
	if (how == DISPATCH_DIRECT)
		return (dispatch_direct(proto, m));
	if (how == DISPATCH_HYBRID)
		return (dispatch_hybrid(proto, m));
	return (netisr_queue(proto, m));
}

/* Runs all that is queued for one protocol, without the lock. */
static void
work_proto(struct workstream *ws, enum netisr_proto proto)
    REQUIRES(ws->ws_lock)
{
	struct netisr_count *nc = &ws->ws_count[proto];
	struct mbufq work;
	struct mbuf *m;

	KASSERT(ws->ws_running && !ws->ws_dispatching,
	    ("work_proto: running %d, dispatching %d", ws->ws_running,
	    ws->ws_dispatching));
	mbufq_take(&work, &ws->ws_queue[proto]);
	ws->ws_pending &= ~(1U << proto);
	mtx_unlock(&ws->ws_lock);
	atomic_count_u64(&nc->worked, work.mq_len);
	if (protos[proto].mpsafe)	/* Giant comes before the net lock */
		burst_begin();
	while ((m = mbufq_dequeue(&work)) != NULL)
		handle(proto, m);
	if (protos[proto].mpsafe)
		burst_end();
	witness_none(protos[proto].np.nh_name);
	mtx_lock(&ws->ws_lock);
}

static void
worker_main(void *arg)
{
	struct workstream *ws = arg;

	mtx_lock(&ws->ws_lock);
	while (!ws->ws_stop) {
		/* A dispatcher at work will schedule us when it is done. */
		if (ws->ws_pending == 0 || ws->ws_dispatching) {
			ws->ws_scheduled = false;
			msleep(ws, &ws->ws_lock, 0, "netisr", NSEC_FOREVER);
			continue;
		}
		ws->ws_scheduled = false;
		ws->ws_running = true;
		while (ws->ws_pending != 0 && !ws->ws_stop)
			for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
				if ((ws->ws_pending & (1U << p)) != 0)
					work_proto(ws, p);
		ws->ws_running = false;
	}
	mtx_unlock(&ws->ws_lock);
}

void
netisr_register(const struct netisr_handler *np)
{
	struct netisr_proto_state *ps = &protos[np->nh_proto];

	KASSERT(ps->np.nh_handler == NULL,
	    ("netisr_register: %s twice", np->nh_name));
	ps->np = *np;
	ps->mpsafe = np->nh_mpsafe;
}

/* All spellings of twenty years: names, and net.isr.direct's 0 and 1. */
static int
proc_dispatch(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	atomic_u32 *how = oid->oid_ptr;

	if (value == NULL) {
		snprintf(buf, len, "%s", dispatch_names[atomic_load_u32(how)]);
		return (0);
	}
	if (strcmp(value, "1") == 0)
		value = dispatch_names[DISPATCH_DIRECT];
	else if (strcmp(value, "0") == 0)
		value = dispatch_names[DISPATCH_DEFERRED];
	for (uint32_t i = 0; dispatch_names[i] != NULL; i++)
		if (strcmp(value, dispatch_names[i]) == 0 &&
		    (i != DISPATCH_DEFAULT || how != &isr_dispatch)) {
			atomic_store_u32(how, i);
			return (0);
		}
	snprintf(buf, len, "'%s' is none of%s direct hybrid deferred", value,
	    how != &isr_dispatch ? " default" : "");
	return (EINVAL);
}

/* net.isr.direct (2005): 1 is direct, 0 is deferred. */
static int
proc_direct(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "%d",
		    atomic_load_u32(&isr_dispatch) == DISPATCH_DIRECT);
		return (0);
	}
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
		snprintf(buf, len, "'%s' is neither 0 nor 1", value);
		return (EINVAL);
	}
	atomic_store_u32(&isr_dispatch, value[0] == '1' ? DISPATCH_DIRECT :
	    DISPATCH_DEFERRED);
	return (0);
}

static int
proc_maxthreads(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	int n, used;

	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "%d", (int)atomic_load_u32(&isr_maxthreads));
		return (0);
	}
	if (sscanf(value, "%d%n", &n, &used) != 1 || value[used] != '\0' ||
	    n < -1 || n == 0 || n > STREAMS_MAX) {
		snprintf(buf, len, "'%s' is neither -1 (one for each CPU) nor a "
		    "number from 1 to %d", value, STREAMS_MAX);
		return (EINVAL);
	}
	atomic_store_u32(&isr_maxthreads, (uint32_t)n);
	return (0);
}

#define	PROTO_OIDS(p, name)						\
	{ .oid_name = "net.isr.proto." name ".dispatch",		\
	    .oid_type = CTL_PROC, .oid_flags = CTL_TUN | CTL_RUN,	\
	    .oid_ptr = &protos[p].dispatch, .oid_proc = proc_dispatch,	\
	    .oid_descr = "dispatch of this protocol; default: as "	\
	    "net.isr.dispatch" },					\
	{ .oid_name = "net.isr.proto." name ".qlimit",			\
	    .oid_type = CTL_U32, .oid_flags = CTL_TUN | CTL_RUN,	\
	    .oid_ptr = &protos[p].qlimit, .oid_max = 1000000,		\
	    .oid_descr = "packets a queue may hold; 0: "		\
	    "net.isr.defaultqlimit" },					\
	{ .oid_name = "net.isr.proto." name ".mpsafe",			\
	    .oid_type = CTL_BOOL, .oid_flags = CTL_TUN,			\
	    .oid_ptr = &protos[p].mpsafe,				\
	    .oid_descr = "0: always queued, and run under Giant" }

static const struct sysctl_oid netisr_oids[] = {
	{ .oid_name = "net.isr.dispatch", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_dispatch,
	    .oid_proc = proc_dispatch,
	    .oid_descr = "who runs protocol input: direct, hybrid, deferred" },
	{ .oid_name = "net.isr.direct", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_proc = proc_direct,
	    .oid_descr = "1: direct, 0: deferred (the name of 2005)" },
	{ .oid_name = "net.isr.enable", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_proc = proc_direct,
	    .oid_descr = "1: direct, 0: deferred (the name of 5.x)" },
	{ .oid_name = "net.isr.maxthreads", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN, .oid_proc = proc_maxthreads,
	    .oid_descr = "worker threads; -1: one for each CPU" },
	{ .oid_name = "net.isr.bindthreads", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &isr_bindthreads,
	    .oid_descr = "bind each worker thread to its CPU" },
	{ .oid_name = "net.isr.defaultqlimit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_defaultqlimit,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "packets a protocol's queue may hold" },
	{ .oid_name = "net.isr.maxqlimit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_maxqlimit,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "no queue's limit may be above this" },
	PROTO_OIDS(NETISR_ETHER, "ether"),
	PROTO_OIDS(NETISR_IP, "ip"),
	PROTO_OIDS(NETISR_ARP, "arp"),
	PROTO_OIDS(NETISR_IPV6, "ip6"),
};

/* By any way. */
static uint64_t
handled(struct netisr_count *nc)
{
	return (atomic_load_u64(&nc->dispatched) +
	    atomic_load_u64(&nc->hybrid) + atomic_load_u64(&nc->worked));
}

static void
netisr_show(struct ctl_out *co)
{
	ctl_printf(co, "%-4s %-6s %6s %6s %12s %12s %12s %12s %10s\n", "WS",
	    "Proto", "QLimit", "WMark", "Direct", "Hybrid", "Queued", "Handled",
	    "QDrops");
	for (unsigned i = 0; i < nstreams; i++)
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
			struct netisr_count *nc = &streams[i].ws_count[p];

			ctl_printf(co, "%-4u %-6s %6u %6u %12llu %12llu %12llu "
			    "%12llu %10llu\n", i, protos[p].np.nh_name,
			    qlimit(p), atomic_load_u32(&nc->watermark),
			    (unsigned long long)atomic_load_u64(&nc->dispatched),
			    (unsigned long long)atomic_load_u64(&nc->hybrid),
			    (unsigned long long)atomic_load_u64(&nc->queued),
			    (unsigned long long)handled(nc),
			    (unsigned long long)atomic_load_u64(&nc->qdrops));
		}
}

void
netisr_init(void)
{
	sysctl_register(netisr_oids, nitems(netisr_oids));
	ctl_view_register("netstat -Q", netisr_show);
	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		mtx_init(&streams[i].ws_lock, LC_NETISR);
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			mbufq_init(&streams[i].ws_queue[p]);
	}
}

int
netisr_start(void)
{
	int want = (int)atomic_load_u32(&isr_maxthreads), error = 0;
	char name[24];

	nstreams = want < 0 ? mach_ncpus() : (unsigned)want;
	if (nstreams > STREAMS_MAX)
		nstreams = STREAMS_MAX;
	for (unsigned i = 0; i < nstreams && error == 0; i++) {
		snprintf(name, sizeof(name), "swi: netisr %u", i);
		error = kthread_create(name, isr_bindthreads ?
		    (int)(i % mach_ncpus()) : MACH_CPU_ANY, worker_main,
		    &streams[i], &streams[i].ws_thread);
	}
	return (error);
}

void
netisr_stop(void)
{
	for (unsigned i = 0; i < nstreams; i++) {
		struct workstream *ws = &streams[i];

		if (ws->ws_thread == NULL)
			continue;
		mtx_lock(&ws->ws_lock);
		ws->ws_stop = true;
		wakeup(ws);
		mtx_unlock(&ws->ws_lock);
		kthread_join(ws->ws_thread);
		ws->ws_thread = NULL;
		for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
			mbufq_drain(&ws->ws_queue[p]);
	}
}
