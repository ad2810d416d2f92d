/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 routing table.
 */
#ifndef NET_ROUTE_H
#define NET_ROUTE_H

#include "net/if_var.h"

struct ctl_out;

struct nhop {
	struct ifnet	*nh_ifp;
	struct in_addr	 nh_gw;		/* where to send: gateway or dst */
	bool		 nh_host;	/* dst is one host, and another */
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

/*
 * A family's routes as people write them: route_config.c reads and shows them
 * for each family that registers this.  Addresses have 16 bytes, those of
 * IPv4 mapped (netinet/in_family.h); prefix lengths are the family's own;
 * errors as above.
 */
struct route_family {
	const char	*rf_command;	/* "route": names commands, tunables */
	int		 rf_domain;	/* AF_* */
	struct in6_addr	 rf_any;
	const char	*rf_subnet, *rf_gwname;	/* examples for messages */
	int		(*rf_add)(const struct in6_addr *dst, unsigned plen,
			    const struct in6_addr *gw);
	int		(*rf_delete)(const struct in6_addr *dst, unsigned plen);
	bool		(*rf_gateway)(const struct in6_addr *dst, unsigned plen,
			    struct in6_addr *gw);
	/* The table, as "route show" prints it. */
	void		(*rf_show)(struct ctl_out *);
	/* Where a packet to dst goes; false: no route. */
	bool		(*rf_lookup)(const struct in6_addr *dst,
			    struct in6_addr *gw, struct ifnet **);
};
void	 route_family_register(const struct route_family *);

#endif /* NET_ROUTE_H */
