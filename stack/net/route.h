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
	struct in_addr	 nh_gw;		/* next hop: gateway or dst */
	bool		 nh_host; /* dst is one host other than this one */
};

/*
 * Routes may change at any time.  route_add(): a NULL ifp is derived from gw;
 * gw INADDR_ANY means on link.  Errors: EEXIST, ENETUNREACH (gw is in no
 * interface's subnet).  route_delete(): ESRCH.
 */
int	 route_add(struct in_addr dst, unsigned plen, struct in_addr gw,
	    struct ifnet *);
int	 route_delete(struct in_addr dst, unsigned plen);
/* the message of an errno value of these two */
const char *route_why_not(int error);
/* Longest match, without a lock; false: no route. */
bool	 route_lookup(struct in_addr dst, struct nhop *);
/* The gateway of the route with exactly this prefix; false: no such route. */
bool	 route_gateway(struct in_addr dst, unsigned plen, struct in_addr *gw);

/*
 * Textual interface of a family's routes: route_config.c parses and prints
 * them for each registered family.  Addresses have 16 bytes, IPv4 mapped
 * (netinet/in_family.h); prefix lengths are the family's own.  Errors are
 * those above.
 */
struct route_family {
	/* "route": prefix of commands and tunables */
	const char	*rf_command;
	int		 rf_domain;	/* AF_* */
	struct in6_addr	 rf_any;
	const char	*rf_subnet, *rf_gwname;	/* examples for messages */
	int		(*rf_add)(const struct in6_addr *dst, unsigned plen,
			    const struct in6_addr *gw);
	int		(*rf_delete)(const struct in6_addr *dst, unsigned plen);
	bool		(*rf_gateway)(const struct in6_addr *dst, unsigned plen,
			    struct in6_addr *gw);
	/* Prints the table for "route show". */
	void		(*rf_show)(struct ctl_out *);
	/* The next hop of a packet to dst; false: no route. */
	bool		(*rf_lookup)(const struct in6_addr *dst,
			    struct in6_addr *gw, struct ifnet **);
};
void	 route_family_register(const struct route_family *);

/* Boot order: init, then the subnets of interfaces, then loader.conf. */
void	 route_init(void);
void	 route_config_init(void);
int	 route_attach(void);		/* errno value */
int	 route_config_attach(void);	/* errno value */
/* Routes to the subnets of an interface; errno. */
int	 route_subnets(struct ifnet *);

#endif /* NET_ROUTE_H */
