/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of received packets.
 */
#include "net/rx_burst.h"

#include "kern/lock.h"
#include "kern/netlock.h"
#include "kern/synch.h"
#include "kern/thread.h"
#include "net/net_hints.h"
#include "net/netisr.h"

/* [o] the thread whose hints hold it */
struct rx_burst {
	unsigned	 rb_depth;	/* [o] */
	bool		 rb_collecting;	/* [o] */
	struct mbufq	 rb_frames;	/* [o] collected frames */
};

bool rx_bursts;
void (*rx_burst_last)(void);

static struct rx_burst *
rx_burst_mine(void)
{
	return (thread_hints(NET_RX_BURST, sizeof(struct rx_burst)));
}

bool
rx_burst_is_open(void)
{
	return (rx_burst_mine()->rb_depth > 0);
}

/* Defers wakeups until all locks are released. */
void
rx_burst_open(void)
{
	if (rx_burst_mine()->rb_depth++ > 0)
		return;
	wakeup_hold();
	giant_enter();
	net_enter();
}

void
rx_burst_close(void)
{
	struct rx_burst *rb = rx_burst_mine();

	KASSERT(rb->rb_depth > 0, ("rx_burst_close: none is open"));
	if (rb->rb_depth == 1 && rx_burst_last != NULL)
		rx_burst_last();
	if (--rb->rb_depth > 0)
		return;
	net_exit();
	giant_exit();
	wakeup_release();
}

void
rx_burst_collect_open(void)
{
	struct rx_burst *rb = rx_burst_mine();

	KASSERT(!rb->rb_collecting, ("rx_burst_collect_open: open already"));
	mbufq_init(&rb->rb_frames);
	rb->rb_collecting = true;
}

bool
rx_burst_collect_frame(struct mbuf *m)
{
	struct rx_burst *rb = rx_burst_mine();

	if (rb->rb_collecting)
		mbufq_enqueue(&rb->rb_frames, m);
	return (rb->rb_collecting);
}

void
rx_burst_collect_close(void)
{
	struct rx_burst *rb = rx_burst_mine();
	struct mbuf *m;

	rb->rb_collecting = false;
	if (rb->rb_frames.mq_len == 0)
		return;
	rx_burst_open();
	while ((m = mbufq_dequeue(&rb->rb_frames)) != NULL)
		(void)netisr_dispatch(NETISR_ETHER, m);
	rx_burst_close();
}
