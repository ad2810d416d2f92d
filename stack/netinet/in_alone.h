/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocols whose input only one thread at a time may run.  While others share
 * the net lock, packets for them are handed to a thread that takes it
 * exclusively (OpenBSD's if_netisr()).  No protocol here needs that:
 * net.inet.ip.alone names some, to see what it costs.
 */
#ifndef NETINET_IN_ALONE_H
#define NETINET_IN_ALONE_H

#include "netinet/ip_var.h"

extern bool	 in_alone_some;		/* [I] after boot: there are such */

/* True: the packet has been handed over, or dropped. */
bool	 in_alone_handover(pr_input_t *, uint8_t proto, struct mbuf *,
	    unsigned hlen);

/* After boot: is the protocol one of them? */
bool	 in_alone_is(uint8_t proto);

/* A packet to its protocol, for IPv4 and IPv6. */
static inline void
in_upper_input(pr_input_t *input, uint8_t proto, struct mbuf *m,
    unsigned hlen)
{
	if (__predict_true(!in_alone_some) ||
	    !in_alone_handover(input, proto, m, hlen))
		input(m, hlen);
}

void	 in_alone_init(void);		/* registers the tunable */
int	 in_alone_start(void);		/* 0 or an errno value, explained */
void	 in_alone_stop(void);

#endif /* NETINET_IN_ALONE_H */
