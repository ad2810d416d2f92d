/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 routing table: longest match (RFC 1812 section 5.2.4.3).  Interfaces'
 * own subnets are routes like any other.
 */
#include "net/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/epoch.h"
#include "net/if_private.h"
#include "net/rtable.h"

/* [I] immutable */
struct rtentry {
	struct rtprefix	 rt_prefix;	/* [I] */
	struct in_addr	 rt_gw;		/* [I] INADDR_ANY: on link */
	struct ifnet	*rt_ifp;	/* [I] */
};

static struct rtable *route_table;	/* [I] */

static struct rtprefix
route_prefix(struct in_addr dst, unsigned plen)
{
	return (rtprefix_make(rtkey_inet(dst), plen));
}

int
route_add(struct in_addr dst, unsigned plen, struct in_addr gw,
    struct ifnet *ifp)
{
	struct rtentry *rt;

	if (ifp == NULL)
		ifp = if_onlink(gw);
	if (ifp == NULL)
		return (ENETUNREACH);
	rt = kmalloc(sizeof(*rt));
	*rt = (struct rtentry){ route_prefix(dst, plen), gw, ifp };
	if (rtable_insert(route_table, &rt->rt_prefix) == NULL)
		return (0);
	kfree(rt);
	return (EEXIST);
}

int
route_delete(struct in_addr dst, unsigned plen)
{
	struct rtprefix prefix = route_prefix(dst, plen), *found;

	found = rtable_remove(route_table, &prefix);
	if (found == NULL)
		return (ESRCH);
	epoch_call(kfree, container_of(found, struct rtentry, rt_prefix));
	return (0);
}

bool
route_lookup(struct in_addr dst, struct nhop *nh)
{
	const struct rtkey key = rtkey_inet(dst);
	const struct rtentry *rt;
	const struct rtprefix *found;

	epoch_enter();
	found = rtable_lookup(route_table, &key);
	if (found != NULL) {
		rt = container_of(found, struct rtentry, rt_prefix);
		nh->nh_ifp = rt->rt_ifp;
		nh->nh_gw = rt->rt_gw.s_addr != INADDR_ANY ? rt->rt_gw : dst;
	}
	epoch_exit();
	return (found != NULL);
}

bool
route_gateway(struct in_addr dst, unsigned plen, struct in_addr *gw)
{
	struct rtprefix prefix = route_prefix(dst, plen), *found;

	epoch_enter();
	found = rtable_exact(route_table, &prefix);
	if (found != NULL)
		*gw = container_of(found, struct rtentry, rt_prefix)->rt_gw;
	epoch_exit();
	return (found != NULL);
}

static void
show_entry(struct rtprefix *rp, void *arg)
{
	const struct rtentry *rt = container_of(rp, struct rtentry, rt_prefix);
	struct in_addr net = { htonl((uint32_t)(rp->rp_key.w[0] >> 32)) };
	char dst[INET_ADDRSTRLEN], gw[INET_ADDRSTRLEN];
	char prefix[INET_ADDRSTRLEN + 4];

	snprintf(prefix, sizeof(prefix), "%s/%u", inet_ntop(AF_INET, &net, dst,
	    sizeof(dst)), rp->rp_len);
	ctl_printf(arg, "%-20s %-16s %s\n", rp->rp_len > 0 ? prefix : "default",
	    rt->rt_gw.s_addr == INADDR_ANY ? "link" : inet_ntop(AF_INET,
	    &rt->rt_gw, gw, sizeof(gw)), rt->rt_ifp->if_xname);
}

static void
route_show(struct ctl_out *co)
{
	ctl_printf(co, "%-20s %-16s %s\n", "Destination", "Gateway",
	    "Interface");
	rtable_walk(route_table, show_entry, co);
}

static void
netstat_show(struct ctl_out *co)
{
	route_show(co);
	ctl_printf(co, "\n");
	route6_show(co);
}

void
route_init(void)
{
	route_table = rtable_create(32);
	ctl_view_register("netstat -r", netstat_show);
	ctl_view_register("route show", route_show);
	route_config_init();
}
