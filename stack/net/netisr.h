/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr: dispatch of received packets to protocols.  See netisr.c for the
 * policies direct, hybrid and deferred.
 */
#ifndef NET_NETISR_H
#define NET_NETISR_H

#include "kern/mbuf.h"

enum netisr_proto { NETISR_ETHER, NETISR_IP, NETISR_ARP, NETISR_IPV6,
    NETISR_NPROTO };

struct netisr_handler {
	const char	*nh_name;
	enum netisr_proto nh_proto;
	void		(*nh_handler)(struct mbuf *);
	uint32_t	(*nh_m2flow)(struct mbuf *);	/* or NULL */
	/*
	 * Tried first, in the thread that received the packet and whatever
	 * the dispatch is; true: it was handled to its end.  Or NULL.
	 */
	bool		(*nh_fast)(struct mbuf *);
	bool		 nh_mpsafe;	/* else always queued, under Giant */
};

void	 netisr_register(const struct netisr_handler *);
/* Dispatch by policy.  Consumes m; ENOBUFS when a queue was full. */
int	 netisr_dispatch(enum netisr_proto, struct mbuf *);
/* Always queue: loopback, tunnel re-input. */
int	 netisr_queue(enum netisr_proto, struct mbuf *);

#endif /* NET_NETISR_H */
