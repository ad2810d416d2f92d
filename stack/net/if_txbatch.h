/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmit batches: frames that a thread sends to one interface are collected
 * and passed to the driver with one call.
 */
#ifndef NET_IF_TXBATCH_H
#define NET_IF_TXBATCH_H

#include "kern/thread.h"
#include "net/if_var.h"

#define	TX_CALLS_MAX	16
struct tx_calls {
	unsigned	 n;
	struct { void (*fn)(void *); void *arg; } calls[TX_CALLS_MAX];
};
struct tx_batch {
	struct ifnet	*xb_ifp;
	struct mbufq	 xb_frames;
	struct tx_calls	 xb_later, xb_sent;
};

/*
 * Between begin and end the calling thread's frames are collected.  The thread
 * must not sleep in between.
 */
void	 tx_batch_begin(struct tx_batch *);
void	 tx_batch_end(struct tx_batch *);
/*
 * Calls fn(arg) at the end of this thread's transmit batch, before it is sent.
 * False: no batch is open, or its list of calls is full.
 */
bool	 tx_batch_later(void (*fn)(void *), void *arg);
/* Whether this thread holds unsent frames. */
static inline bool
tx_batch_holds(void)
{
	const struct tx_batch *xb = thread_known()->td_tx_batch;

	return (xb != NULL && xb->xb_frames.mq_head != NULL);
}
/*
 * While frames are held: calls fn(arg) when they have been sent.  False: the
 * list of calls is full.
 */
bool	 tx_batch_sent(void (*fn)(void *), void *arg);
void	 tx_batch_flush(void);

void	 tx_batch_put(struct tx_batch *, struct ifnet *, struct mbuf *);
/* Transmits a whole frame, or adds it to this thread's batch. */
static inline int
if_send(struct ifnet *ifp, struct mbuf *m)
{
	struct tx_batch *xb = thread_known()->td_tx_batch;

	if (xb == NULL || (ifp->if_caps & IFCAP_BATCH) == 0)
		return (ifp->if_transmit(ifp, m));
	tx_batch_put(xb, ifp, m);
	return (0);
}

#endif /* NET_IF_TXBATCH_H */
