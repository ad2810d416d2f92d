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

/*
 * Routes come and go at any time.  route_add: ifp NULL is found from gw, and
 * gw INADDR_ANY is on link; EEXIST, ENETUNREACH (gw is on no interface's
 * subnet).  route_delete: ESRCH.
 */
int	 route_add(struct in_addr dst, unsigned plen, struct in_addr gw,
	    struct ifnet *);
int	 route_delete(struct in_addr dst, unsigned plen);
const char *route_why_not(int error);	/* in words, of either */
/* Longest match, without a lock; false: no route. */
bool	 route_lookup(struct in_addr dst, struct nhop *);
/* Gateway of the route to just this prefix; false: there is none. */
bool	 route_gateway(struct in_addr dst, unsigned plen, struct in_addr *gw);

#endif /* NET_ROUTE_H */
