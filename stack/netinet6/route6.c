/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 routes.  Addresses of this host are routes too, so that one look-up
 * tells whether a packet is for us and where it goes otherwise.  The
 * link-local subnet exists once for each interface: in keys, its index
 * stands in the 54 bits that such addresses have zero (RFC 4291 section
 * 2.5.6).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/epoch.h"
#include "kern/sysctl.h"
#include "net/if_private.h"
#include "net/rtable.h"
#include "netinet6/ip6_private.h"

#define	PREFIX		"route6."

/* [I] immutable */
struct rt6entry {
	struct rtprefix	 rt_prefix;	/* [I] */
	struct in6_addr	 rt_dst, rt_gw;	/* [I] rt_gw: unless RT6_ONLINK */
	struct ifnet	*rt_ifp;	/* [I] */
	unsigned	 rt_flags;	/* [I] RT6_* */
};
#define	RT6_ONLINK	0x80

static struct rtable *route6_table;	/* [I] */

/* Routes of loader.conf, until the interfaces are there. */
static struct route6_config {
	struct route6_config *next;
	struct in6_addr	 dst, gw;
	unsigned	 plen;
} *configs, **configs_tail = &configs;

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

bool
in6_parse_prefix(const char *s, struct in6_addr *addr, unsigned *plen)
{
	char text[INET6_ADDRSTRLEN], *end;
	const char *slash = strchr(s, '/');
	unsigned long n;

	if (slash == NULL || (size_t)(slash - s) >= sizeof(text))
		return (false);
	memcpy(text, s, (size_t)(slash - s));
	text[slash - s] = '\0';
	n = strtoul(slash + 1, &end, 10);
	if (inet_pton(AF_INET6, text, addr) != 1 || slash[1] < '0' ||
	    slash[1] > '9' || *end != '\0' || n > 128)
		return (false);
	*plen = (unsigned)n;
	return (true);
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
	if (rtable_insert(route6_table, &rt->rt_prefix) == NULL)
		return (0);
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
	epoch_call(kfree, container_of(found, struct rt6entry, rt_prefix));
	return (0);
}

bool
route6_lookup(const struct in6_addr *dst, uint32_t zone, struct nhop6 *nh)
{
	const struct rtkey key = route6_prefix(dst, 128, zone).rp_key;
	const struct rt6entry *rt;
	const struct rtprefix *found;

	epoch_enter();
	found = rtable_lookup(route6_table, &key);
	/* a link-local address is on its link or nowhere */
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

/* route6.default="2001:db8:1::1", route6.2001:db8::/32="2001:db8:1::1" */
static int
route6_config_set(const char *name, const char *value, char *why, size_t len)
{
	struct route6_config rc = { .plen = 0 };

	name += strlen(PREFIX);
	if (strcmp(name, "default") != 0 &&
	    !in6_parse_prefix(name, &rc.dst, &rc.plen)) {
		snprintf(why, len, "'%s' is neither default nor a subnet like "
		    "2001:db8:2::/48", name);
		return (EINVAL);
	}
	if (inet_pton(AF_INET6, value, &rc.gw) != 1 ||
	    IN6_IS_ADDR_MULTICAST(&rc.gw)) {
		snprintf(why, len, "'%s' is not the IPv6 address of a gateway",
		    value);
		return (EINVAL);
	}
	*configs_tail = kmalloc(sizeof(rc));
	**configs_tail = rc;
	configs_tail = &(*configs_tail)->next;
	return (0);
}

static int
show_gateway(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct route6_config *rc = oid->oid_ptr;

	(void)value;
	return (inet_ntop(AF_INET6, &rc->gw, buf, (socklen_t)len) != NULL ?
	    0 : EINVAL);
}

static int
route6_config_add(struct route6_config *rc)
{
	char text[INET6_ADDRSTRLEN], via[INET6_ADDRSTRLEN];
	struct sysctl_oid oid = { .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
	    .oid_ptr = rc, .oid_proc = show_gateway,
	    .oid_descr = "gateway of this route" };
	int error;

	error = route6_add(&rc->dst, rc->plen, &rc->gw, NULL, 0);
	inet_ntop(AF_INET6, &rc->dst, text, sizeof(text));
	inet_ntop(AF_INET6, &rc->gw, via, sizeof(via));
	if (error != 0)
		console("route6: %s/%u by %s: %s", text, rc->plen, via,
		    error == ENETUNREACH ? "the gateway is on no interface's "
		    "subnet" : "there is a route to this destination");
	else if (rc->plen == 0)
		sysctl_add(&oid, PREFIX "default");
	else
		sysctl_add(&oid, PREFIX "%s/%u", text, rc->plen);
	return (error);
}

int
route6_config_attach(void)
{
	struct route6_config *rc;
	int error = 0;

	for (rc = configs; rc != NULL && error == 0; rc = rc->next)
		error = route6_config_add(rc);
	return (error);
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

void
route6_show(struct ctl_out *co)
{
	ctl_printf(co, "%-30s %-26s %s\n", "Destination", "Gateway",
	    "Interface");
	rtable_walk(route6_table, show_entry, co);
}

void
route6_init(void)
{
	route6_table = rtable_create(128);
	sysctl_register_prefix(PREFIX, route6_config_set);
}
