/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 input, forwarding and output, and ICMP. */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "netinet/in_family.h"
#include "tests/net.h"
#include "tests/packet.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	RIGHT	"10.9.1.2"
#define	PROTO_TEST	253	/* RFC 3692 */

static int ctl_error;
static uint32_t ctl_mtu, delivered;

static void
test_input(struct mbuf *m, unsigned hlen)
{
	CHECK_EQ(hlen, IP_HDRLEN);
	for (uint32_t k = 0; k < m->m_pkthdr.len - hlen; k++) {
		char c;

		m_copydata(m, hlen + k, 1, &c);
		CHECK_EQ(c, (char)k);
	}
	delivered = m->m_pkthdr.len - hlen;
	m_freem(m);
}

static void
test_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	(void)ie;
	(void)header;
	CHECK_EQ(in_unmap(&c->faddr).s_addr, addr(LEFT).s_addr);
	ctl_error = error;
	ctl_mtu = mtu;
}

/* One damaged field each, and the counter that must see it. */
static void
no_version(struct ip *ip)
{
	ip->ip_v = 5;
}

static void
short_header(struct ip *ip)
{
	ip->ip_hl = 4;
}

static void
header_beyond_length(struct ip *ip)
{
	ip->ip_hl = 15;
	ip->ip_len = htons(40);
}

static void
longer_than_frame(struct ip *ip)
{
	ip->ip_len = htons(200);
}

static void
multicast_source(struct ip *ip)
{
	ip->ip_src = addr("224.0.0.5");
}

static void
loopback_source(struct ip *ip)
{
	ip->ip_src = addr("127.0.0.1");
}

static void
to_nobody(struct ip *ip)
{
	ip->ip_dst = addr("0.1.2.3");
}

TEST(bad_headers_are_counted_and_dropped)
{
	static const struct {
		void		(*damage)(struct ip *);
		const char	*counter;
	} cases[] = {
		{ no_version, "net.inet.ip.stats.badvers" },
		{ short_header, "net.inet.ip.stats.badhlen" },
		{ header_beyond_length, "net.inet.ip.stats.badhlen" },
		{ longer_than_frame, "net.inet.ip.stats.toosmall" },
		{ multicast_source, "net.inet.ip.stats.badaddr" },
		{ loopback_source, "net.inet.ip.stats.badaddr" },
		{ to_nobody, "net.inet.ip.stats.cantforward" },
	};

	for (size_t i = 0; i < nitems(cases); i++) {
		struct mbuf *m = packet(0, LEFT, ROUTER, PROTO_TEST, 64);
		struct ip *ip = (void *)(m->m_data + ETHER_HDR_LEN);
		uint64_t before = counter(cases[i].counter);

		cases[i].damage(ip);
		if (ip->ip_hl >= 5)
			seal(ip);
		mem_input(mem[0], m);
		CHECK_EQ(counter(cases[i].counter), before + 1);
	}
	CHECK_EQ(sent[0].mq_len, 0);
}

/* RFC 1071: of all values of the field, one or two (0 and 0xffff) are right. */
TEST(the_sum_of_a_header_is_that_of_the_rfc)
{
	uint32_t words[15], right;
	uint64_t seed = 1;
	struct ip *ip = (struct ip *)(void *)words;

	for (unsigned hlen = 20; hlen <= 60; hlen += 8) {
		for (size_t i = 0; i < nitems(words); i++, seed += 0x9e3779b9)
			words[i] = (uint32_t)(seed * seed >> 7);
		ip->ip_sum = 0;
		right = 0;
		for (unsigned i = 0; i < hlen / 2; i++)
			right += ((const uint16_t *)(const void *)words)[i];
		right = (right & 0xffff) + (right >> 16);
		right = (right & 0xffff) + (right >> 16);
		right = ~right & 0xffff;
		CHECK_EQ(in_hdrsum(ip, hlen), right);
		for (uint32_t sum = 0; sum <= 0xffff; sum++) {
			ip->ip_sum = (uint16_t)sum;
			CHECK_EQ(in_hdrsum_ok(ip, hlen), sum % 0xffff ==
			    right % 0xffff);
		}
	}
}

TEST(a_wrong_checksum_is_dropped)
{
	struct mbuf *m = packet(0, LEFT, ROUTER, PROTO_TEST, 64);
	uint64_t before = counter("net.inet.ip.stats.badsum");

	((struct ip *)(void *)(m->m_data + ETHER_HDR_LEN))->ip_ttl++;
	mem_input(mem[0], m);
	CHECK_EQ(counter("net.inet.ip.stats.badsum"), before + 1);
	/* Frames shorter than any header. */
	for (uint32_t len = 1; len < ETHER_HDR_LEN + IP_HDRLEN; len++) {
		m = packet(0, LEFT, ROUTER, PROTO_TEST, 0);
		m->m_len = m->m_pkthdr.len = len;
		mem_input(mem[0], m);
	}
}

TEST(echo_is_answered_without_link_padding)
{
	struct mbuf *m = echo_request(ROUTER, 4), *reply;

	m->m_len = m->m_pkthdr.len += 14;	/* Ethernet's minimum */
	mem_input(mem[0], m);
	reply = take_sent(0);
	CHECK_EQ(icmp_in(reply)->icmp_type, ICMP_ECHOREPLY);
	CHECK_EQ(reply->m_pkthdr.len, ETHER_HDR_LEN + IP_HDRLEN + 8 + 4);
	CHECK_EQ(IP_AT(reply)->ip_src.s_addr, addr(ROUTER).s_addr);
	CHECK_EQ(IP_AT(reply)->ip_dst.s_addr, addr(LEFT).s_addr);
	CHECK(memcmp(((const struct ether_header *)(void *)reply->m_data)->
	    ether_dhost, HOST_MAC(0), 6) == 0);
	m_freem(reply);
}

TEST(echo_to_broadcast_is_ignored)
{
	mem_input(mem[0], echo_request("10.9.0.255", 4));
	mem_input(mem[0], echo_request("255.255.255.255", 4));
	CHECK_EQ(sent[0].mq_len, 0);
	CHECK_EQ(counter("net.inet.icmp.stats.bcastecho"), 2);
}

TEST(forwarding_counts_the_hop_and_mends_the_checksum)
{
	for (unsigned id = 0; id < 70000; id += 251) {
		struct mbuf *m = packet(0, LEFT, RIGHT, PROTO_TEST, 100);
		struct ip *ip = (void *)(m->m_data + ETHER_HDR_LEN);

		ip->ip_id = (uint16_t)id;
		ip->ip_ttl = (uint8_t)(2 + id % 250);
		seal(ip);
		mem_input(mem[0], m);
		m = take_sent(1);
		CHECK_EQ(IP_AT(m)->ip_ttl, 1 + id % 250);
		CHECK_EQ(in_hdrsum(IP_AT(m), IP_HDRLEN), 0);
		CHECK_EQ(m->m_pkthdr.len, ETHER_HDR_LEN + IP_HDRLEN + 100);
		m_freem(m);
	}
}

TEST(what_must_not_be_forwarded_stays)
{
	static const char *const pairs[][2] = {
		{ LEFT, "127.0.0.1" }, { LEFT, "224.0.0.9" },
		{ LEFT, "0.0.0.1" }, { "0.0.0.0", RIGHT },
	};
	struct mbuf *m;

	for (size_t i = 0; i < nitems(pairs); i++)
		mem_input(mem[0], packet(0, pairs[i][0], pairs[i][1],
		    PROTO_TEST, 8));
	m = packet(0, LEFT, RIGHT, PROTO_TEST, 8);
	memset(m->m_data, 255, 6);	/* link broadcast, RFC 1812 5.3.4 */
	mem_input(mem[0], m);
	set("net.inet.ip.forwarding", "0");
	mem_input(mem[0], packet(0, LEFT, RIGHT, PROTO_TEST, 8));
	set("net.inet.ip.forwarding", "1");
	CHECK_EQ(sent[0].mq_len + sent[1].mq_len, 0);
}

/* Sends m and receives the ICMP error about it. */
static void
expect_error(struct mbuf *m, uint8_t type, uint8_t code, uint32_t mtu)
{
	const struct icmp *icp;

	mem_input(mem[0], m);
	m = take_sent(0);
	icp = icmp_in(m);
	CHECK_EQ(icp->icmp_type, type);
	CHECK_EQ(icp->icmp_code, code);
	CHECK_EQ(ntohs(icp->icmp_nextmtu), mtu);
	CHECK_EQ(icp->icmp_ip.ip_src.s_addr, addr(LEFT).s_addr);
	CHECK(m->m_pkthdr.len <= ETHER_HDR_LEN + 576);	/* RFC 1812 4.3.2.3 */
	m_freem(m);
}

TEST(errors_go_back_to_the_sender)
{
	struct mbuf *m = packet(0, LEFT, RIGHT, PROTO_TEST, 100);
	struct ip *ip = (void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_ttl = 1;
	seal(ip);
	expect_error(m, ICMP_TIMXCEED, ICMP_TIMXCEED_INTRANS, 0);
	expect_error(packet(0, LEFT, "10.200.0.1", PROTO_TEST, 100),
	    ICMP_UNREACH, ICMP_UNREACH_HOST, 0);
	expect_error(packet(0, LEFT, ROUTER, PROTO_TEST + 1, 100),
	    ICMP_UNREACH, ICMP_UNREACH_PROTOCOL, 0);
	m = packet(0, LEFT, RIGHT, PROTO_TEST, 3000);
	ip = (void *)(m->m_data + ETHER_HDR_LEN);
	ip->ip_off = htons(IP_DF);
	seal(ip);
	expect_error(m, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, 1500);
}

TEST(no_error_about_errors_fragments_and_broadcasts)
{
	struct mbuf *m = echo_request("10.200.0.1", 8);
	struct ip *ip;

	((struct icmp *)(void *)(m->m_data + ETHER_HDR_LEN + IP_HDRLEN))->
	    icmp_type = ICMP_UNREACH;
	mem_input(mem[0], m);
	m = packet(0, LEFT, "10.200.0.1", PROTO_TEST, 8);
	ip = (void *)(m->m_data + ETHER_HDR_LEN);
	ip->ip_off = htons(100);
	seal(ip);
	mem_input(mem[0], m);
	mem_input(mem[0], packet(0, LEFT, "10.9.0.255", PROTO_TEST + 1, 8));
	CHECK_EQ(sent[0].mq_len, 0);
	CHECK_EQ(counter("net.inet.icmp.stats.suppressed"), 3);
}

TEST(errors_are_limited)
{
	uint64_t before = counter("net.inet.icmp.stats.ratelimited");

	set("net.inet.icmp.icmplim", "5");
	for (int i = 0; i < 100; i++)
		mem_input(mem[0], packet(0, LEFT, "10.200.0.1", PROTO_TEST, 8));
	set("net.inet.icmp.icmplim", "1000000");
	/* A new second, with a new limit, may have begun. */
	CHECK(sent[0].mq_len <= 10);
	CHECK(counter("net.inet.icmp.stats.ratelimited") >= before + 90);
}

/* An ICMP error from the host on the left about a packet of this stack. */
static void
input_error(uint8_t code, uint16_t mtu, uint32_t quoted)
{
	struct mbuf *m = echo_request(ROUTER, quoted);
	const uint32_t off = ETHER_HDR_LEN + IP_HDRLEN;
	struct icmp *icp = (void *)(m->m_data + off);

	memset(icp, 0, ICMP_MINLEN);
	icp->icmp_type = ICMP_UNREACH;
	icp->icmp_code = code;
	icp->icmp_nextmtu = htons(mtu);
	if (quoted >= IP_HDRLEN)
		icp->icmp_ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = 5,
		    .ip_p = PROTO_TEST, .ip_src = addr(ROUTER),
		    .ip_dst = addr(LEFT) };
	icp->icmp_cksum = in_fold(in_sum(m, off, m->m_len - off, 0));
	mem_input(mem[0], m);
}

TEST(protocols_hear_of_errors)
{
	uint64_t before = counter("net.inet.icmp.stats.badquote");

	input_error(ICMP_UNREACH_PORT, 0, 28);
	CHECK_EQ(ctl_error, ECONNREFUSED);
	input_error(ICMP_UNREACH_NEEDFRAG, 1280, 28);
	CHECK_EQ(ctl_error, EMSGSIZE);
	CHECK_EQ(ctl_mtu, 1280);
	input_error(ICMP_UNREACH_HOST, 0, 28);
	CHECK_EQ(ctl_error, EHOSTUNREACH);
	ctl_error = 0;
	for (uint32_t quoted = 0; quoted < 28; quoted++)
		input_error(ICMP_UNREACH_PORT, 0, quoted);
	CHECK_EQ(ctl_error, 0);
	CHECK_EQ(counter("net.inet.icmp.stats.badquote"), before + 28);
}

TEST(header_options_are_skipped)
{
	struct mbuf *m = packet(0, LEFT, RIGHT, PROTO_TEST, 60);
	struct ip *ip = (void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_hl = 7;
	memset(ip + 1, 1, 8);	/* no operation */
	seal(ip);
	mem_input(mem[0], m);
	m = take_sent(1);
	CHECK_EQ(IP_AT(m)->ip_hl, 7);
	CHECK_EQ(in_hdrsum(IP_AT(m), 28), 0);
	m_freem(m);
}

/* A packet with four bytes of options, to an address. */
static struct mbuf *
with_options(const char *dst, const char options[4])
{
	struct mbuf *m = packet(0, LEFT, dst, PROTO_TEST, 12);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_hl = 6;
	memcpy(ip + 1, options, 4);
	seal(ip);
	return (m);
}

TEST(malformed_options_and_source_routes_are_answered)
{
	static const struct {
		const char	*options;
		uint8_t		 type, code, pointer;
	} cases[] = {
		{ "\1\x44\1\0", ICMP_PARAMPROB, 0, 21 },
		{ "\1\1\7\3", ICMP_PARAMPROB, 0, 22 },
		{ "\1\1\1\7", ICMP_PARAMPROB, 0, 23 },
		{ "\x83\3\4\0", ICMP_UNREACH, ICMP_UNREACH_SRCFAIL, 0 },
		{ "\1\x89\3\4", ICMP_UNREACH, ICMP_UNREACH_SRCFAIL, 0 },
	};
	static const char *const dsts[] = { ROUTER, RIGHT };
	struct mbuf *m;

	for (size_t i = 0; i < nitems(cases) * 2; i++) {
		mem_input(mem[0], with_options(dsts[i % 2],
		    cases[i / 2].options));
		m = take_sent(0);
		CHECK_EQ(icmp_in(m)->icmp_type, cases[i / 2].type);
		CHECK_EQ(icmp_in(m)->icmp_code, cases[i / 2].code);
		CHECK_EQ(icmp_in(m)->icmp_pptr, cases[i / 2].pointer);
		CHECK_EQ(sent[1].mq_len, 0);
		m_freem(m);
	}
	CHECK_EQ(counter("net.inet.ip.stats.sourceroute"), 4);
	CHECK_EQ(counter("net.inet.ip.stats.badoptions"), 6);
	/* record route passes as it is; what follows the end is not looked at */
	mem_input(mem[0], with_options(RIGHT, "\7\3\4\0"));
	m = take_sent(1);
	CHECK(memcmp(IP_AT(m) + 1, "\7\3\4\0", 4) == 0);
	m_freem(m);
	mem_input(mem[0], with_options(RIGHT, "\0\x83\3\4"));
	m_freem(take_sent(1));
}

TEST(large_segments_are_cut_in_software)
{
	static const struct ip_sendopts opts = { .dontfrag = true };
	const uint32_t total = 10000, mss = 1448;
	struct mbuf *m = m_getcl(MMAXBYTES);
	struct tcphdr *th = mtod(m, struct tcphdr *);
	uint32_t got = 0;

	memset(m->m_data, 7, sizeof(*th) + total);
	*th = (struct tcphdr){ .th_seq = htonl(UINT32_MAX - 5000),
	    .th_off = 5, .th_flags = TH_ACK | TH_PUSH | TH_FIN,
	    .th_sum = in_pseudo(addr(ROUTER), addr(LEFT), IPPROTO_TCP,
	    sizeof(*th) + total) };
	m->m_len = m->m_pkthdr.len = sizeof(*th) + total;
	m->m_pkthdr.csum_flags = CSUM_TX | CSUM_TSO;
	m->m_pkthdr.csum_offset = offsetof(struct tcphdr, th_sum);
	m->m_pkthdr.tso_segsz = (uint16_t)mss;
	CHECK_EQ(ip_output(m, addr(ROUTER), addr(LEFT), IPPROTO_TCP, &opts), 0);
	while (got < total) {
		const struct ip *ip;
		uint32_t len;

		m = take_sent(0);
		ip = IP_AT(m);
		th = (struct tcphdr *)(void *)(m->m_data + ETHER_HDR_LEN +
		    IP_HDRLEN);
		len = ntohs(ip->ip_len) - IP_HDRLEN - (uint32_t)sizeof(*th);
		CHECK_EQ(len, total - got < mss ? total - got : mss);
		CHECK_EQ(ntohl(th->th_seq), UINT32_MAX - 5000 + got);
		CHECK_EQ(th->th_flags, got + len == total ?
		    TH_ACK | TH_PUSH | TH_FIN : TH_ACK);
		m_adj(m, ETHER_HDR_LEN);
		CHECK(in_cksum_ok(m, IP_HDRLEN, IPPROTO_TCP));
		CHECK_EQ(in_hdrsum(mtod(m, struct ip *), IP_HDRLEN), 0);
		got += len;
		m_freem(m);
	}
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(a_datagram_is_cut_and_put_together)
{
	struct mbuf *m = packet(0, LEFT, RIGHT, PROTO_TEST, 5003);
	struct ip *ip;

	mem_input(mem[0], m);
	CHECK_EQ(sent[1].mq_len, 4);
	while ((m = mbufq_dequeue(&sent[1])) != NULL) {
		CHECK(m->m_pkthdr.len <= ETHER_HDR_LEN + 1500);
		/* send it back to this stack, with that as its destination */
		ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);
		CHECK_EQ(in_hdrsum(ip, IP_HDRLEN), 0);
		ip->ip_dst = addr(ROUTER);
		seal(ip);
		memcpy(m->m_data, mem[0]->if_lladdr, 6);
		mem_input(mem[0], m);
	}
	CHECK_EQ(delivered, 5003);
}

/* Packet number n: its destination and its defects vary. */
static struct mbuf *
odd_packet(unsigned n)
{
	static const char *const dsts[] = { RIGHT, RIGHT, RIGHT, ROUTER,
	    "10.200.0.1", "10.9.1.255", "255.255.255.255", "224.0.0.9",
	    "127.0.0.1", "0.1.2.3" };
	static const char *const srcs[] = { LEFT, LEFT, LEFT, "224.0.0.1",
	    "0.0.0.0", "127.0.0.1" };
	uint32_t r = n * 2654435761u >> 8;
	struct mbuf *m = packet(0, srcs[r % nitems(srcs)],
	    dsts[r / 8 % nitems(dsts)], PROTO_TEST + 1, r % 3 == 0 ? 2000 : 30);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_ttl = (uint8_t)(n % 4);
	if (n % 11 == 0)
		ip->ip_hl = (unsigned)(n / 11 % 16);
	if (n % 7 == 0)
		ip->ip_off = htons((uint16_t)(r >> 4));
	if (n % 13 == 0)
		ip->ip_len = htons((uint16_t)(r % 300));
	if (ip->ip_hl >= 5)
		seal(ip);
	if (n % 17 == 0)
		ip->ip_sum ^= 1;
	if (n % 5 == 0)		/* Ethernet's padding */
		m->m_len = m->m_pkthdr.len += 9;
	return (m);
}

TEST(the_fast_path_does_what_the_slow_one_does)
{
	const unsigned total = 3000;
	uint64_t fast = counter("net.inet.ip.stats.fastforward");

	set("net.inet.ip.maxfragpackets", "0");
	for (unsigned n = 0; n < total; n++) {
		struct mbuf *slow, *m;
		unsigned errors;

		set("net.inet.ip.fastforwarding", "0");
		mem_input(mem[0], odd_packet(n));
		slow = mbufq_dequeue(&sent[1]);
		errors = sent[0].mq_len;
		mbufq_drain(&sent[0]);
		mbufq_drain(&sent[1]);
		set("net.inet.ip.fastforwarding", "1");
		mem_input(mem[0], odd_packet(n));
		m = mbufq_dequeue(&sent[1]);
		CHECK_EQ(m != NULL, slow != NULL);
		CHECK_EQ(sent[0].mq_len, errors);
		if (m != NULL) {
			CHECK_EQ(m->m_len, slow->m_len);
			CHECK(memcmp(m->m_data, slow->m_data, m->m_len) == 0);
		}
		m_freem(m);
		m_freem(slow);
		mbufq_drain(&sent[0]);
		mbufq_drain(&sent[1]);
	}
	set("net.inet.ip.fastforwarding", "0");
	set("net.inet.ip.maxfragpackets", "256");
	fast = counter("net.inet.ip.stats.fastforward") - fast;
	CHECK(fast > total / 50 && fast < total / 2);
}

TEST(no_route_and_no_broadcast_without_leave)
{
	static const struct ip_sendopts no = { .ttl = 1 };
	static const struct ip_sendopts leave = { .broadcast = true };
	struct in_addr any = { INADDR_ANY };

	CHECK_EQ(ip_output(m_gethdr(64), any, addr("10.200.0.1"), PROTO_TEST,
	    &no), EHOSTUNREACH);
	CHECK_EQ(ip_output(m_gethdr(64), any, addr("10.9.0.255"), PROTO_TEST,
	    &no), EACCES);
	CHECK_EQ(ip_output(m_gethdr(64), any, addr("10.9.0.255"), PROTO_TEST,
	    &leave), 0);
	CHECK_EQ(sent[0].mq_len, 1);
}

/* Broadcasts and multicasts are looped back through a queue. */
static bool
all_freed(void *before)
{
	return (counter("mbuf.outstanding") == *(uint64_t *)before);
}

int
main(int argc, char **argv)
{
	uint64_t before;
	int status;

	boot_router();
	ip_register(PROTO_TEST, test_input, test_ctlinput);
	start_over();
	before = counter("mbuf.outstanding");
	check_after = start_over;
	status = check_main(argc, argv);
	CHECK(t_until(all_freed, &before));
	stack_shutdown();
	return (status);
}
