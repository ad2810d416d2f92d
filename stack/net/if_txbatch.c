/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmit batches: frames that a thread sends to one interface are collected
 * and passed to the driver with one call.
 */
#include "net/if_txbatch.h"

#define	BATCH_MAX	32	/* max frames in one call */

static void
batch_flush(struct tx_batch *xb)
{
	struct mbuf *frames = xb->xb_frames.mq_head;

	mbufq_init(&xb->xb_frames);
	if (frames != NULL)
		(void)xb->xb_ifp->if_transmit(xb->xb_ifp, frames);
}

void
tx_batch_begin(struct tx_batch *xb)
{
	KASSERT(curthread->td_tx_batch == NULL, ("tx_batch_begin: begun"));
	mbufq_init(&xb->xb_frames);
	xb->xb_later.n = xb->xb_sent.n = 0;
	curthread->td_tx_batch = xb;
}

static bool
calls_add(struct tx_calls *xc, void (*fn)(void *), void *arg)
{
	if (xc->n == TX_CALLS_MAX)
		return (false);
	xc->calls[xc->n].fn = fn;
	xc->calls[xc->n++].arg = arg;
	return (true);
}

static void
calls_run(const struct tx_calls *xc)
{
	for (unsigned i = 0; i < xc->n; i++)
		xc->calls[i].fn(xc->calls[i].arg);
}

void
tx_batch_end(struct tx_batch *xb)
{
	KASSERT(curthread->td_tx_batch == xb, ("tx_batch_end: not begun"));
	calls_run(&xb->xb_later);
	curthread->td_tx_batch = NULL;
	batch_flush(xb);
	calls_run(&xb->xb_sent);
}

bool
tx_batch_later(void (*fn)(void *), void *arg)
{
	struct tx_batch *xb = curthread->td_tx_batch;

	return (xb != NULL && calls_add(&xb->xb_later, fn, arg));
}

bool
tx_batch_sent(void (*fn)(void *), void *arg)
{
	KASSERT(tx_batch_holds(), ("tx_batch_sent: no frames are held"));
	return (calls_add(&curthread->td_tx_batch->xb_sent, fn, arg));
}

void
tx_batch_flush(void)
{
	KASSERT(tx_batch_holds(), ("tx_batch_flush: no frames are held"));
	batch_flush(curthread->td_tx_batch);
}

void
tx_batch_put(struct tx_batch *xb, struct ifnet *ifp, struct mbuf *m)
{
	if (xb->xb_ifp != ifp || xb->xb_frames.mq_len == BATCH_MAX) {
		batch_flush(xb);
		xb->xb_ifp = ifp;
	}
	mbufq_enqueue(&xb->xb_frames, m);
}
