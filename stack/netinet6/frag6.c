/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly of IPv6 datagrams (RFC 8200 section 4.5).  netinet/ip_fragq.c has
 * the queues and limits.
 */
#include <arpa/inet.h>
#include <string.h>

#include "netinet/ip_fragq.h"
#include "netinet6/ip6_private.h"

#define	UNFRAGMENTABLE_MAX	256 /* max headers before the fragment header */

static void
frag6_expired(struct mbuf *m)
{
	icmp6_error(m, ICMP6_TIME_EXCEEDED, ICMP6_TIME_EXCEED_REASSEMBLY, 0);
}

static const struct fragq_family frag6_family = {
	.ff_lifetime = 60 * NSEC_PER_SEC,
	.ff_expired = frag6_expired,
	.ff_dropped = &ip6stat.fragdropped,
	.ff_timeout = &ip6stat.fragtimeout,
	.ff_reassembled = &ip6stat.reassembled,
	.ff_evicted = &ip6stat.fragevicted,
};

/*
 * RFC 8200 section 4.5: fragments with a length that is no multiple of 8, or
 * beyond the max packet length, cause an error.  RFC 7112: the first fragment
 * must contain all headers.
 */
static bool
frag6_valid(struct mbuf *m, uint32_t off, const struct ip6_frag *fh)
{
	const uint32_t len = m->m_pkthdr.len - off - (uint32_t)sizeof(*fh);
	const uint32_t at = ntohs(fh->ip6f_offlg & IP6F_OFF_MASK);
	uint8_t nxt = fh->ip6f_nxt;

	if ((fh->ip6f_offlg & IP6F_MORE_FRAG) != 0 && (len & 7) != 0) {
		icmp6_error(m, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_HEADER,
		    offsetof(struct ip6_hdr, ip6_plen));
		return (false);
	}
	if (at + len + off - IP6_HDRLEN > IP6_MAXPAYLOAD) {
		icmp6_error(m, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_HEADER, off +
		    (uint32_t)offsetof(struct ip6_frag, ip6f_offlg));
		return (false);
	}
	if (at == 0 && ip6_upper(m, off + (uint32_t)sizeof(*fh), &nxt) == 0) {
		/* incomplete header chain */
		icmp6_error(m, ICMP6_PARAM_PROB, 3, 0);
		return (false);
	}
	return (true);
}

/* Removes the fragment header at off and links the headers around it. */
static struct mbuf *
frag6_strip(struct mbuf *m, uint32_t off, uint8_t nxt)
{
	uint8_t headers[UNFRAGMENTABLE_MAX];
	struct ip6_hdr *ip6;
	uint32_t at = IP6_HDRLEN, field = offsetof(struct ip6_hdr, ip6_nxt);

	m_copydata(m, 0, off, headers);
	while (at < off) {
		field = at;
		at += (headers[at + 1] + 1U) << 3;
	}
	headers[field] = nxt;
	m_adj(m, (int64_t)(off + sizeof(struct ip6_frag)));
	m = m_prepend(m, off);
	memcpy(m->m_data, headers, off);
	ip6 = mtod(m, struct ip6_hdr *);
	ip6->ip6_plen = htons((uint16_t)(m->m_pkthdr.len - IP6_HDRLEN));
	return (m);
}

struct mbuf *
frag6_input(struct mbuf *m, uint32_t off)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	struct fragq_key key = { .src = ip6->ip6_src, .dst = ip6->ip6_dst,
	    .zone = m->m_pkthdr.rcvif->if_index };
	struct ip6_frag fh;
	uint8_t nxt;

	IP6STAT_INC(fragments);
	if (m->m_pkthdr.len < off + sizeof(fh) || off > UNFRAGMENTABLE_MAX) {
		IP6STAT_INC(fragdropped);
		m_freem(m);
		return (NULL);
	}
	m_copydata(m, off, sizeof(fh), &fh);
	if (!frag6_valid(m, off, &fh)) {
		IP6STAT_INC(fragdropped);
		return (NULL);
	}
	if ((fh.ip6f_offlg & (IP6F_OFF_MASK | IP6F_MORE_FRAG)) == 0) {
		IP6STAT_INC(atomicfrags);
		return (frag6_strip(m, off, fh.ip6f_nxt));
	}
	key.id = fh.ip6f_ident;
	m = fragq_input(&frag6_family, &key, m, off + (uint32_t)sizeof(fh),
	    ntohs(fh.ip6f_offlg & IP6F_OFF_MASK),
	    (fh.ip6f_offlg & IP6F_MORE_FRAG) == 0);
	if (m == NULL)
		return (NULL);
	/* the first fragment determines the next header */
	m_copydata(m, off, 1, &nxt);
	return (frag6_strip(m, off, nxt));
}
