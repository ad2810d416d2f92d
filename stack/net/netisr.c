/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr: dispatch of received packets to protocols (Watson 2005; netisr(9)).
 *
 *	direct		the receiving thread runs the handler to completion
 *	deferred	the packet is queued, and another thread runs it
 *	hybrid		direct if that keeps the order, else deferred
 *
 * net.isr.dispatch applies to all protocols, net.isr.proto.<p>.dispatch to
 * one.  A handler that is not MP-safe is always deferred and runs under Giant.
 * Loopback and tunnels call netisr_queue(); see netisr_stream.c for who handles
 * what a program sends to its own host.
 *
 * FreeBSD reimplemented the queues in 2009: net.isr.generation selects
 * netisr_swi.c (2005) or netisr_stream.c (2009).
 */
#include "net/netisr_private.h"

#include <errno.h>
#include <stdio.h>

#include "kern/ast.h"
#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_var.h"
#include "net/rx_burst.h"

struct isr_proto isr_protos[NETISR_NPROTO] = {
	/* Framing only: another queue would be one too many. */
	[NETISR_ETHER] = { .dispatch = DISPATCH_DIRECT },
	[NETISR_TCP] = { .dispatch = DISPATCH_DEFERRED },
};

struct isr_direct isr_direct COUNTERS;

static const struct isr_generation *generation = &isr_2009; /* [I] */

/* Defers wakeups until the packet's locks are released. */
__hot void
isr_handle(enum netisr_proto proto, struct mbuf *m)
{
	struct isr_proto *ps = &isr_protos[proto];

	wakeup_hold();
	/* packets that a program's call causes keep the call's time */
	if (!ast_entered())
		forget_uptime();
	if (ps->mpsafe) {
		giant_enter();
		rx_burst_begin();
		ps->np.nh_handler(m);
		rx_burst_end();
		giant_exit();
	} else {
		giant_lock();
		rx_burst_begin();
		ps->np.nh_handler(m);
		rx_burst_end();
		giant_unlock();
	}
	wakeup_release();
}

void
isr_rx_burst_begin(enum netisr_proto proto)
{
	if (!rx_bursts || !isr_protos[proto].mpsafe)
		return;
	giant_enter();	/* before the net lock */
	rx_burst_begin();
}

void
isr_rx_burst_end(enum netisr_proto proto)
{
	if (!rx_bursts || !isr_protos[proto].mpsafe)
		return;
	rx_burst_end();
	giant_exit();
}

bool
isr_enqueue(enum netisr_proto proto, struct mbufq *mq, struct isr_count *ic,
    struct mbuf *m)
{
	if (mq->mq_len >= isr_qlimit(proto)) {
		atomic_count_u64(&ic->qdrops, 1);
		return (false);
	}
	mbufq_enqueue(mq, m);
	atomic_count_u64(&ic->queued, 1);
	if (mq->mq_len > atomic_load_u32(&ic->watermark))
		atomic_store_u32(&ic->watermark, mq->mq_len);
	return (true);
}

void
isr_drain(struct mtx *lock, struct mbufq *mq)
{
	struct mbufq rest;

	mtx_lock(lock);
	mbufq_take(&rest, mq);
	mtx_unlock(lock);
	mbufq_drain(&rest);
}

int
netisr_queue(enum netisr_proto proto, struct mbuf *m)
{
	KASSERT(isr_protos[proto].np.nh_handler != NULL,
	    ("netisr_queue: protocol %d", proto));
	return (generation->ig_queue(proto, m));
}

static bool
dispatch_fast(const struct isr_proto *ps, struct mbuf *m)
{
	bool handled;

	if (ps->np.nh_fast == NULL)
		return (false);
	giant_enter();
	handled = ps->np.nh_fast(m);
	giant_exit();
	return (handled);
}

__hot int
netisr_dispatch(enum netisr_proto proto, struct mbuf *m)
{
	const struct isr_proto *ps = &isr_protos[proto];

	KASSERT(ps->np.nh_handler != NULL,
	    ("netisr_dispatch: protocol %d", proto));
	KASSERT(m->m_nextpkt == NULL, ("netisr_dispatch: packet is queued"));
	if (__predict_false(!ps->mpsafe))
		return (generation->ig_dispatch(proto, m, DISPATCH_DEFERRED));
	if (dispatch_fast(ps, m))
		return (0);
	return (generation->ig_dispatch(proto, m, isr_way(proto)));
}

void
netisr_register(const struct netisr_handler *np)
{
	struct isr_proto *ps = &isr_protos[np->nh_proto];

	KASSERT(ps->np.nh_handler == NULL,
	    ("netisr_register: %s twice", np->nh_name));
	ps->np = *np;
	ps->mpsafe = np->nh_mpsafe;
	atomic_store_u32(&ps->policy, np->nh_policy);
}

bool
netisr_is_mpsafe(enum netisr_proto proto)
{
	return (isr_protos[proto].mpsafe);
}

void
netisr_init(void)
{
	isr_sysctl_init();
}

/* Protocols under Giant are never dispatched directly: records the override. */
static void
force_deferred(void)
{
	char name[SYSCTL_NAME_LEN], asked[16];

	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++) {
		struct isr_proto *ps = &isr_protos[p];

		if (ps->np.nh_handler == NULL || ps->mpsafe ||
		    isr_way(p) == DISPATCH_DEFERRED)
			continue;
		snprintf(name, sizeof(name), "net.isr.proto.%s.dispatch",
		    ps->np.nh_name);
		if (sysctl_get(name, asked, sizeof(asked)) != 0)
			continue;
		atomic_store_u32(&ps->dispatch, DISPATCH_DEFERRED);
		sysctl_forced(name, asked, "deferred",
		    "its handler runs under Giant");
	}
}

int
netisr_start(void)
{
	const char *why = isr_refusal();

	if (why != NULL) {
		console("net.isr: %s", why);
		return (EINVAL);
	}
	force_deferred();
	generation = isr_chosen();
	watchdog_watch("packets of netisr", generation->ig_watch);
	return (generation->ig_start());
}

void
netisr_stop(void)
{
	generation->ig_stop();
}
