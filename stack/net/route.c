/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 routing table: longest match (RFC 1812 section 5.2.4.3).  The subnets
 * of interfaces are ordinary routes.
 */
#include "net/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/epoch.h"
#include "kern/thread.h"
#include "net/if_config.h"
#include "net/net_hints.h"
#include "net/rtable.h"

/* [I] immutable */
struct rtentry {
	struct rtprefix	 rt_prefix;	/* [I] */
	struct in_addr	 rt_gw;		/* [I] INADDR_ANY: on link */
	struct ifnet	*rt_ifp;	/* [I] */
};

static struct rtable *route_table;	/* [I] */
/* Version of the table: incremented after each change. */
static atomic_u64 route_changes = 1;

/*
 * A thread's cache of routes, because consecutive packets often share a
 * destination.  Entries are valid until the table changes.
 */
#define	ROUTE_HINT_BITS	4
struct route_hint {
	struct in_addr	 dst;
	uint64_t	 changes;	/* 0: empty */
	struct nhop	 nh;
};

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
	if (rtable_insert(route_table, &rt->rt_prefix) == NULL) {
		atomic_fetchadd_u64(&route_changes, 1);
		return (0);
	}
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
	atomic_fetchadd_u64(&route_changes, 1);
	epoch_call(kfree, container_of(found, struct rtentry, rt_prefix));
	return (0);
}

static struct route_hint *
route_hint(struct in_addr dst)
{
	return (thread_hint(NET_ROUTES, sizeof(struct route_hint),
	    ROUTE_HINT_BITS, dst.s_addr));
}

/* Evaluated when an entry is cached, not for each packet. */
static bool
is_other_host(const struct ifnet *ifp, struct in_addr dst)
{
	const uint32_t a = ntohl(dst.s_addr);

	return (!IN_MULTICAST(a) && a >> 24 != IN_LOOPBACKNET &&
	    if_byaddr(dst) == NULL && !if_isbroadcast(ifp, dst));
}

NOINLINE static bool
lookup(struct in_addr dst, struct nhop *nh)
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
		nh->nh_host = is_other_host(rt->rt_ifp, dst);
	}
	epoch_exit();
	return (found != NULL);
}

__hot bool
route_lookup(struct in_addr dst, struct nhop *nh)
{
	struct route_hint *rh = route_hint(dst);
	uint64_t changes = atomic_load_acq_u64(&route_changes);

	if (__predict_false(rh->changes != changes) ||
	    __predict_false(rh->dst.s_addr != dst.s_addr)) {
		if (!lookup(dst, &rh->nh)) {
			rh->changes = 0;
			return (false);
		}
		rh->dst = dst;
		rh->changes = changes;
	}
	*nh = rh->nh;
	return (true);
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

/* Whether an earlier address of the interface has the same subnet. */
static bool
subnet_before(const struct ifnet *ifp, unsigned n)
{
	const struct if_inet *in = ifp->if_inet;

	for (unsigned i = 0; i < n; i++)
		if (in[i].mask.s_addr == in[n].mask.s_addr &&
		    ((in[i].addr.s_addr ^ in[n].addr.s_addr) &
		    in[n].mask.s_addr) == 0)
			return (true);
	return (false);
}

int
route_subnets(struct ifnet *ifp)
{
	static const struct in_addr onlink = { INADDR_ANY };
	int error = 0;

	for (unsigned i = 0; i < ifp->if_ninet && error == 0; i++)
		if (!subnet_before(ifp, i))
			error = route_add(ifp->if_inet[i].addr,
			    inet_masklen(ifp->if_inet[i].mask), onlink, ifp);
	return (error);
}

int
route_attach(void)
{
	struct ifnet *ifp;
	int error = 0;

	for (ifp = ifnet_list; ifp != NULL && error == 0; ifp = ifp->if_next)
		error = route_subnets(ifp);
	if (error != 0)
		console("route: two interfaces on one subnet");
	return (error);
}

/* The IPv4 address of a mapped address. */
static struct in_addr
unmap(const struct in6_addr *a)
{
	return ((struct in_addr){ a->s6_addr32[3] });
}

static int
family_add(const struct in6_addr *dst, unsigned plen,
    const struct in6_addr *gw)
{
	return (route_add(unmap(dst), plen, unmap(gw), NULL));
}

static int
family_delete(const struct in6_addr *dst, unsigned plen)
{
	return (route_delete(unmap(dst), plen));
}

static bool
family_gateway(const struct in6_addr *dst, unsigned plen, struct in6_addr *gw)
{
	struct in_addr a;

	if (!route_gateway(unmap(dst), plen, &a))
		return (false);
	gw->s6_addr32[3] = a.s_addr;
	return (true);
}

static bool
family_lookup(const struct in6_addr *dst, struct in6_addr *gw,
    struct ifnet **ifp)
{
	struct nhop nh;

	if (!route_lookup(unmap(dst), &nh))
		return (false);
	gw->s6_addr32[3] = nh.nh_gw.s_addr;
	*ifp = nh.nh_ifp;
	return (true);
}

static const struct route_family route_family = {
	.rf_command = "route",
	.rf_domain = AF_INET,
	.rf_any = { .s6_addr = { [10] = 0xff, 0xff } },
	.rf_subnet = "10.2.0.0/16",
	.rf_gwname = "10.1.0.1",
	.rf_add = family_add,
	.rf_delete = family_delete,
	.rf_gateway = family_gateway,
	.rf_show = route_show,
	.rf_lookup = family_lookup,
};

void
route_init(void)
{
	route_table = rtable_create(32);
	route_config_init();
	route_family_register(&route_family);
}
