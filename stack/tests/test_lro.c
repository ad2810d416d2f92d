/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large receive offload: a router that merged segments forwards the same
 * segments, byte by byte.
 */
#include "tests/check.h"

#include <netinet/tcp.h>

#include "net/if_lro.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	SIZE	1000	/* of full segments */
#define	ACK	5000
#define	STAMP	77

struct piece {
	uint32_t	 seq, len, ack, stamp;
	uint16_t	 port;
	uint8_t		 flags, tos;
	bool		 v6;
};

static const struct piece plain = { .len = SIZE, .ack = ACK, .stamp = STAMP,
    .port = 1111, .flags = TH_ACK };

static struct tcphdr *
tcp_in(struct mbuf *m, bool v6)
{
	return ((struct tcphdr *)(void *)(m->m_data + ETHER_HDR_LEN +
	    (v6 ? IP6_HDRLEN : IP_HDRLEN)));
}

static uint32_t
tcp_sum(struct mbuf *m, bool v6)
{
	const uint32_t at = ETHER_HDR_LEN + (v6 ? IP6_HDRLEN : IP_HDRLEN);
	const uint32_t len = m->m_len - at;

	return (in_sum(m, at, len, v6 ? in6_pseudo(&ip6_of(m)->ip6_src,
	    &ip6_of(m)->ip6_dst, IPPROTO_TCP, len) :
	    in_pseudo(IP_AT(m)->ip_src, IP_AT(m)->ip_dst, IPPROTO_TCP,
	    (uint16_t)len)));
}

/* A segment with timestamps from one host to the other. */
static struct mbuf *
segment(const struct piece *p)
{
	static const uint8_t stamps[] = { 1, 1, 8, 10 };
	const uint32_t hlen = sizeof(struct tcphdr) + 12;
	struct mbuf *m = p->v6 ? packet6(0, HOST6(0), HOST6(1), IPPROTO_TCP,
	    hlen + p->len) : packet(0, "10.9.0.2", "10.9.1.2", IPPROTO_TCP,
	    hlen + p->len);
	struct tcphdr *th = tcp_in(m, p->v6);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);
	const uint32_t values[] = { htonl(p->stamp), 0 };

	*th = (struct tcphdr){ .th_sport = htons(p->port),
	    .th_dport = htons(80), .th_seq = htonl(p->seq),
	    .th_ack = htonl(p->ack), .th_off = hlen >> 2 & 0xf,
	    .th_flags = p->flags, .th_win = htons(300) };
	memcpy(th + 1, stamps, sizeof(stamps));
	memcpy((char *)(th + 1) + sizeof(stamps), values, sizeof(values));
	if (!p->v6) {
		ip->ip_off = htons(IP_DF);
		ip->ip_tos = p->tos;
		seal(ip);
	}
	th->th_sum = in_fold(tcp_sum(m, p->v6));
	return (m);
}

/*
 * Receives pieces in one burst and checks that they are forwarded unchanged and
 * in order.  Returns the number of packets that the router processed.
 */
static uint64_t
forwarded(const struct piece *pieces, size_t n)
{
	const char *total = pieces[0].v6 ? "net.inet6.ip6.stats.total" :
	    "net.inet.ip.stats.total";
	const uint64_t before = counter(total);
	struct mbuf *m, *was;

	if_lro_begin();
	for (size_t i = 0; i < n; i++)
		mem_input(mem[0], segment(&pieces[i]));
	if_lro_end();
	for (size_t i = 0; i < n; i++) {
		const bool v6 = pieces[i].v6;

		m = take_sent(1);
		was = segment(&pieces[i]);
		CHECK_EQ(m->m_len, was->m_len);
		CHECK_EQ((uint16_t)~tcp_sum(m, v6), 0);
		CHECK(memcmp(tcp_in(m, v6), tcp_in(was, v6), m->m_len -
		    ETHER_HDR_LEN - (v6 ? IP6_HDRLEN : IP_HDRLEN)) == 0);
		CHECK(v6 || in_hdrsum(IP_AT(m), IP_HDRLEN) == 0);
		CHECK(v6 || IP_AT(m)->ip_tos == pieces[i].tos);
		m_freem(was);
		m_freem(m);
	}
	CHECK_EQ(sent[1].mq_len, 0);
	return (counter(total) - before);
}

/* n consecutive full segments. */
static void
run_of(struct piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pieces[i] = plain;
		pieces[i].seq = 100 + (uint32_t)i * SIZE;
	}
}

TEST(what_follows_is_joined)
{
	struct piece p[6];

	for (int v6 = 0; v6 < 2; v6++) {
		run_of(p, nitems(p));
		for (size_t i = 0; i < nitems(p); i++)
			p[i].v6 = v6;
		p[5].len = 3;
		p[5].flags = TH_ACK | TH_PUSH;
		CHECK_EQ(forwarded(p, 6), 1);
		CHECK_EQ(forwarded(p, 3), 1);
		CHECK_EQ(forwarded(p, 1), 1);
	}
}

TEST(a_packet_is_not_longer_than_ip_allows)
{
	struct piece p[130];

	run_of(p, nitems(p));
	CHECK_EQ(forwarded(p, nitems(p)), 2);
}

TEST(push_and_a_short_segment_end_it)
{
	struct piece p[4];

	run_of(p, nitems(p));
	p[1].flags |= TH_PUSH;
	CHECK_EQ(forwarded(p, 4), 2);
	run_of(p, nitems(p));
	p[1].len = 10;
	p[2].seq = p[1].seq + 10;
	p[3].seq = p[2].seq + SIZE;
	CHECK_EQ(forwarded(p, 4), 2);
	/* a single segment is not held */
	run_of(p, 1);
	p[0].flags |= TH_PUSH;
	CHECK_EQ(forwarded(p, 1), 1);
}

TEST(what_differs_is_not_joined)
{
	struct piece p[2];

	for (int what = 0; what < 8; what++) {
		run_of(p, nitems(p));
		switch (what) {
		case 0: p[1].seq++; break;
		case 1: p[1].ack++; break;
		case 2: p[1].stamp++; break;
		case 3: p[1].tos = IPTOS_ECN_CE; break;
		case 4: p[1].flags |= 0x40; break;	/* ECE */
		case 5: p[1].flags |= TH_FIN; break;
		case 6: p[1].flags = TH_RST; break;
		case 7: p[1].len = 0; break;
		}
		CHECK_EQ(forwarded(p, 2), 2);
	}
}

TEST(connections_are_joined_each_by_itself)
{
	struct piece p[4];
	const uint64_t before = counter("net.inet.ip.stats.total");

	if_lro_begin();
	for (unsigned i = 0; i < 5 * LRO_FLOWS; i++) {
		run_of(p, nitems(p));
		p[i % 3].port += (uint16_t)(i / 3 % (2 * LRO_FLOWS));
		mem_input(mem[0], segment(&p[i % 3]));
	}
	if_lro_end();
	CHECK(counter("net.inet.ip.stats.total") - before < 5 * LRO_FLOWS);
	CHECK_EQ(sent[1].mq_len, 5 * LRO_FLOWS);
	start_over();
}

/* A damaged segment is not merged, and does not make others valid. */
TEST(checksums_are_looked_at)
{
	const uint64_t before = counter("net.inet.ip.stats.total");
	struct piece p[3];
	struct mbuf *m;

	run_of(p, nitems(p));
	if_lro_begin();
	for (unsigned i = 0; i < 3; i++) {
		m = segment(&p[i]);
		m->m_data[m->m_len - 1] ^= (char)(i == 1);
		mem_input(mem[0], m);
	}
	if_lro_end();
	CHECK_EQ(counter("net.inet.ip.stats.total") - before, 3);
	for (unsigned i = 0; i < 3; i++) {
		m = take_sent(1);
		CHECK_EQ(tcp_in(m, false)->th_seq, htonl(p[i].seq));
		CHECK_EQ((uint16_t)~tcp_sum(m, false) != 0, i == 1);
		m_freem(m);
	}
}

int
main(int argc, char **argv)
{
	boot_router6();
	mem[0]->if_lro = true;
	return (router6_main(argc, argv, fresh6));
}
