/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP redirects of IPv4.  A router reports a better first hop to a host (RFC
 * 1812 section 5.2.7.2); a host uses it for that destination for a limited
 * time (RFC 1122 section 3.2.2.2).
 */
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/callout.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "net/route.h"
#include "netinet/ip_private.h"

#define	HEEDED_MAX	64
#define	LIFETIME	(600 * NSEC_PER_SEC)
#define	INTERVAL	(10 * NSEC_PER_SEC)
#define	ICMP_HDRLEN	8

static struct mtx redirect_lock;

/* A host route learned from a redirect. [r] redirect_lock */
static struct heeded {
	struct in_addr	 dst GUARDED_BY(redirect_lock);	/* [r] */
	/* [r] 0: the slot is free */
	nsec_t		 expires GUARDED_BY(redirect_lock);
} heeded[HEEDED_MAX];

static struct callout redirect_callout;
static atomic_u32 ip_sendredirects = 1;
static atomic_u32 drop_redirect;

static const struct sysctl_oid redirect_oids[] = {
	{ .oid_name = "net.inet.ip.redirect", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip_sendredirects,
	    .oid_max = 1,
	    .oid_descr = "1: as a router, send redirects to hosts" },
	{ .oid_name = "net.inet.icmp.drop_redirect", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &drop_redirect,
	    .oid_max = 1,
	    .oid_descr = "1: as a host, ignore redirects" },
};

static void
redirect_timer(void *arg)
{
	const nsec_t now = mach_uptime();
	unsigned live = 0;

	(void)arg;
	mtx_lock(&redirect_lock);
	for (unsigned i = 0; i < HEEDED_MAX; i++) {
		if (heeded[i].expires == 0)
			continue;
		if (heeded[i].expires > now) {
			live++;
			continue;
		}
		(void)route_delete(heeded[i].dst, 32);
		heeded[i].expires = 0;
	}
	if (live > 0)
		callout_reset(&redirect_callout, INTERVAL, redirect_timer,
		    NULL);
	mtx_unlock(&redirect_lock);
}

/* The slot of a destination, else a free one, else that of the oldest. */
static struct heeded *
place_for(struct in_addr dst) REQUIRES(redirect_lock)
{
	struct heeded *place = &heeded[0];

	for (unsigned i = 0; i < HEEDED_MAX; i++) {
		if (heeded[i].expires != 0 && heeded[i].dst.s_addr == dst.s_addr)
			return (&heeded[i]);
		/* a free slot has expired before all others */
		if (heeded[i].expires < place->expires)
			place = &heeded[i];
	}
	return (place);
}

/* Adds the host route, unless an administrator configured one. */
static bool
heed(struct in_addr dst, struct in_addr gw, struct ifnet *ifp)
{
	struct heeded *h;
	bool done = false;

	mtx_lock(&redirect_lock);
	h = place_for(dst);
	if (h->expires != 0)
		(void)route_delete(h->dst, 32);
	h->expires = 0;
	done = route_add(dst, 32, gw, ifp) == 0;
	if (done) {
		h->dst = dst;
		h->expires = mach_uptime() + LIFETIME;
		if (!callout_pending(&redirect_callout))
			callout_reset(&redirect_callout, INTERVAL,
			    redirect_timer, NULL);
	}
	mtx_unlock(&redirect_lock);
	return (done);
}

/*
 * A redirect must come from the current first hop and name another host of the
 * interface's subnet; other redirects may be attacks on our traffic.
 */
static bool
redirect_valid(const struct ifnet *ifp, struct in_addr from,
    struct in_addr dst, struct in_addr gw)
{
	struct nhop nh;

	return (!IN_MULTICAST(ntohl(dst.s_addr)) && if_onlink(gw) == ifp &&
	    if_byaddr(gw) == NULL && !if_isbroadcast(ifp, gw) &&
	    route_lookup(dst, &nh) && nh.nh_ifp == ifp &&
	    nh.nh_gw.s_addr == from.s_addr && from.s_addr != dst.s_addr);
}

void
ip_redirect_input(const struct mbuf *m, unsigned hlen)
{
	struct ifnet *ifp = m->m_pkthdr.rcvif;
	struct icmp icmp;
	struct ip quoted;

	if (atomic_load_u32(&drop_redirect) != 0 ||
	    atomic_load_u32(&ip_forwarding) != 0)
		return;
	if (m->m_pkthdr.len < hlen + ICMP_HDRLEN + sizeof(quoted)) {
		ICMPSTAT_INC(badquote);
		return;
	}
	m_copydata(m, hlen, ICMP_HDRLEN, &icmp);
	m_copydata(m, hlen + ICMP_HDRLEN, sizeof(quoted), &quoted);
	if (redirect_valid(ifp, mtod(m, const struct ip *)->ip_src,
	    quoted.ip_dst, icmp.icmp_gwaddr) &&
	    heed(quoted.ip_dst, icmp.icmp_gwaddr, ifp))
		ICMPSTAT_INC(redirects);
	else
		ICMPSTAT_INC(badredirects);
}

bool
ip_redirects(const struct mbuf *m, const struct nhop *nh)
{
	const struct ip *ip = mtod(m, const struct ip *);
	const struct ifnet *ifp = nh->nh_ifp;
	const struct if_inet *in;

	if (ifp != m->m_pkthdr.rcvif || !ifp->if_ether ||
	    atomic_load_u32(&ip_sendredirects) == 0)
		return (false);
	in = if_subnet(ifp, nh->nh_gw);
	return (in != NULL && ((ip->ip_src.s_addr ^ nh->nh_gw.s_addr) &
	    in->mask.s_addr) == 0);
}

void
ip_redirect_send(const struct mbuf *m, const struct nhop *nh)
{
	const uint32_t len = m->m_pkthdr.len;

	/* the packet is forwarded; the error quotes a copy */
	icmp_error(m_pullup(m_copym(m, 0, len), IP_HDRLEN), ICMP_REDIRECT,
	    ICMP_REDIRECT_HOST, ntohl(nh->nh_gw.s_addr));
}

void
ip_redirect_init(void)
{
	mtx_init(&redirect_lock, LC_ROUTE);
	callout_init(&redirect_callout);
	sysctl_register(redirect_oids, nitems(redirect_oids));
}
