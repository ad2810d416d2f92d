/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly of IPv4 datagrams (RFC 791 section 3.2); ip_fragq.c has the
 * algorithm.
 */
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>

#include "netinet/in_family.h"
#include "netinet/ip_fragq.h"
#include "netinet/ip_private.h"

/* Reports the timeout to the sender (RFC 792, code 1). */
static void
reass_expired(struct mbuf *m)
{
	icmp_error(m, ICMP_TIMXCEED, ICMP_TIMXCEED_REASS, 0);
}

/* RFC 1122 section 3.3.2: 60 to 120 s; common stacks use 15 to 30. */
static const struct fragq_family reass_family = {
	.ff_lifetime = 30 * NSEC_PER_SEC,
	.ff_expired = reass_expired,
	.ff_dropped = &ipstat.fragdropped,
	.ff_timeout = &ipstat.fragtimeout,
	.ff_reassembled = &ipstat.reassembled,
	.ff_evicted = &ipstat.fragevicted,
};

struct mbuf *
ip_reass(struct mbuf *m, unsigned hlen)
{
	struct ip *ip = mtod(m, struct ip *);
	const uint16_t frag = ntohs(ip->ip_off);
	const struct fragq_key key = { .src = in_map(ip->ip_src),
	    .dst = in_map(ip->ip_dst), .id = ip->ip_id, .proto = ip->ip_p };

	IPSTAT_INC(fragments);
	m = fragq_input(&reass_family, &key, m, hlen,
	    (uint32_t)(frag & IP_OFFMASK) << 3, (frag & IP_MF) == 0);
	if (m == NULL)
		return (NULL);
	ip = mtod(m, struct ip *);
	ip->ip_len = htons((uint16_t)m->m_pkthdr.len);
	ip->ip_off = 0;
	return (m);
}
