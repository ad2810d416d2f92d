/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large receive offload: joins consecutive TCP segments of a burst before the
 * stack processes them, so that the cost for each packet is paid once for many
 * (Menon and Zwaenepoel, "Optimizing TCP Receive Performance", 2008).
 *
 * Only segments with equal headers are joined: the same ACK number,
 * timestamps, ECN field and TTL, and one length except for the last.  The
 * result can therefore be cut into the original segments, and is marked like a
 * packet merged by a device (CSUM_PARTIAL, tso_segsz).  PSH ends a merge.
 * Segments that do not match pass at once, after those held for their
 * connection.
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>

#include "kern/thread.h"
#include "net/if_lro.h"

#define	TIMESTAMP_LEN		12	/* timestamps, if they are the only option */

static char *
ip_of(const struct mbuf *m)
{
	return (m->m_data + ETHER_HDR_LEN);
}

static struct if_lro *
lro_mine(void)
{
	return (thread_hints(NET_LRO, sizeof(struct if_lro)));
}

static struct tcphdr *
tcp_of(const struct mbuf *m, uint32_t tcp)
{
	return ((struct tcphdr *)(void *)(m->m_data + tcp));
}

/* Parses a frame: a whole IPv4 packet without options, or IPv6, with TCP. */
static bool
find_tcp(struct mbuf *m, struct lro_segment *sg)
{
	const struct ether_header *eh = mtod(m, struct ether_header *);
	const struct ip *ip = (void *)ip_of(m);
	const struct ip6_hdr *ip6 = (void *)ip_of(m);
	uint32_t len;

	sg->ls_v6 = eh->ether_type == htons(ETHERTYPE_IPV6);
	sg->ls_tcp = ETHER_HDR_LEN + (uint32_t)(sg->ls_v6 ? sizeof(*ip6) :
	    sizeof(*ip));
	if (m->m_len < sg->ls_tcp + sizeof(struct tcphdr))
		return (false);
	if (sg->ls_v6) {
		if (ip6->ip6_nxt != IPPROTO_TCP)
			return (false);
		len = (uint32_t)sizeof(*ip6) + ntohs(ip6->ip6_plen);
	} else {
		if (eh->ether_type != htons(ETHERTYPE_IP) ||
		    ip->ip_v != IPVERSION || ip->ip_hl != sizeof(*ip) >> 2 ||
		    ip->ip_p != IPPROTO_TCP || ip->ip_off != htons(IP_DF))
			return (false);
		len = ntohs(ip->ip_len);
	}
	return (m->m_pkthdr.len == ETHER_HDR_LEN + len);
}

static bool
find_segment(struct mbuf *m, struct lro_segment *sg)
{
	sg->ls_m = m;
	if (m->m_len < ETHER_HDR_LEN || !find_tcp(m, sg))
		return (false);
	sg->ls_data = sg->ls_tcp + ((uint32_t)tcp_of(m, sg->ls_tcp)->th_off << 2);
	if (sg->ls_data < sg->ls_tcp + sizeof(struct tcphdr) || sg->ls_data > m->m_len)
		return (false);
	sg->ls_len = m->m_pkthdr.len - sg->ls_data;
	return (true);
}

/* Pseudo header sum (RFC 9293 section 3.1) for len bytes of TCP. */
static uint32_t
pseudo_sum(const struct lro_segment *sg, uint32_t len)
{
	const uint32_t addresses = sg->ls_v6 ?
	    offsetof(struct ip6_hdr, ip6_src) : offsetof(struct ip, ip_src);

	return (in_sum(sg->ls_m, ETHER_HDR_LEN + addresses, sg->ls_tcp -
	    ETHER_HDR_LEN - addresses, htons(IPPROTO_TCP) +
	    htons((uint16_t)len)));
}

static bool
checksum_ok(const struct lro_segment *sg)
{
	const uint32_t len = sg->ls_m->m_pkthdr.len - sg->ls_tcp;
	struct pkthdr *ph = &sg->ls_m->m_pkthdr;

	if ((ph->csum_flags & (CSUM_VALID | CSUM_PARTIAL)) == 0 &&
	    in_fold(in_sum(sg->ls_m, sg->ls_tcp, len, pseudo_sum(sg, len))) == 0)
		ph->csum_flags |= CSUM_VALID;
	return ((ph->csum_flags & (CSUM_VALID | CSUM_PARTIAL)) != 0);
}

/* Whether the segment has data, ACK and no special flags. */
static bool
is_plain(const struct lro_segment *sg)
{
	const struct tcphdr *th = tcp_of(sg->ls_m, sg->ls_tcp);

	return ((th->th_flags & ~TH_PUSH) == TH_ACK && sg->ls_len > 0 &&
	    sg->ls_m->m_pkthdr.tso_segsz == 0 &&
	    (sg->ls_data == sg->ls_tcp + sizeof(*th) ||
	    sg->ls_data == sg->ls_tcp + sizeof(*th) + TIMESTAMP_LEN) &&
	    m_writable(sg->ls_m) && checksum_ok(sg));
}

static bool
is_same(const struct lro_segment *a, const struct lro_segment *b, uint32_t from,
    uint32_t to)
{
	return (memcmp(a->ls_m->m_data + from, b->ls_m->m_data + from,
	    to - from) == 0);
}

/* Compares addresses and ports. */
static bool
same_connection(const struct lro_segment *a, const struct lro_segment *b)
{
	const uint32_t addresses = ETHER_HDR_LEN + (uint32_t)(a->ls_v6 ?
	    offsetof(struct ip6_hdr, ip6_src) : offsetof(struct ip, ip_src));

	return (a->ls_v6 == b->ls_v6 && is_same(a, b, addresses, a->ls_tcp +
	    offsetof(struct tcphdr, th_seq)));
}

/*
 * Compares all header fields except lengths, identification, checksums,
 * sequence number, flags and window.
 */
static bool
same_headers(const struct lro_segment *a, const struct lro_segment *b)
{
	const uint32_t ip = ETHER_HDR_LEN;
	const uint32_t varies = ip + (a->ls_v6 ? offsetof(struct ip6_hdr,
	    ip6_plen) : offsetof(struct ip, ip_len));
	const uint32_t fixed = ip + (a->ls_v6 ? offsetof(struct ip6_hdr,
	    ip6_nxt) : offsetof(struct ip, ip_off));
	const uint32_t sum = ip + (a->ls_v6 ? offsetof(struct ip6_hdr,
	    ip6_src) : offsetof(struct ip, ip_sum));

	return (a->ls_data == b->ls_data && is_same(a, b, 0, varies) &&
	    is_same(a, b, fixed, sum) &&
	    is_same(a, b, a->ls_tcp + offsetof(struct tcphdr, th_ack),
	    a->ls_tcp + offsetof(struct tcphdr, th_ack) + sizeof(tcp_seq)) &&
	    is_same(a, b, a->ls_tcp + sizeof(struct tcphdr), a->ls_data));
}

/* Sets the merged packet's lengths and checksum state. */
static void
seal(const struct lro_flow *f)
{
	const struct lro_segment *sg = &f->lf_first;
	struct mbuf *m = sg->ls_m;
	const uint32_t len = m->m_pkthdr.len - ETHER_HDR_LEN;
	struct ip6_hdr *ip6 = (void *)ip_of(m);
	struct ip *ip = (void *)ip_of(m);

	if (sg->ls_v6) {
		ip6->ip6_plen = htons((uint16_t)(len - sizeof(*ip6)));
	} else {
		ip->ip_len = htons((uint16_t)len);
		ip->ip_sum = 0;
		ip->ip_sum = in_fold(in_sum(m, ETHER_HDR_LEN, sizeof(*ip), 0));
	}
	tcp_of(m, sg->ls_tcp)->th_sum = (uint16_t)pseudo_sum(sg,
	    m->m_pkthdr.len - sg->ls_tcp);
	m->m_pkthdr.csum_flags = CSUM_PARTIAL;
	m->m_pkthdr.csum_start = (uint16_t)(sg->ls_tcp - ETHER_HDR_LEN);
	m->m_pkthdr.csum_offset = offsetof(struct tcphdr, th_sum);
	m->m_pkthdr.tso_segsz = (uint16_t)sg->ls_len;
}

/* Passes the segments held for a connection. */
static void
pass(struct if_lro *lro, struct lro_flow *f)
{
	struct mbuf *m = f->lf_first.ls_m;

	if (f->lf_last != NULL)
		seal(f);
	*f = lro->lro_flows[--lro->lro_n];
	if_pass(m);
}

static void
pass_all(struct if_lro *lro)
{
	while (lro->lro_n > 0)
		pass(lro, &lro->lro_flows[0]);
}

static struct lro_flow *
find_flow(struct if_lro *lro, const struct lro_segment *sg)
{
	for (unsigned i = 0; i < lro->lro_n; i++)
		if (same_connection(&lro->lro_flows[i].lf_first, sg))
			return (&lro->lro_flows[i]);
	return (NULL);
}

static struct mbuf *
last_mbuf(struct mbuf *m)
{
	while (m->m_next != NULL)
		m = m->m_next;
	return (m);
}

/* False: the segment does not follow the held ones, or its headers differ. */
static bool
may_join(const struct lro_flow *f, const struct lro_segment *sg)
{
	const struct lro_segment *first = &f->lf_first;

	return (ntohl(tcp_of(sg->ls_m, sg->ls_tcp)->th_seq) == f->lf_next &&
	    sg->ls_len <= first->ls_len && first->ls_m->m_pkthdr.len +
	    sg->ls_len <= ETHER_HDR_LEN + IP_MAXPACKET &&
	    same_headers(first, sg) && is_plain(sg));
}

/* Appends the data to the held segments.  True: no segment may follow. */
static bool
join(struct lro_flow *f, const struct lro_segment *sg)
{
	struct tcphdr *to = tcp_of(f->lf_first.ls_m, f->lf_first.ls_tcp);
	const struct tcphdr *th = tcp_of(sg->ls_m, sg->ls_tcp);
	const bool full = sg->ls_len == f->lf_first.ls_len &&
	    (th->th_flags & TH_PUSH) == 0;
	struct mbuf *m = sg->ls_m;

	to->th_win = th->th_win;
	to->th_flags |= th->th_flags;
	m->m_data += sg->ls_data;
	m->m_len -= sg->ls_data;
	if (m->m_len == 0)
		m = m_free(m);
	if (f->lf_last == NULL)
		f->lf_last = last_mbuf(f->lf_first.ls_m);
	f->lf_last->m_next = m;
	f->lf_last = last_mbuf(m);
	f->lf_first.ls_m->m_pkthdr.len += sg->ls_len;
	f->lf_next += sg->ls_len;
	return (!full);
}

static void
hold(struct if_lro *lro, const struct lro_segment *sg)
{
	while (lro->lro_n == LRO_FLOWS)
		pass(lro, &lro->lro_flows[0]);
	lro->lro_flows[lro->lro_n++] = (struct lro_flow){ .lf_first = *sg,
	    .lf_next = ntohl(tcp_of(sg->ls_m, sg->ls_tcp)->th_seq) +
	    sg->ls_len };
}

__hot bool
if_lro_take(struct mbuf *m)
{
	struct if_lro *lro = lro_mine();
	struct lro_segment sg;
	struct lro_flow *f;

	KASSERT(lro->lro_begun, ("if_lro_take: not begun"));
	if (!find_segment(m, &sg)) {
		pass_all(lro);
		return (false);
	}
	f = find_flow(lro, &sg);
	if (f != NULL && may_join(f, &sg)) {
		if (join(f, &sg))
			pass(lro, f);
		return (true);
	}
	if (f != NULL)
		pass(lro, f);
	if ((tcp_of(m, sg.ls_tcp)->th_flags & TH_PUSH) != 0 || !is_plain(&sg))
		return (false);
	hold(lro, &sg);
	return (true);
}

void
if_lro_begin(void)
{
	struct if_lro *lro = lro_mine();

	KASSERT(!lro->lro_begun, ("if_lro_begin: begun"));
	lro->lro_begun = true;
}

void
if_lro_end(void)
{
	struct if_lro *lro = lro_mine();

	KASSERT(lro->lro_begun, ("if_lro_end: not begun"));
	lro->lro_begun = false;
	pass_all(lro);
}
