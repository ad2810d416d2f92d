/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a thread (thread_hints()) that this layer uses.
 */
#ifndef NET_NET_HINTS_H
#define	NET_NET_HINTS_H

#include "kern/thread.h"

enum net_hint {
	NET_RX_BURST,	/* frames received together (rx_burst.c) */
	NET_ROUTES,	/* routes of IPv4 (route.c) */
	NET_LRO,	/* segments to be merged (if_lro.c) */
	NET_ISR_BURST,	/* packets for workers (netisr_stream.c) */
	NET_HINTS
};

#endif /* NET_NET_HINTS_H */
