/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMPv6 (RFC 4443): answers echo requests, sends errors at a limited rate,
 * and reports received errors to transport protocols.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/raw_ip.h"
#include "netinet6/ip6_private.h"

#define	ICMP6_HDRLEN	8

struct icmp6stat icmp6stat COUNTERS;

static atomic_u32 icmp6_limit = 200;
static struct pps_limit icmp6_pps;

static const struct sysctl_oid icmp6_oids[] = {
	{ .oid_name = "net.inet6.icmp6.errppslimit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &icmp6_limit,
	    .oid_max = 1000000,
	    .oid_descr = "max ICMPv6 errors sent in a second" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet6.icmp6.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &icmp6stat.name,		\
	    .oid_descr = descr },
	ICMP6_STATS(X)
#undef X
};

/* RFC 4443 section 2.4 (e): packets that must not cause an error. */
static bool
mayanswer(const struct mbuf *m, uint8_t type, uint8_t code)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	uint8_t nxt = ip6->ip6_nxt, quoted;
	uint32_t off;
	bool many;

	if (IN6_IS_ADDR_UNSPECIFIED(&ip6->ip6_src) ||
	    IN6_IS_ADDR_MULTICAST(&ip6->ip6_src))
		return (false);
	many = IN6_IS_ADDR_MULTICAST(&ip6->ip6_dst) ||
	    (m->m_flags & (M_BCAST | M_MCAST)) != 0;
	if (many && type != ICMP6_PACKET_TOO_BIG &&
	    (type != ICMP6_PARAM_PROB || code != ICMP6_PARAMPROB_OPTION))
		return (false);
	off = ip6_upper(m, IP6_HDRLEN, &nxt);
	if (off == 0 || nxt != IPPROTO_ICMPV6)
		return (true);
	if (m->m_pkthdr.len <= off)
		return (false);
	m_copydata(m, off, 1, &quoted);
	return ((quoted & ICMP6_INFOMSG_MASK) != 0 && quoted != ND_REDIRECT);
}

void
icmp6_seal(struct mbuf *m, const struct in6_addr *src,
    const struct in6_addr *dst)
{
	struct icmp6_hdr *icmp6 = mtod(m, struct icmp6_hdr *);

	icmp6->icmp6_cksum = 0;
	icmp6->icmp6_cksum = in_fold(in_sum(m, 0, m->m_pkthdr.len,
	    in6_pseudo(src, dst, IPPROTO_ICMPV6, m->m_pkthdr.len)));
}

void
icmp6_send(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *src,
    const struct in6_addr *dst, uint8_t hoplimit)
{
	icmp6_seal(m, src, dst);
	ip6_sendlink(ifp, m, src, dst, IPPROTO_ICMPV6, hoplimit);
}

/* Sends a message to c->faddr; keeps c->laddr if it is a valid source. */
static void
reply(struct mbuf *m, struct in_conninfo *c)
{
	static const struct ip_sendopts opts = { .ttl = 0 };
	uint32_t mtu;

	if (!ip6_route(c, &c->laddr, &mtu)) {
		m_freem(m);
		return;
	}
	icmp6_seal(m, &c->laddr, &c->faddr);
	ip6_output(m, c, IPPROTO_ICMPV6, &opts);
}

/*
 * The addresses of a response to m; the source is m's destination if that is
 * local (RFC 4443 section 2.2).
 */
static void
answer_endpoints(const struct mbuf *m, struct in_conninfo *c)
{
	struct nhop6 nh;

	in6_endpoints(m, c);
	if (in_islinklocal(&c->faddr))
		c->zone = m->m_pkthdr.rcvif->if_index;
	if (IN6_IS_ADDR_MULTICAST(&c->laddr) ||
	    !route6_lookup(&c->laddr, c->zone, &nh) || !nh.nh_local)
		c->laddr = in6addr_any;
}

void
icmp6_error(struct mbuf *m, uint8_t type, uint8_t code, uint32_t param)
{
	uint32_t quote = m->m_pkthdr.len;
	struct icmp6_hdr *icmp6;
	struct in_conninfo c;
	struct mbuf *n;

	KASSERT(m->m_len >= IP6_HDRLEN, ("icmp6_error: %u bytes", m->m_len));
	if (m->m_pkthdr.rcvif == NULL || !mayanswer(m, type, code)) {
		ICMP6STAT_INC(suppressed);
		m_freem(m);
		return;
	}
	if (pps_limited(&icmp6_pps, atomic_load_u32(&icmp6_limit))) {
		ICMP6STAT_INC(ratelimited);
		m_freem(m);
		return;
	}
	if (quote > IP6_MINMTU - IP6_HDRLEN - ICMP6_HDRLEN)
		quote = IP6_MINMTU - IP6_HDRLEN - ICMP6_HDRLEN;
	n = m_getcl(MCLBYTES);
	n->m_data += 64;	/* room for IP and link headers */
	n->m_len = n->m_pkthdr.len = ICMP6_HDRLEN + quote;
	icmp6 = mtod(n, struct icmp6_hdr *);
	icmp6->icmp6_type = type;
	icmp6->icmp6_code = code;
	icmp6->icmp6_data32[0] = htonl(param);
	m_copydata(m, 0, quote, n->m_data + ICMP6_HDRLEN);
	answer_endpoints(m, &c);
	m_freem(m);
	ICMP6STAT_INC(sent);
	reply(n, &c);
}

static void
icmp6_echo(struct mbuf *m, unsigned hlen)
{
	struct in_conninfo c;

	answer_endpoints(m, &c);
	if (IN6_IS_ADDR_UNSPECIFIED(&c.faddr)) {
		m_freem(m);
		return;
	}
	m_adj(m, hlen);
	m = m_pullup(m, ICMP6_HDRLEN);
	KASSERT(m != NULL, ("icmp6_echo: pullup of a checked length"));
	mtod(m, struct icmp6_hdr *)->icmp6_type = ICMP6_ECHO_REPLY;
	m->m_pkthdr.csum_flags = 0;
	m->m_pkthdr.csum_start = 0;
	m->m_pkthdr.tso_segsz = 0;
	m->m_flags &= ~(uint32_t)(M_BCAST | M_MCAST);
	ICMP6STAT_INC(echo);
	reply(m, &c);
}

/* Errors as RFC 4443 and Linux map them. */
static int
icmp6_errno(uint8_t type, uint8_t code)
{
	if (type == ICMP6_PACKET_TOO_BIG)
		return (EMSGSIZE);
	if (type == ICMP6_TIME_EXCEEDED)
		return (EHOSTUNREACH);
	if (type == ICMP6_PARAM_PROB)
		return (EPROTO);
	switch (code) {
	case ICMP6_DST_UNREACH_NOROUTE:
		return (ENETUNREACH);
	case ICMP6_DST_UNREACH_ADMIN:
		return (EACCES);
	case ICMP6_DST_UNREACH_NOPORT:
		return (ECONNREFUSED);
	default:
		return (EHOSTUNREACH);
	}
}

/*
 * Finds the connection of a quoted packet.  False: this host did not send it.
 */
static bool
quoted_packet(struct mbuf *m, uint32_t zone, struct in_conninfo *c,
    uint8_t *proto, uint8_t header[8], uint32_t *upper)
{
	struct ip6_hdr ip6;
	struct nhop6 nh;
	uint32_t off;

	if (m->m_pkthdr.len < sizeof(ip6))
		return (false);
	m_copydata(m, 0, sizeof(ip6), &ip6);
	*proto = ip6.ip6_nxt;
	if ((ip6.ip6_vfc & IP6_VERSION_MASK) != IP6_VERSION ||
	    IN6_IS_ADDR_V4MAPPED(&ip6.ip6_src) ||
	    IN6_IS_ADDR_V4MAPPED(&ip6.ip6_dst))
		return (false);
	*c = (struct in_conninfo){ .laddr = ip6.ip6_src, .faddr = ip6.ip6_dst };
	if (in_islinklocal(&c->laddr) || in_islinklocal(&c->faddr))
		c->zone = zone;
	off = ip6_upper(m, IP6_HDRLEN, proto);
	if (off == 0 || m->m_pkthdr.len < off + 8)
		return (false);
	m_copydata(m, off, 8, header);
	*upper = off;
	return (route6_lookup(&c->laddr, zone, &nh) && nh.nh_local);
}

static void
icmp6_errinput(struct mbuf *m, unsigned hlen, uint8_t type)
{
	uint32_t zone = m->m_pkthdr.rcvif->if_index, mtu;
	struct in_icmperr ie = { .quote = m,
	    .offender = mtod(m, const struct ip6_hdr *)->ip6_src };
	struct in_conninfo c;
	struct icmp6_hdr icmp6;
	uint8_t header[8], proto;

	ICMP6STAT_INC(errors);
	m_copydata(m, hlen, sizeof(icmp6), &icmp6);
	ie.type = type;
	ie.code = icmp6.icmp6_code;
	m_adj(m, (int64_t)(hlen + sizeof(icmp6)));
	if (!quoted_packet(m, zone, &c, &proto, header, &ie.off)) {
		ICMP6STAT_INC(badquote);
		m_freem(m);
		return;
	}
	mtu = ntohl(icmp6.icmp6_mtu);
	/* RFC 8201 section 4: no path has an MTU below the min */
	if (type == ICMP6_PACKET_TOO_BIG && mtu < IP6_MINMTU)
		mtu = IP6_MINMTU;
	if (type == ICMP6_PACKET_TOO_BIG) {
		ICMP6STAT_INC(pathmtu);
		in_pmtu_update(&c.faddr, c.zone, mtu);
	}
	ip6_ctlinput(proto, icmp6_errno(type, icmp6.icmp6_code), &c, header,
	    mtu, &ie);
	m_freem(m);
}

static void
icmp6_input(struct mbuf *m, unsigned hlen)
{
	uint32_t len = m->m_pkthdr.len - hlen;
	uint8_t type;

	ICMP6STAT_INC(received);
	if (len < ICMP6_HDRLEN) {
		ICMP6STAT_INC(tooshort);
		m_freem(m);
		return;
	}
	if (!in_cksum_ok(m, hlen, IPPROTO_ICMPV6)) {
		ICMP6STAT_INC(checksum);
		m_freem(m);
		return;
	}
	m_copydata(m, hlen, 1, &type);
	switch (type) {
	case ICMP6_ECHO_REQUEST:
		icmp6_echo(m, hlen);
		break;
	case ICMP6_DST_UNREACH:
	case ICMP6_PACKET_TOO_BIG:
	case ICMP6_TIME_EXCEEDED:
	case ICMP6_PARAM_PROB:
		icmp6_errinput(m, hlen, type);
		break;
	case ND_ROUTER_ADVERT:
	case ND_NEIGHBOR_SOLICIT:
	case ND_NEIGHBOR_ADVERT:
	case ND_REDIRECT:
		nd6_input(m, hlen, type);
		break;
	case MLD_LISTENER_QUERY:
	case MLD_LISTENER_REPORT:
		mld6_input(m, hlen);
		break;
	case ICMP6_ECHO_REPLY:
		raw_ping_input(m, hlen, IPPROTO_ICMPV6);
		m_freem(m);
		break;
	default:
		m_freem(m);
		break;
	}
}

void
icmp6_init(void)
{
	sysctl_register(icmp6_oids, nitems(icmp6_oids));
	ip6_register(IPPROTO_ICMPV6, icmp6_input, NULL);
}
