/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 routing table.
 */
#ifndef NET_ROUTE_H
#define NET_ROUTE_H

#include "net/if_var.h"

struct nhop {
	struct ifnet	*nh_ifp;
	struct in_addr	 nh_gw;		/* where to send: gateway or dst */
};

int	 route_add(struct in_addr dst, unsigned plen, struct in_addr gw,
	    struct ifnet *);	/* ifp NULL: found from gw */
int	 route_delete(struct in_addr dst, unsigned plen);
/* Longest match; false: no route. */
bool	 route_lookup(struct in_addr dst, struct nhop *);

#endif /* NET_ROUTE_H */
