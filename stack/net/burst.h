/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts: packets that a thread takes in together hold the net lock together,
 * and what a protocol put off until all have been looked at is done at the
 * end, still under it (OpenBSD's if_input_process() and struct netstack).
 *
 * A driver gathers frames while its device has some and takes them in
 * between burst_gather_begin() and burst_gather_end(); a queue's worker opens
 * a burst around the whole queue; a handler that runs alone is a burst of its
 * own.  Bursts nest, and do nothing unless net.inet.tcp.input asks for them.
 */
#ifndef NET_BURST_H
#define NET_BURST_H

#include "kern/mbuf.h"

extern bool	 net_bursts;		/* [I] after boot */
/* What was put off, or NULL; in the thread whose burst ends. */
extern void	(*burst_last)(void);	/* [I] after boot */

void	 burst_open(void);
void	 burst_close(void);
void	 burst_gather_open(void);
void	 burst_gather_close(void);
bool	 burst_gather_frame(struct mbuf *);
bool	 burst_is_open(void);

static inline void
burst_begin(void)
{
	if (__predict_false(net_bursts))
		burst_open();
}

static inline void
burst_end(void)
{
	if (__predict_false(net_bursts))
		burst_close();
}

static inline void
burst_gather_begin(void)
{
	if (__predict_false(net_bursts))
		burst_gather_open();
}

static inline void
burst_gather_end(void)
{
	if (__predict_false(net_bursts))
		burst_gather_close();
}

/* A frame, its interface set: true if it waits for the end of gathering. */
static inline bool
burst_gather(struct mbuf *m)
{
	return (__predict_false(net_bursts) && burst_gather_frame(m));
}

#endif /* NET_BURST_H */
