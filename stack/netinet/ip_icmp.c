/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP (RFC 792, RFC 1122 section 3.2.2, RFC 1812 section 4.3): answers echo
 * requests, sends errors at a limited rate, and reports received errors to
 * transport protocols.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/ip_private.h"
#include "netinet/raw_ip.h"

#define	ICMP_HDRLEN	8
#define	ICMP_MAXERROR	576	/* RFC 1812 section 4.3.2.3: max datagram */

struct icmpstat icmpstat COUNTERS;

static atomic_u32 icmplim = 200;
static struct pps_limit icmp_pps;	/* RFC 1812 section 4.3.2.8 */

static const struct sysctl_oid icmp_oids[] = {
	{ .oid_name = "net.inet.icmp.icmplim", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &icmplim,
	    .oid_max = 1000000,
	    .oid_descr = "max ICMP errors sent in a second" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet.icmp.stats." #name, .oid_type = CTL_U64, \
	    .oid_ptr = &icmpstat.name, .oid_descr = descr },
	ICMP_STATS(X)
#undef X
};

static bool
icmp_iserror(uint8_t type)
{
	return (type == ICMP_UNREACH || type == ICMP_SOURCEQUENCH ||
	    type == ICMP_REDIRECT || type == ICMP_TIMXCEED ||
	    type == ICMP_PARAMPROB);
}

/* RFC 1122 section 3.2.2: packets that must not cause an error. */
static bool
icmp_mayanswer(const struct mbuf *m)
{
	const struct ip *ip = mtod(m, const struct ip *);
	unsigned hlen = (unsigned)ip->ip_hl << 2;
	uint32_t dst = ntohl(ip->ip_dst.s_addr);
	uint8_t type;

	if ((m->m_flags & (M_BCAST | M_MCAST)) != 0 || IN_MULTICAST(dst) ||
	    ip->ip_src.s_addr == INADDR_ANY)
		return (false);
	if (m->m_pkthdr.rcvif != NULL &&
	    if_isbroadcast(m->m_pkthdr.rcvif, ip->ip_dst))
		return (false);
	if ((ip->ip_off & htons(IP_OFFMASK)) != 0)
		return (false);
	if (ip->ip_p == IPPROTO_ICMP) {
		if (m->m_pkthdr.len < hlen + ICMP_HDRLEN)
			return (false);
		m_copydata(m, hlen, 1, &type);
		return (!icmp_iserror(type));
	}
	return (true);
}

static void
icmp_send(struct mbuf *m, struct in_addr src, struct in_addr dst)
{
	static const struct ip_sendopts opts = { .ttl = 0 };
	struct icmp *icp = mtod(m, struct icmp *);

	KASSERT(m->m_len >= ICMP_HDRLEN, ("icmp_send: %u bytes", m->m_len));
	icp->icmp_cksum = 0;
	icp->icmp_cksum = in_fold(in_sum(m, 0, m->m_pkthdr.len, 0));
	ip_output(m, src, dst, IPPROTO_ICMP, &opts);
}

void
icmp_error(struct mbuf *m, uint8_t type, uint8_t code, uint32_t word)
{
	struct mbuf *n;
	struct icmp *icp;
	struct in_addr to, from;
	uint32_t quote;

	KASSERT(m->m_len >= IP_HDRLEN, ("icmp_error: %u bytes", m->m_len));
	if (!icmp_mayanswer(m)) {
		ICMPSTAT_INC(suppressed);
		m_freem(m);
		return;
	}
	if (pps_limited(&icmp_pps, atomic_load_u32(&icmplim))) {
		ICMPSTAT_INC(ratelimited);
		m_freem(m);
		return;
	}
	quote = m->m_pkthdr.len;
	if (quote > ICMP_MAXERROR - IP_HDRLEN - ICMP_HDRLEN)
		quote = ICMP_MAXERROR - IP_HDRLEN - ICMP_HDRLEN;
	n = m_getcl(MCLBYTES);
	n->m_data += 64;	/* room for IP and link headers */
	n->m_len = n->m_pkthdr.len = ICMP_HDRLEN + quote;
	icp = mtod(n, struct icmp *);
	memset(icp, 0, ICMP_HDRLEN);
	icp->icmp_type = type;
	icp->icmp_code = code;
	icp->icmp_gwaddr.s_addr = htonl(word);
	m_copydata(m, 0, quote, n->m_data + ICMP_HDRLEN);
	to = mtod(m, struct ip *)->ip_src;
	/*
	 * the destination, or the address of the route back (RFC 1812 section
	 * 4.3.2.4)
	 */
	from = mtod(m, struct ip *)->ip_dst;
	if (if_byaddr(from) == NULL)
		from.s_addr = INADDR_ANY;
	m_freem(m);
	ICMPSTAT_INC(sent);
	icmp_send(n, from, to);
}

/*
 * RFC 1122 section 3.2.2.6; requests to a broadcast address are ignored
 * (ibid.).
 */
static void
icmp_echo(struct mbuf *m, unsigned hlen)
{
	const struct ip *ip = mtod(m, const struct ip *);
	struct in_addr src = ip->ip_dst, dst = ip->ip_src;

	if (if_byaddr(src) == NULL &&
	    ntohl(src.s_addr) >> 24 != IN_LOOPBACKNET) {
		ICMPSTAT_INC(bcastecho);
		m_freem(m);
		return;
	}
	m_adj(m, hlen);
	m = m_pullup(m, ICMP_HDRLEN);
	KASSERT(m != NULL, ("icmp_echo: pullup of a checked length"));
	mtod(m, struct icmp *)->icmp_type = ICMP_ECHOREPLY;
	m->m_pkthdr.csum_flags = 0;
	m->m_pkthdr.tso_segsz = 0;
	ICMPSTAT_INC(echo);
	icmp_send(m, src, dst);
}

/* Errors as RFC 1122 4.2.3.9 and Linux's icmp(7) map them. */
static int
icmp_errno(uint8_t type, uint8_t code)
{
	if (type == ICMP_TIMXCEED)
		return (EHOSTUNREACH);
	if (type == ICMP_PARAMPROB)
		return (EPROTO);
	switch (code) {
	case ICMP_UNREACH_NET:
	case ICMP_UNREACH_NET_UNKNOWN:
	case ICMP_UNREACH_TOSNET:
		return (ENETUNREACH);
	case ICMP_UNREACH_PROTOCOL:
		return (ENOPROTOOPT);
	case ICMP_UNREACH_PORT:
		return (ECONNREFUSED);
	case ICMP_UNREACH_NEEDFRAG:
		return (EMSGSIZE);
	default:
		return (EHOSTUNREACH);
	}
}

static void
icmp_errinput(struct mbuf *m, unsigned hlen)
{
	uint32_t quoted = m->m_pkthdr.len - hlen - ICMP_HDRLEN;
	struct in_icmperr ie = { .quote = m };
	struct icmp icmp;
	/* A full quoted header and 8 more bytes, which contain the ports. */
	union { struct ip ip; unsigned char bytes[60 + 8]; } q;

	ICMPSTAT_INC(errors);
	m_copydata(m, hlen, ICMP_HDRLEN, &icmp);
	if (quoted < IP_HDRLEN + 8)
		goto bad;
	if (quoted > sizeof(q))
		quoted = sizeof(q);
	m_copydata(m, hlen + ICMP_HDRLEN, quoted, &q);
	if (q.ip.ip_v != IPVERSION || q.ip.ip_hl < 5 ||
	    quoted < ((uint32_t)q.ip.ip_hl << 2) + 8)
		goto bad;
	ie.type = icmp.icmp_type;
	ie.code = icmp.icmp_code;
	ie.offender = in_map(mtod(m, struct ip *)->ip_src);
	ie.off = hlen + ICMP_HDRLEN + ((uint32_t)q.ip.ip_hl << 2);
	ip_ctlinput(icmp_errno(icmp.icmp_type, icmp.icmp_code), &q.ip,
	    ntohs(icmp.icmp_nextmtu), &ie);
	m_freem(m);
	return;
bad:
	ICMPSTAT_INC(badquote);
	m_freem(m);
}

static void
icmp_input(struct mbuf *m, unsigned hlen)
{
	uint32_t len = m->m_pkthdr.len - hlen;
	uint8_t type;

	ICMPSTAT_INC(received);
	if (len < ICMP_HDRLEN) {
		ICMPSTAT_INC(tooshort);
		m_freem(m);
		return;
	}
	if ((m->m_pkthdr.csum_flags & (CSUM_VALID | CSUM_PARTIAL)) == 0 &&
	    in_fold(in_sum(m, hlen, len, 0)) != 0) {
		ICMPSTAT_INC(checksum);
		m_freem(m);
		return;
	}
	m_copydata(m, hlen, 1, &type);
	if (type == ICMP_ECHO)
		icmp_echo(m, hlen);
	else if (type == ICMP_UNREACH || type == ICMP_TIMXCEED ||
	    type == ICMP_PARAMPROB)
		icmp_errinput(m, hlen);
	else {
		if (type == ICMP_ECHOREPLY)
			raw_ping_input(m, hlen, IPPROTO_ICMP);
		else if (type == ICMP_REDIRECT)
			ip_redirect_input(m, hlen);
		m_freem(m);
	}
}

void
icmp_init(void)
{
	giant_component("icmp");
	sysctl_register(icmp_oids, nitems(icmp_oids));
	ip_redirect_init();
	ip_register(IPPROTO_ICMP, icmp_input, NULL);
}
