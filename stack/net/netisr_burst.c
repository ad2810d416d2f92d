/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of a receive thread: its packets for other workstreams are collected,
 * and queued at the end of the burst with one lock operation for each stream.
 *
 * With net.isr.feedback a thread that has filled a queue then waits until the
 * queue's worker has taken it.  Packets that nobody has time for stay in the
 * device, instead of being received and dropped at the expense of the worker
 * (Mogul and Ramakrishnan, "Eliminating receive livelock in an interrupt-driven
 * kernel", 1997, section 6.6.1).
 */
#include "kern/synch.h"
#include "net/if_var.h"
#include "net/net_hints.h"
#include "net/netisr_private.h"

#define	NO_STREAM	0U	/* else the stream's number plus 1 */

/* [o] the thread whose hints hold it */
struct isr_burst {
	bool		 ib_open;	/* [o] between begin and end */
	unsigned	 ib_crowded;	/* [o] a stream that it has filled */
	/* [o] a stream for which it waited, and others still do */
	unsigned	 ib_relay;
	uint64_t	 ib_pending;	/* [o] bit per stream with packets */
	struct {
		enum netisr_proto proto;
		struct mbufq	 packets;
	}		 ib_to[NETISR_WORKERS_MAX];	/* [o] */
};
_Static_assert(NETISR_WORKERS_MAX <= 64, "a bit for each stream");

static struct isr_burst *
burst_mine(void)
{
	return (thread_hints(NET_ISR_BURST, sizeof(struct isr_burst)));
}

static bool
has_packets(const struct isr_burst *ib, unsigned stream)
{
	return ((ib->ib_pending & UINT64_C(1) << stream) != 0);
}

/* Queues all packets for a stream. */
static void
flush(struct isr_burst *ib, unsigned stream)
{
	struct mbufq dropped;
	struct mbuf *m;

	ib->ib_pending &= ~(UINT64_C(1) << stream);
	mbufq_init(&dropped);
	isr_stream_put(stream, ib->ib_to[stream].proto,
	    &ib->ib_to[stream].packets, &dropped);
	while ((m = mbufq_dequeue(&dropped)) != NULL) {
		IFSTAT_INC(m->m_pkthdr.rcvif, iqdrops);
		m_freem(m);
	}
}

bool
isr_burst_add(unsigned stream, enum netisr_proto proto, struct mbuf *m)
{
	struct isr_burst *ib = burst_mine();

	if (!ib->ib_open)
		return (false);
	if (has_packets(ib, stream) && ib->ib_to[stream].proto != proto)
		flush(ib, stream);
	if (!has_packets(ib, stream)) {
		ib->ib_pending |= UINT64_C(1) << stream;
		ib->ib_to[stream].proto = proto;
		mbufq_init(&ib->ib_to[stream].packets);
	}
	mbufq_enqueue(&ib->ib_to[stream].packets, m);
	return (true);
}

void
isr_burst_flush(unsigned stream)
{
	struct isr_burst *ib = burst_mine();

	if (__predict_false(has_packets(ib, stream)))
		flush(ib, stream);
}

void
isr_burst_crowded(unsigned stream)
{
	burst_mine()->ib_crowded = stream + 1;
}

void
netisr_burst_begin(void)
{
	burst_mine()->ib_open = true;
}

static void
flush_all(struct isr_burst *ib)
{
	wakeup_hold();
	while (ib->ib_pending != 0)
		flush(ib, (unsigned)__builtin_ctzll(ib->ib_pending));
	wakeup_release();
}

void
netisr_burst_end(void)
{
	struct isr_burst *ib = burst_mine();
	const unsigned relay = ib->ib_relay;
	unsigned crowded;

	ib->ib_open = false;
	if (ib->ib_pending != 0)
		flush_all(ib);
	if (relay != NO_STREAM) {
		ib->ib_relay = NO_STREAM;
		isr_stream_relay(relay - 1);
	}
	crowded = ib->ib_crowded;
	if (crowded != NO_STREAM) {
		ib->ib_crowded = NO_STREAM;
		if (isr_stream_await(crowded - 1))
			ib->ib_relay = crowded;
	}
}
