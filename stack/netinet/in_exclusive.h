/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocols whose input needs the net lock exclusively.  If the lock is
 * shared, their packets are queued to a thread that takes it exclusively
 * (OpenBSD's if_netisr()).  No protocol of this stack needs that;
 * net.inet.ip.alone selects some to measure the cost.
 */
#ifndef NETINET_IN_EXCLUSIVE_H
#define NETINET_IN_EXCLUSIVE_H

#include "netinet/ip_var.h"

extern bool	 in_exclusive_some;		/* [I] after boot: not empty */

/* True: the packet was handed off or dropped. */
bool	 in_exclusive_handover(pr_input_t *, uint8_t proto, struct mbuf *,
	    unsigned hlen);

/* After boot: whether the protocol is in net.inet.ip.alone. */
bool	 in_exclusive_is(uint8_t proto);

/* Passes a packet to its protocol, for IPv4 and IPv6. */
static inline void
in_upper_input(pr_input_t *input, uint8_t proto, struct mbuf *m,
    unsigned hlen)
{
	if (__predict_true(!in_exclusive_some) ||
	    !in_exclusive_handover(input, proto, m, hlen))
		input(m, hlen);
}

void	 in_exclusive_init(void);		/* registers the tunable */
int	 in_exclusive_start(void);		/* 0 or an errno value, printed */
void	 in_exclusive_stop(void);

#endif /* NETINET_IN_EXCLUSIVE_H */
