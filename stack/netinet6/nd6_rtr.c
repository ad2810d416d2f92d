/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Router discovery of a host (RFC 4861 sections 6.3 and 8.3): solicits
 * routers, accepts advertisements on interfaces configured for it, and
 * redirects.
 */
#include <arpa/inet.h>
#include <string.h>

#include "kern/lock.h"
#include "netinet6/ip6_private.h"

#define	SOLICIT_INTERVAL	(4 * NSEC_PER_SEC)
#define	PREFIXES_MAX		256	/* max on-link subnets of all interfaces */
#define	REDIRECTS_MAX		64
#define	REDIRECT_LIFETIME	600	/* seconds */

static struct mtx router_lock;

/* An advertised prefix or redirect, and its lifetime. [r] router_lock */
struct advertised {
	struct in6_addr	 prefix GUARDED_BY(router_lock);	/* [r] */
	unsigned	 plen GUARDED_BY(router_lock);	/* [r] */
	/* [r] NULL: the slot is free */
	struct ifnet	*ifp GUARDED_BY(router_lock);
	nsec_t		 expires GUARDED_BY(router_lock);	/* [r] */
};

/* [r] */
static struct advertised prefixes[PREFIXES_MAX] GUARDED_BY(router_lock);
/* [r] */
static struct advertised redirects[REDIRECTS_MAX] GUARDED_BY(router_lock);
static nsec_t next_solicit; /* used only by the clock thread */

void
nd6_router_init(void)
{
	mtx_init(&router_lock, LC_ROUTE);
	nd6_defrouter_init();
}

static nsec_t
expiry(uint32_t seconds)
{
	return (seconds == UINT32_MAX ? NSEC_FOREVER :
	    mach_uptime() + seconds * NSEC_PER_SEC);
}

static bool
is_place_of(const struct advertised *a, const struct ifnet *ifp,
    const struct in6_addr *prefix, unsigned plen) REQUIRES(router_lock)
{
	return (a->ifp == ifp && a->plen == plen &&
	    IN6_ARE_ADDR_EQUAL(&a->prefix, prefix));
}

static void
place_free(struct advertised *a) REQUIRES(router_lock)
{
	if (a->ifp != NULL)
		(void)route6_delete(&a->prefix, a->plen, a->ifp->if_index);
	a->ifp = NULL;
}

/* Adds the route of a free place; a route of another origin is not changed. */
static void
place_fill(struct advertised *a, struct ifnet *ifp,
    const struct in6_addr *prefix, unsigned plen, const struct in6_addr *gw,
    uint32_t seconds) REQUIRES(router_lock)
{
	if (seconds > 0 && route6_add(prefix, plen, gw, ifp, RT6_AUTO) == 0)
		*a = (struct advertised){ *prefix, plen, ifp, expiry(seconds) };
}

/*
 * An on-link subnet with a lifetime.  An interface that has
 * net.inet6.ip6.maxifprefixes of them gets no other one until one expires:
 * the subnets that are in use survive a flood of advertisements.
 */
static void
prefix_update(struct ifnet *ifp, const struct in6_addr *prefix, unsigned plen,
    uint32_t seconds)
{
	struct advertised *place = NULL;
	unsigned n = 0;

	mtx_lock(&router_lock);
	for (unsigned i = 0; i < PREFIXES_MAX; i++) {
		struct advertised *a = &prefixes[i];

		if (is_place_of(a, ifp, prefix, plen)) {
			a->expires = expiry(seconds);
			goto out;
		}
		n += a->ifp == ifp;
		if (a->ifp == NULL && place == NULL)
			place = a;
	}
	if (place == NULL || n >= atomic_load_u32(&ip6_maxifprefixes))
		ND6STAT_INC(toomanyprefixes);
	else
		place_fill(place, ifp, prefix, plen, NULL, seconds);
out:
	mtx_unlock(&router_lock);
}

/*
 * A host route by gw, or on link if gw is NULL.  It replaces the one of the
 * same destination, or if the table is full the oldest redirect.
 */
static void
redirect_update(struct ifnet *ifp, const struct in6_addr *dst,
    const struct in6_addr *gw)
{
	struct advertised *place = NULL;

	mtx_lock(&router_lock);
	for (unsigned i = 0; i < REDIRECTS_MAX; i++) {
		struct advertised *a = &redirects[i];

		if (is_place_of(a, ifp, dst, 128)) {
			place = a;
			break;
		}
		if (place == NULL || a->ifp == NULL ||
		    (place->ifp != NULL && a->expires < place->expires))
			place = a;
	}
	place_free(place);
	place_fill(place, ifp, dst, 128, gw, REDIRECT_LIFETIME);
	mtx_unlock(&router_lock);
}

/* RFC 4861 section 6.3.4, RFC 4862 section 5.5.3. */
static void
prefix_option(struct ifnet *ifp, const struct nd_opt_prefix_info *pi)
{
	const unsigned plen = pi->nd_opt_pi_prefix_len;
	const uint8_t flags = pi->nd_opt_pi_flags_reserved;
	const uint32_t valid = ntohl(pi->nd_opt_pi_valid_time);
	const uint32_t preferred = ntohl(pi->nd_opt_pi_preferred_time);
	struct in6_addr prefix;

	if (plen > 128 || preferred > valid)
		return;
	prefix = in6_prefix(&pi->nd_opt_pi_prefix, plen);
	if (IN6_IS_ADDR_LINKLOCAL(&prefix) || IN6_IS_ADDR_MULTICAST(&prefix) ||
	    IN6_IS_ADDR_V4MAPPED(&prefix) || plen == 0)
		return;
	if (flags & ND_OPT_PI_FLAG_ONLINK)
		prefix_update(ifp, &prefix, plen, valid);
	if ((flags & ND_OPT_PI_FLAG_AUTO) && plen == 64)
		in6_autoconf(ifp, &prefix, preferred, valid);
}

static void
advert_option(const struct mbuf *m, const struct nd6_option *opt, void *arg)
{
	struct ifnet *ifp = arg;
	struct nd_opt_prefix_info pi;
	struct nd_opt_mtu mtu;

	if (opt->type == ND_OPT_PREFIX_INFORMATION && opt->len == sizeof(pi)) {
		m_copydata(m, opt->off, sizeof(pi), &pi);
		prefix_option(ifp, &pi);
	} else if (opt->type == ND_OPT_MTU && opt->len == sizeof(mtu)) {
		m_copydata(m, opt->off, sizeof(mtu), &mtu);
		atomic_store_u32(&ifp->if_in6->mtu,
		    ntohl(mtu.nd_opt_mtu_mtu));
	}
}

bool
nd6_router_advert(struct ifnet *ifp, struct mbuf *m, unsigned hlen)
{
	const struct in6_addr src = mtod(m, const struct ip6_hdr *)->ip6_src;
	struct nd6_lladdr ll = { .type = ND_OPT_SOURCE_LINKADDR };
	struct nd_router_advert ra;
	struct in6_ifdata *in6 = ifp->if_in6;

	if (!IN6_IS_ADDR_LINKLOCAL(&src) ||
	    m->m_pkthdr.len < hlen + sizeof(ra) ||
	    !nd6_options(m, hlen + (uint32_t)sizeof(ra), nd6_find_lladdr, &ll))
		return (false);
	if (!in6->autoconf || atomic_load_u32(&ip6_forwarding) != 0)
		return (true);
	m_copydata(m, hlen, sizeof(ra), &ra);
	ND6STAT_INC(routeradverts);
	atomic_store_u32(&in6->solicits, 0);
	if (ra.nd_ra_curhoplimit != 0)
		atomic_store_u32(&in6->hoplimit, ra.nd_ra_curhoplimit);
	/* limits: an hour, and a min interval of solicitations */
	if (ra.nd_ra_reachable != 0 && ntohl(ra.nd_ra_reachable) <= 3600000)
		atomic_store_u32(&in6->reachable, ntohl(ra.nd_ra_reachable));
	if (ntohl(ra.nd_ra_retransmit) >= 1000 &&
	    ntohl(ra.nd_ra_retransmit) <= 60000)
		atomic_store_u32(&in6->retrans, ntohl(ra.nd_ra_retransmit));
	if (ll.found)
		nd6_learn(ifp, &src, ll.addr, true);
	nd6_defrouter_update(ifp, &src, ntohs(ra.nd_ra_router_lifetime));
	(void)nd6_options(m, hlen + (uint32_t)sizeof(ra), advert_option, ifp);
	return (true);
}

/* Section 8.1: only from the current next hop of the destination. */
static bool
redirect_valid(const struct ifnet *ifp, const struct in6_addr *src,
    const struct nd_redirect *rd)
{
	struct nhop6 nh;

	if (!IN6_IS_ADDR_LINKLOCAL(src) ||
	    IN6_IS_ADDR_MULTICAST(&rd->nd_rd_dst) ||
	    in_islinklocal(&rd->nd_rd_dst) ||
	    (!IN6_IS_ADDR_LINKLOCAL(&rd->nd_rd_target) &&
	    !IN6_ARE_ADDR_EQUAL(&rd->nd_rd_target, &rd->nd_rd_dst)))
		return (false);
	return (route6_lookup(&rd->nd_rd_dst, 0, &nh) && !nh.nh_local &&
	    nh.nh_ifp == ifp && IN6_ARE_ADDR_EQUAL(&nh.nh_gw, src));
}

bool
nd6_redirect(struct ifnet *ifp, struct mbuf *m, unsigned hlen)
{
	const struct in6_addr src = mtod(m, const struct ip6_hdr *)->ip6_src;
	struct nd6_lladdr ll = { .type = ND_OPT_TARGET_LINKADDR };
	struct nd_redirect rd;
	bool onlink;

	if (m->m_pkthdr.len < hlen + sizeof(rd) ||
	    !nd6_options(m, hlen + (uint32_t)sizeof(rd), nd6_find_lladdr, &ll))
		return (false);
	m_copydata(m, hlen, sizeof(rd), &rd);
	if (!redirect_valid(ifp, &src, &rd))
		return (false);
	if (atomic_load_u32(&ip6_forwarding) != 0)
		return (true);
	ND6STAT_INC(redirects);
	onlink = IN6_ARE_ADDR_EQUAL(&rd.nd_rd_target, &rd.nd_rd_dst);
	if (ll.found)
		nd6_learn(ifp, &rd.nd_rd_target, ll.addr, !onlink);
	redirect_update(ifp, &rd.nd_rd_dst, onlink ? NULL : &rd.nd_rd_target);
	return (true);
}

static void
expire_routes(nsec_t now)
{
	mtx_lock(&router_lock);
	for (unsigned i = 0; i < PREFIXES_MAX; i++)
		if (prefixes[i].expires <= now)
			place_free(&prefixes[i]);
	for (unsigned i = 0; i < REDIRECTS_MAX; i++)
		if (redirects[i].expires <= now)
			place_free(&redirects[i]);
	mtx_unlock(&router_lock);
}

/* RFC 4861 section 6.3.7: three times, until an advertisement arrives. */
static bool
solicit_routers(struct ifnet *ifp)
{
	static const struct in6_addr allrouters =
	    { .s6_addr = { 0xff, 2, [15] = 2 } };
	struct in6_addr src;
	struct mbuf *m;

	if (atomic_load_u32(&ifp->if_in6->solicits) == 0 ||
	    !in6_selectsrc(ifp, &allrouters, &src))
		return (false);
	atomic_store_u32(&ifp->if_in6->solicits,
	    atomic_load_u32(&ifp->if_in6->solicits) - 1);
	ND6STAT_INC(routersolicits);
	m = nd6_message(ifp, ND_ROUTER_SOLICIT,
	    sizeof(struct nd_router_solicit), ND_OPT_SOURCE_LINKADDR);
	icmp6_send(ifp, m, &src, &allrouters, 255);
	return (true);
}

void
nd6_router_tick(void)
{
	const nsec_t now = mach_uptime();
	struct ifnet *ifp;

	expire_routes(now);
	nd6_defrouter_tick(now);
	if (now < next_solicit)
		return;
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (ifp->if_in6 != NULL && solicit_routers(ifp))
			next_solicit = now + SOLICIT_INTERVAL;
}
