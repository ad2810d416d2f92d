/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 routes.  Addresses of this host are routes, too, so that one lookup
 * decides between local delivery and the next hop.  The link-local subnet
 * exists once for each interface: in keys, the interface index is stored in
 * the 54 zero bits of such addresses (RFC 4291 section 2.5.6).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/epoch.h"
#include "kern/thread.h"
#include "net/if_var.h"
#include "net/route.h"
#include "net/rtable.h"
#include "netinet6/in6_hints.h"
#include "netinet6/ip6_private.h"

/* [I] immutable */
struct rt6entry {
	struct rtprefix	 rt_prefix;	/* [I] */
	struct in6_addr	 rt_dst, rt_gw;	/* [I] rt_gw: unless RT6_ONLINK */
	struct ifnet	*rt_ifp;	/* [I] */
	unsigned	 rt_flags;	/* [I] RT6_* */
};
#define	RT6_ONLINK	0x80

static struct rtable *route6_table;	/* [I] */
/* Version of the table: incremented after each change. */
static atomic_u64 route6_changes = 1;

/*
 * A thread's cache of routes, including local ones, as in net/route.c.
 * Link-local addresses are cached with their zone.
 */
#define	ROUTE6_HINT_BITS	4
struct route6_hint {
	struct in6_addr	 dst;
	uint64_t	 changes;	/* 0: empty */
	struct nhop6	 nh;
};

static struct rtprefix
route6_prefix(const struct in6_addr *dst, unsigned plen, uint32_t zone)
{
	struct rtkey key = rtkey_inet6(dst);

	if (IN6_IS_ADDR_LINKLOCAL(dst))
		key.w[0] |= zone;
	return (rtprefix_make(key, plen));
}

struct in6_addr
in6_prefix(const struct in6_addr *addr, unsigned plen)
{
	struct in6_addr a = *addr;

	KASSERT(plen <= 128, ("in6_prefix: /%u", plen));
	for (unsigned i = 0; i < 16; i++) {
		unsigned bits = plen > i * 8 ? plen - i * 8 : 0;

		if (bits < 8)
			a.s6_addr[i] &= (uint8_t)(0xff00 >> bits);
	}
	return (a);
}

int
route6_add(const struct in6_addr *dst, unsigned plen,
    const struct in6_addr *gw, struct ifnet *ifp, unsigned flags)
{
	struct rt6entry *rt;
	struct nhop6 nh;

	if (ifp == NULL && gw != NULL && route6_lookup(gw, 0, &nh) &&
	    IN6_ARE_ADDR_EQUAL(&nh.nh_gw, gw) && !nh.nh_local)
		ifp = nh.nh_ifp;
	if (ifp == NULL)
		return (ENETUNREACH);
	rt = kmalloc(sizeof(*rt));
	rt->rt_prefix = route6_prefix(dst, plen, ifp->if_index);
	rt->rt_dst = in6_prefix(dst, plen);
	rt->rt_ifp = ifp;
	rt->rt_flags = flags | (gw == NULL ? RT6_ONLINK : 0);
	if (gw != NULL)
		rt->rt_gw = *gw;
	if (rtable_insert(route6_table, &rt->rt_prefix) == NULL) {
		atomic_fetchadd_u64(&route6_changes, 1);
		return (0);
	}
	kfree(rt);
	return (EEXIST);
}

int
route6_delete(const struct in6_addr *dst, unsigned plen, uint32_t zone)
{
	struct rtprefix prefix = route6_prefix(dst, plen, zone), *found;

	found = rtable_remove(route6_table, &prefix);
	if (found == NULL)
		return (ESRCH);
	atomic_fetchadd_u64(&route6_changes, 1);
	epoch_call(kfree, container_of(found, struct rt6entry, rt_prefix));
	return (0);
}

static struct route6_hint *
route6_hint(const struct in6_addr *dst)
{
	return (thread_hint(IN6_ROUTES, sizeof(struct route6_hint),
	    ROUTE6_HINT_BITS, dst->s6_addr32[1] ^ dst->s6_addr32[2] ^
	    dst->s6_addr32[3]));
}

static bool
lookup(const struct in6_addr *dst, uint32_t zone, struct nhop6 *nh)
{
	const struct rtkey key = route6_prefix(dst, 128, zone).rp_key;
	const struct rt6entry *rt;
	const struct rtprefix *found;

	epoch_enter();
	found = rtable_lookup(route6_table, &key);
	/* only its link's route applies to a link-local address */
	if (found != NULL && IN6_IS_ADDR_LINKLOCAL(dst) && found->rp_len < 64)
		found = NULL;
	if (found != NULL) {
		rt = container_of(found, struct rt6entry, rt_prefix);
		nh->nh_ifp = rt->rt_ifp;
		nh->nh_gw = (rt->rt_flags & RT6_ONLINK) ? *dst : rt->rt_gw;
		nh->nh_local = (rt->rt_flags & RT6_LOCAL) != 0;
	}
	epoch_exit();
	return (found != NULL);
}

bool
route6_lookup(const struct in6_addr *dst, uint32_t zone, struct nhop6 *nh)
{
	struct route6_hint *rh = route6_hint(dst);
	uint64_t changes = atomic_load_acq_u64(&route6_changes);

	if (IN6_IS_ADDR_LINKLOCAL(dst))
		return (lookup(dst, zone, nh));
	if (rh->changes != changes || !IN6_ARE_ADDR_EQUAL(&rh->dst, dst)) {
		rh->changes = 0;
		if (!lookup(dst, zone, &rh->nh))
			return (false);
		rh->dst = *dst;
		rh->changes = changes;
	}
	*nh = rh->nh;
	return (true);
}

bool
route6_gateway(const struct in6_addr *dst, unsigned plen, struct in6_addr *gw)
{
	struct rtprefix prefix = route6_prefix(dst, plen, 0), *found;

	epoch_enter();
	found = rtable_exact(route6_table, &prefix);
	if (found != NULL)
		*gw = container_of(found, struct rt6entry, rt_prefix)->rt_gw;
	epoch_exit();
	return (found != NULL);
}

static void
show_entry(struct rtprefix *rp, void *arg)
{
	const struct rt6entry *rt = container_of(rp, struct rt6entry,
	    rt_prefix);
	char dst[INET6_ADDRSTRLEN], gw[INET6_ADDRSTRLEN] = "link";
	char prefix[INET6_ADDRSTRLEN + 5];

	inet_ntop(AF_INET6, &rt->rt_dst, dst, sizeof(dst));
	snprintf(prefix, sizeof(prefix), "%s/%u", dst, rp->rp_len);
	if (rt->rt_flags & RT6_LOCAL)
		strcpy(gw, "local");
	else if ((rt->rt_flags & RT6_ONLINK) == 0)
		inet_ntop(AF_INET6, &rt->rt_gw, gw, sizeof(gw));
	ctl_printf(arg, "%-30s %-26s %s%s\n", rp->rp_len > 0 ? prefix :
	    "default", gw, rt->rt_ifp->if_xname,
	    rt->rt_flags & RT6_AUTO ? " advertised" : "");
}

static void
route6_show(struct ctl_out *co)
{
	ctl_printf(co, "%-30s %-26s %s\n", "Destination", "Gateway",
	    "Interface");
	rtable_walk(route6_table, show_entry, co);
}

static int
family_add(const struct in6_addr *dst, unsigned plen,
    const struct in6_addr *gw)
{
	return (route6_add(dst, plen, gw, NULL, 0));
}

/* Routes of this host's addresses and subnets cannot be deleted. */
static int
family_delete(const struct in6_addr *dst, unsigned plen)
{
	struct in6_addr gw;

	if (!route6_gateway(dst, plen, &gw) || IN6_IS_ADDR_UNSPECIFIED(&gw))
		return (ESRCH);
	return (route6_delete(dst, plen, 0));
}

static bool
family_lookup(const struct in6_addr *dst, struct in6_addr *gw,
    struct ifnet **ifp)
{
	struct nhop6 nh;

	if (!route6_lookup(dst, 0, &nh))
		return (false);
	*gw = nh.nh_gw;
	*ifp = nh.nh_ifp;
	return (true);
}

static const struct route_family route6_family = {
	.rf_command = "route6",
	.rf_domain = AF_INET6,
	.rf_any = IN6ADDR_ANY_INIT,
	.rf_subnet = "2001:db8:2::/48",
	.rf_gwname = "2001:db8:1::1",
	.rf_add = family_add,
	.rf_delete = family_delete,
	.rf_gateway = route6_gateway,
	.rf_show = route6_show,
	.rf_lookup = family_lookup,
};

void
route6_init(void)
{
	route6_table = rtable_create(128);
	route_family_register(&route6_family);
}
