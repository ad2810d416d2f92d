/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive bursts: packets received together share one hold of the net lock.
 * Work that a protocol deferred is done at the end of the burst, still under
 * the lock (OpenBSD's if_input_process() and struct netstack).
 *
 * A driver collects frames while its device has some and processes them
 * between rx_burst_collect_begin() and rx_burst_collect_end().  A netisr worker
 * opens a burst around a whole queue.  An exclusive handler is a burst of its
 * own.  Bursts nest, and do nothing unless net.inet.tcp.input needs them.
 */
#ifndef NET_RX_BURST_H
#define NET_RX_BURST_H

#include "kern/mbuf.h"

extern bool	 rx_bursts;		/* [I] after boot */
/* Runs the deferred work, or NULL; in the thread whose burst ends. */
extern void	(*rx_burst_last)(void);	/* [I] after boot */

void	 rx_burst_open(void);
void	 rx_burst_close(void);
void	 rx_burst_collect_open(void);
void	 rx_burst_collect_close(void);
bool	 rx_burst_collect_frame(struct mbuf *);
bool	 rx_burst_is_open(void);

static inline void
rx_burst_begin(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_open();
}

static inline void
rx_burst_end(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_close();
}

static inline void
rx_burst_collect_begin(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_collect_open();
}

static inline void
rx_burst_collect_end(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_collect_close();
}

/*
 * Collects a frame whose interface is set; true if it waits for the end of
 * collection.
 */
static inline bool
rx_burst_collect(struct mbuf *m)
{
	return (__predict_false(rx_bursts) && rx_burst_collect_frame(m));
}

#endif /* NET_RX_BURST_H */
