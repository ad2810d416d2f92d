/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 routing table: a list sorted by falling prefix length, so that the
 * first match is the longest (RFC 1812 section 5.2.4.3).  Interfaces' own
 * subnets are routes like any other.  Meant for the few routes of a test
 * host; a full table needs another structure behind the same functions.
 */
#include "net/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "net/if_private.h"

#define	PREFIX		"route."
#define	ROUTES_MAX	256

/*
 * Locks used to protect struct rtentry members:
 *	[r] route_lock
 */
struct rtentry {
	struct in_addr	 rt_dst, rt_mask;	/* [r] */
	struct in_addr	 rt_gw;			/* [r] INADDR_ANY: on link */
	struct ifnet	*rt_ifp;		/* [r] */
};

static struct rwlock route_lock;
static struct rtentry routes[ROUTES_MAX];	/* [r] */
static unsigned nroutes;			/* [r] */

/* Routes of loader.conf, until the interfaces are there. */
static struct route_config {
	struct in_addr dst, mask, gw;
} route_configs[ROUTES_MAX];
static unsigned nroute_configs;

int
route_add(struct in_addr dst, unsigned plen, struct in_addr gw,
    struct ifnet *ifp)
{
	struct in_addr mask = inet_mask(plen);
	unsigned i;
	int error = 0;

	if (ifp == NULL)
		ifp = if_onlink(gw);
	if (ifp == NULL)
		return (ENETUNREACH);
	dst.s_addr &= mask.s_addr;
	rw_wlock(&route_lock);
	for (i = 0; i < nroutes; i++) {
		if (routes[i].rt_mask.s_addr == mask.s_addr &&
		    routes[i].rt_dst.s_addr == dst.s_addr)
			error = EEXIST;
		if (ntohl(routes[i].rt_mask.s_addr) < ntohl(mask.s_addr))
			break;
	}
	if (error == 0 && nroutes == ROUTES_MAX)
		error = ENOSPC;
	if (error == 0) {
		memmove(&routes[i + 1], &routes[i],
		    (nroutes - i) * sizeof(routes[0]));
		routes[i] = (struct rtentry){ dst, mask, gw, ifp };
		nroutes++;
	}
	rw_wunlock(&route_lock);
	return (error);
}

int
route_delete(struct in_addr dst, unsigned plen)
{
	struct in_addr mask = inet_mask(plen);
	int error = ESRCH;

	rw_wlock(&route_lock);
	for (unsigned i = 0; i < nroutes; i++) {
		if (routes[i].rt_mask.s_addr != mask.s_addr ||
		    routes[i].rt_dst.s_addr != (dst.s_addr & mask.s_addr))
			continue;
		nroutes--;
		memmove(&routes[i], &routes[i + 1],
		    (nroutes - i) * sizeof(routes[0]));
		error = 0;
		break;
	}
	rw_wunlock(&route_lock);
	return (error);
}

bool
route_lookup(struct in_addr dst, struct nhop *nh)
{
	const struct rtentry *rt, *end;
	bool found = false;

	rw_rlock(&route_lock);
	for (rt = routes, end = routes + nroutes; rt < end; rt++) {
		if (((rt->rt_dst.s_addr ^ dst.s_addr) & rt->rt_mask.s_addr) != 0)
			continue;
		nh->nh_ifp = rt->rt_ifp;
		nh->nh_gw = rt->rt_gw.s_addr != INADDR_ANY ? rt->rt_gw : dst;
		found = true;
		break;
	}
	rw_runlock(&route_lock);
	return (found);
}

/* route.default="10.1.0.1", route.10.2.0.0/16="10.1.0.1" */
static int
route_config_set(const char *name, const char *value, char *why, size_t len)
{
	struct in_addr dst, mask, gw;

	name += strlen(PREFIX);
	if (strcmp(name, "default") == 0)
		dst.s_addr = mask.s_addr = INADDR_ANY;
	else if (!inet_parse_prefix(name, &dst, &mask)) {
		snprintf(why, len, "'%s' is neither default nor a subnet like "
		    "10.2.0.0/16", name);
		return (EINVAL);
	}
	if (inet_pton(AF_INET, value, &gw) != 1) {
		snprintf(why, len, "'%s' is not the address of a gateway",
		    value);
		return (EINVAL);
	}
	if (nroute_configs == ROUTES_MAX) {
		snprintf(why, len, "more than %d routes", ROUTES_MAX);
		return (ENOSPC);
	}
	route_configs[nroute_configs].dst = dst;
	route_configs[nroute_configs].mask = mask;
	route_configs[nroute_configs++].gw = gw;
	return (0);
}

static int
show_gateway(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)value;
	return (inet_ntop(AF_INET, oid->oid_ptr, buf, (socklen_t)len) != NULL ?
	    0 : EINVAL);
}

/* Adds a route of loader.conf, and a sysctl that tells it. */
static int
route_config_add(struct route_config *rc)
{
	char text[INET_ADDRSTRLEN];
	unsigned plen = inet_masklen(rc->mask);
	struct sysctl_oid oid = { .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
	    .oid_ptr = &rc->gw, .oid_proc = show_gateway,
	    .oid_descr = "gateway of this route" };
	int error = route_add(rc->dst, plen, rc->gw, NULL);

	if (error != 0)
		console("route: gateway %s: %s", inet_ntop(AF_INET, &rc->gw,
		    text, sizeof(text)), error == ENETUNREACH ?
		    "on no interface's subnet" : strerror(error));
	else if (plen == 0)
		sysctl_add(&oid, PREFIX "default");
	else
		sysctl_add(&oid, PREFIX "%s/%u", inet_ntop(AF_INET, &rc->dst,
		    text, sizeof(text)), plen);
	return (error);
}

int
route_config_attach(void)
{
	static const struct in_addr onlink = { INADDR_ANY };
	struct ifnet *ifp;
	int error = 0;

	for (ifp = ifnet_list; ifp != NULL && error == 0; ifp = ifp->if_next)
		if (ifp->if_addr.s_addr != INADDR_ANY)
			error = route_add(ifp->if_addr,
			    inet_masklen(ifp->if_mask), onlink, ifp);
	if (error != 0)
		console("route: two interfaces on one subnet");
	for (unsigned i = 0; i < nroute_configs && error == 0; i++)
		error = route_config_add(&route_configs[i]);
	return (error);
}

static void
route_show(struct ctl_out *co)
{
	char dst[INET_ADDRSTRLEN], gw[INET_ADDRSTRLEN];

	ctl_printf(co, "%-20s %-16s %s\n", "Destination", "Gateway",
	    "Interface");
	rw_rlock(&route_lock);
	for (unsigned i = 0; i < nroutes; i++) {
		const struct rtentry *rt = &routes[i];
		char prefix[INET_ADDRSTRLEN + 4];

		snprintf(prefix, sizeof(prefix), "%s/%u", inet_ntop(AF_INET,
		    &rt->rt_dst, dst, sizeof(dst)), inet_masklen(rt->rt_mask));
		ctl_printf(co, "%-20s %-16s %s\n", prefix,
		    rt->rt_gw.s_addr == INADDR_ANY ? "link" : inet_ntop(AF_INET,
		    &rt->rt_gw, gw, sizeof(gw)), rt->rt_ifp->if_xname);
	}
	rw_runlock(&route_lock);
}

void
route_init(void)
{
	rw_init(&route_lock, LC_ROUTE);
	sysctl_register_prefix(PREFIX, route_config_set);
	ctl_view_register("netstat -r", route_show);
}
