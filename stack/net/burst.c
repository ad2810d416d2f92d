/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of received packets.
 */
#include "net/burst.h"

#include "kern/lock.h"
#include "kern/netlock.h"
#include "kern/synch.h"
#include "kern/thread.h"
#include "net/netisr.h"

/* [o] the thread that has it among its hints */
struct burst {
	unsigned	 bu_depth;	/* [o] */
	bool		 bu_gathers;	/* [o] */
	struct mbufq	 bu_frames;	/* [o] gathered */
};

bool net_bursts;
void (*burst_last)(void);

static struct burst *
burst_mine(void)
{
	return (thread_hints(TD_BURST, sizeof(struct burst)));
}

bool
burst_is_open(void)
{
	return (burst_mine()->bu_depth > 0);
}

/* Whom its packets wake is let go when all locks are. */
void
burst_open(void)
{
	if (burst_mine()->bu_depth++ > 0)
		return;
	wakeup_hold();
	giant_enter();
	net_enter();
}

void
burst_close(void)
{
	struct burst *bu = burst_mine();

	KASSERT(bu->bu_depth > 0, ("burst_close: none is open"));
	if (bu->bu_depth == 1 && burst_last != NULL)
		burst_last();
	if (--bu->bu_depth > 0)
		return;
	net_exit();
	giant_exit();
	wakeup_release();
}

void
burst_gather_open(void)
{
	struct burst *bu = burst_mine();

	KASSERT(!bu->bu_gathers, ("burst_gather_open: gathers already"));
	mbufq_init(&bu->bu_frames);
	bu->bu_gathers = true;
}

bool
burst_gather_frame(struct mbuf *m)
{
	struct burst *bu = burst_mine();

	if (bu->bu_gathers)
		mbufq_enqueue(&bu->bu_frames, m);
	return (bu->bu_gathers);
}

void
burst_gather_close(void)
{
	struct burst *bu = burst_mine();
	struct mbuf *m;

	bu->bu_gathers = false;
	if (bu->bu_frames.mq_len == 0)
		return;
	burst_open();
	while ((m = mbufq_dequeue(&bu->bu_frames)) != NULL)
		(void)netisr_dispatch(NETISR_ETHER, m);
	burst_close();
}
