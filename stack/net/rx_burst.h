/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive bursts: packets that a thread receives together share one hold of
 * the net lock.  What a protocol deferred until all of them were processed is
 * done at the end, still under it (OpenBSD's if_input_process() and struct
 * netstack).
 *
 * A driver collects frames while its device has some, and takes them in
 * between rx_burst_gather_begin() and rx_burst_gather_end(); a queue's worker
 * opens a burst around the whole queue; a handler that runs alone is a burst
 * of its own.  Bursts nest, and do nothing unless net.inet.tcp.input needs
 * them.
 */
#ifndef NET_RX_BURST_H
#define NET_RX_BURST_H

#include "kern/mbuf.h"

extern bool	 rx_bursts;		/* [I] after boot */
/* What was put off, or NULL; in the thread whose burst ends. */
extern void	(*rx_burst_last)(void);	/* [I] after boot */

void	 rx_burst_open(void);
void	 rx_burst_close(void);
void	 rx_burst_gather_open(void);
void	 rx_burst_gather_close(void);
bool	 rx_burst_gather_frame(struct mbuf *);
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
rx_burst_gather_begin(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_gather_open();
}

static inline void
rx_burst_gather_end(void)
{
	if (__predict_false(rx_bursts))
		rx_burst_gather_close();
}

/* A frame, its interface set: true if it waits for the end of gathering. */
static inline bool
rx_burst_gather(struct mbuf *m)
{
	return (__predict_false(rx_bursts) && rx_burst_gather_frame(m));
}

#endif /* NET_RX_BURST_H */
