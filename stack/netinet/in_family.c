/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of either family, the operations of IPv4, and those of IPv6 that
 * need only its header (RFC 8200).
 */
#include "netinet/in_family.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/socketvar.h"
#include "netinet/ip_private.h"

struct in_family in6_family;

const struct in_family *
in_packetfamily(const struct mbuf *m)
{
	return (mtod(m, const struct ip *)->ip_v == IPVERSION ? &in4_family :
	    &in6_family);
}

size_t
in_connwords(const struct in_conninfo *c, uint64_t *words)
{
	const uint64_t ports = (uint64_t)c->lport << 16 | c->fport;

	if (IN6_IS_ADDR_V4MAPPED(&c->faddr)) {
		words[0] = (uint64_t)c->laddr.s6_addr32[3] << 32 |
		    c->faddr.s6_addr32[3];
		words[1] = ports;
		return (2);
	}
	memcpy(words, &c->laddr, sizeof(c->laddr));
	memcpy(words + 2, &c->faddr, sizeof(c->faddr));
	words[4] = ports;
	return (IN_CONNWORDS);
}

int
in_fromname(int family, const struct sockname *name, struct in_endpoint *ep)
{
	const struct sockaddr_in *sin = &name->sn_sin;
	const struct sockaddr_in6 *sin6 = &name->sn_sin6;
	/* RFC 2133 had no scope; Linux still accepts such addresses */
	const socklen_t old = offsetof(struct sockaddr_in6, sin6_scope_id);

	if (name->sn_len < (family == AF_INET ? sizeof(*sin) : old))
		return (EINVAL);
	if (name->sn_sa.sa_family != family)
		return (EAFNOSUPPORT);
	if (family == AF_INET)
		*ep = (struct in_endpoint){ in_map(sin->sin_addr),
		    sin->sin_port, 0 };
	else
		*ep = (struct in_endpoint){ sin6->sin6_addr, sin6->sin6_port,
		    name->sn_len > old && in_islinklocal(&sin6->sin6_addr) ?
		    sin6->sin6_scope_id : 0 };
	return (0);
}

int
in_bindname(int family, const struct sockname *name, struct in_endpoint *ep)
{
	struct sockname any = *name;

	/* as on Linux, bind() accepts the unspecified address of no family */
	if (family == AF_INET && name->sn_len >= sizeof(any.sn_sin) &&
	    any.sn_sa.sa_family == AF_UNSPEC &&
	    any.sn_sin.sin_addr.s_addr == INADDR_ANY)
		any.sn_sa.sa_family = AF_INET;
	return (in_fromname(family, &any, ep));
}

void
in_toname(int family, const struct in_endpoint *ep, struct sockname *name)
{
	if (family == AF_INET) {
		name->sn_len = sizeof(name->sn_sin);
		name->sn_sin = (struct sockaddr_in){ .sin_family = AF_INET,
		    .sin_port = ep->port, .sin_addr = in_unmap(&ep->addr) };
	} else {
		name->sn_len = sizeof(name->sn_sin6);
		name->sn_sin6 = (struct sockaddr_in6){
		    .sin6_family = AF_INET6, .sin6_port = ep->port,
		    .sin6_addr = ep->addr, .sin6_scope_id = ep->zone };
	}
}

static bool
in4_route(const struct in_conninfo *c, struct in6_addr *src, uint32_t *mtu)
{
	struct in_addr from;
	struct ifnet *ifp;

	if (!ip_source(in_unmap(&c->faddr), c->zone, &from, &ifp))
		return (false);
	*src = in_isany(&c->laddr) ? in_map(from) : c->laddr;
	*mtu = ifp->if_mtu;
	return (true);
}

__hot int
in4_output(struct mbuf *m, const struct in_conninfo *c, uint8_t proto,
    const struct ip_sendopts *opts)
{
	const struct in_addr src = in_unmap(&c->laddr);
	const struct in_addr dst = in_unmap(&c->faddr);
	struct ip_sendopts by;

	if (__predict_true(c->zone == 0))
		return (ip_output(m, src, dst, proto, opts));
	by = *opts;
	by.ifindex = c->zone;
	return (ip_output(m, src, dst, proto, &by));
}

__hot void
in4_endpoints(const struct mbuf *m, struct in_conninfo *c)
{
	const struct ip *ip = mtod(m, const struct ip *);

	c->laddr = in_map(ip->ip_dst);
	c->faddr = in_map(ip->ip_src);
	c->zone = 0;
}

static bool
in4_isours(const struct in_endpoint *ep, bool stream)
{
	const struct in_addr a = in_unmap(&ep->addr);

	return (if_byaddr(a) != NULL ||
	    ntohl(a.s_addr) >> 24 == IN_LOOPBACKNET ||
	    (!stream && (a.s_addr == INADDR_BROADCAST ||
	    IN_MULTICAST(ntohl(a.s_addr)) || if_hasbroadcast(a))));
}

__hot bool
in4_ismany(const struct mbuf *m, const struct in6_addr *addr)
{
	const struct in_addr a = in_unmap(addr);

	const struct ifnet *rcvif = m != NULL ? m->m_pkthdr.rcvif : NULL;

	if (__predict_false(IN_MULTICAST(ntohl(a.s_addr))) ||
	    __predict_false(a.s_addr == INADDR_BROADCAST))
		return (true);
	if (rcvif == NULL)
		return (if_mayhaveaddr(a) && if_hasbroadcast(a));
	return (__predict_false((m->m_flags & (M_BCAST | M_MCAST)) != 0) ||
	    (__predict_false(a.s_addr != rcvif->if_addr.s_addr) &&
	    if_isbroadcast(rcvif, a)));
}

static void
in4_portunreach(struct mbuf *m)
{
	icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_PORT, 0);
}

static void
in4_toobig(struct mbuf *m, uint32_t mtu)
{
	icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, mtu);
}

static struct ifnet *
in4_groupif(const struct in6_addr *group, uint32_t ifindex)
{
	return (ip_groupif(in_unmap(group), ifindex));
}

const struct in_family in4_family = {
	.af_family = AF_INET,
	.af_hdrlen = IP_HDRLEN,
	.af_minmtu = 576,		/* RFC 1122 section 3.3.3 */
	.af_any = { .s6_addr = { [10] = 0xff, 0xff } },
	.af_loopback = { .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
	.af_route = in4_route,
	.af_isours = in4_isours,
	.af_portunreach = in4_portunreach,
	.af_toobig = in4_toobig,
	.af_groupif = in4_groupif,
	.af_register = ip_register,
	.af_protoinput = ip_protoinput,
	.af_output = in4_output,
};

void
in6_endpoints(const struct mbuf *m, struct in_conninfo *c)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	const struct ifnet *rcvif = m->m_pkthdr.rcvif;

	c->laddr = ip6->ip6_dst;
	c->faddr = ip6->ip6_src;
	c->zone = rcvif != NULL &&
	    (in_islinklocal(&c->laddr) || in_islinklocal(&c->faddr)) ?
	    rcvif->if_index : 0;
}

bool
in6_ismany(const struct mbuf *m, const struct in6_addr *addr)
{
	return (IN6_IS_ADDR_MULTICAST(addr) ||
	    (m != NULL && (m->m_flags & (M_BCAST | M_MCAST)) != 0));
}

uint16_t
in6_pseudo(const struct in6_addr *src, const struct in6_addr *dst,
    uint8_t proto, uint32_t len)
{
	uint64_t sum = (uint64_t)htonl(len) + htonl(proto);

	for (unsigned i = 0; i < 4; i++)
		sum += (uint64_t)src->s6_addr32[i] + dst->s6_addr32[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((uint16_t)((sum & 0xffff) + (sum >> 16)));
}

void
in6_family_register(const struct in_family *af)
{
	in6_family = *af;
}

void
in_proto_register(uint8_t proto, pr_input_t *input, pr_ctlinput_t *ctlinput)
{
	in4_family.af_register(proto, input, ctlinput);
	in6_family.af_register(proto, input, ctlinput);
}
