/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred transmit: a thread of the interface's own hands frames to the
 * driver, so that whoever sends need not wait for the device (iflib(4) calls
 * it tx_abdicate).  It takes all that has gathered meanwhile, and gives it to
 * a driver that takes many frames with one call.
 */
#include <errno.h>
#include <stdio.h>

#include "kern/synch.h"
#include "kern/thread.h"
#include "net/if_private.h"

#define	TXQ_MAX	4096	/* frames; more are lost */

/*
 * Locks used to protect struct if_txq members:
 *	[I] immutable after start
 *	[q] tq_lock
 */
struct if_txq {
	struct ifnet	*tq_ifp;		/* [I] */
	int		(*tq_transmit)(struct ifnet *, struct mbuf *);
						/* [I] the driver's */
	bool		 tq_lists;		/* [I] it takes many frames */
	struct thread	*tq_thread;		/* [I] */
	struct mtx	 tq_lock;
	struct mbufq	 tq_frames;		/* [q] */
	bool		 tq_stop;		/* [q] */
};

/* What if_send() calls in the place of the driver. */
static int
txq_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct if_txq *tq = ifp->if_txq;
	struct mbuf *next;
	unsigned lost = 0;
	bool empty;

	mtx_lock(&tq->tq_lock);
	empty = tq->tq_frames.mq_len == 0;
	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (tq->tq_frames.mq_len < TXQ_MAX) {
			mbufq_enqueue(&tq->tq_frames, m);
			continue;
		}
		m_freem(m);
		lost++;
	}
	mtx_unlock(&tq->tq_lock);
	if (empty)
		wakeup(tq);
	if (lost == 0)
		return (0);
	IFSTAT_ADD(ifp, odrops, lost);
	return (ENOBUFS);
}

static void
txq_send(const struct if_txq *tq, struct mbufq *frames)
{
	struct mbuf *m;

	if (tq->tq_lists) {
		(void)tq->tq_transmit(tq->tq_ifp, frames->mq_head);
		return;
	}
	while ((m = mbufq_next(frames)) != NULL)
		(void)tq->tq_transmit(tq->tq_ifp, m);
}

static void
txq_main(void *arg)
{
	struct if_txq *tq = arg;
	struct mbufq frames;

	mtx_lock(&tq->tq_lock);
	while (!tq->tq_stop) {
		if (tq->tq_frames.mq_len == 0) {
			msleep(tq, &tq->tq_lock, 0, "transmit", NSEC_FOREVER);
			continue;
		}
		mbufq_take(&frames, &tq->tq_frames);
		mtx_unlock(&tq->tq_lock);
		txq_send(tq, &frames);
		mtx_lock(&tq->tq_lock);
	}
	mtx_unlock(&tq->tq_lock);
}

void
if_txq_create(struct ifnet *ifp)
{
	struct if_txq *tq = kmalloc(sizeof(*tq));

	mtx_init(&tq->tq_lock, LC_DEVQ);
	mbufq_init(&tq->tq_frames);
	tq->tq_ifp = ifp;
	tq->tq_transmit = ifp->if_transmit;
	tq->tq_lists = (ifp->if_caps & IFCAP_BATCH) != 0;
	ifp->if_txq = tq;
	ifp->if_transmit = txq_transmit;
	ifp->if_caps |= IFCAP_BATCH;
}

int
if_txq_start(struct if_txq *tq)
{
	char name[24];

	snprintf(name, sizeof(name), "swi: tx %s", tq->tq_ifp->if_xname);
	return (kthread_create(name, MACH_CPU_ANY, txq_main, tq,
	    &tq->tq_thread));
}

/* Frames that others send later stay where they are. */
void
if_txq_stop(struct if_txq *tq)
{
	if (tq->tq_thread == NULL)
		return;
	mtx_lock(&tq->tq_lock);
	tq->tq_stop = true;
	wakeup(tq);
	mtx_unlock(&tq->tq_lock);
	kthread_join(tq->tq_thread);
	mtx_lock(&tq->tq_lock);
	mbufq_drain(&tq->tq_frames);
	mtx_unlock(&tq->tq_lock);
}
