/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 input, extension headers, fragments, forwarding and ICMPv6. */
#include "tests/check.h"

#include <errno.h>

#include "netinet/tcp_var.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	LEFT	HOST6(0)
#define	ROUTER	ROUTER6(0)
#define	RIGHT	HOST6(1)
#define	PROTO_TEST	253	/* RFC 3692 */
#define	HEADER	ICMP6_PARAMPROB_HEADER
#define	NEXTHEADER ICMP6_PARAMPROB_NEXTHEADER
#define	OPTION	ICMP6_PARAMPROB_OPTION

static uint32_t delivered;	/* length of the last packet */
static int ctl_error;
static uint32_t ctl_mtu;

static void
test_input(struct mbuf *m, unsigned hlen)
{
	delivered = m->m_pkthdr.len - hlen;
	m_freem(m);
}

static void
test_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	(void)ie;
	(void)c;
	(void)header;
	ctl_error = error;
	ctl_mtu = mtu;
}

static uint64_t
stat6(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "net.inet6.ip6.stats.%s", name);
	return (counter(full));
}

/* A packet for the router itself, with these bytes before the data. */
static struct mbuf *
with_headers(uint8_t nxt, const void *headers, uint32_t len)
{
	struct mbuf *m = packet6(0, LEFT, ROUTER, nxt, len + 16);

	memcpy(payload_of(m), headers, len);
	return (m);
}

static void
input_headers(uint8_t nxt, const void *headers, uint32_t len)
{
	delivered = 0;
	mem_input(mem[0], with_headers(nxt, headers, len));
}

TEST(echo_is_answered_from_the_address_that_was_asked)
{
	const struct in6_addr asked = addr6(ROUTER6(1));
	struct mbuf *m;

	mem_input(mem[0], echo6(0, ROUTER6(1), 100));
	m = take_sent(0);
	(void)icmp6_in(m, ICMP6_ECHO_REPLY);
	CHECK(IN6_ARE_ADDR_EQUAL(&ip6_of(m)->ip6_src, &asked));
	CHECK_EQ(m->m_pkthdr.len, ETHER_HDR_LEN + IP6_HDRLEN + 108);
	CHECK(memcmp(m->m_data, HOST_MAC(0), 6) == 0);
	m_freem(m);
	/* to all nodes: the source is a local address */
	mem_input(mem[0], echo6(0, "ff02::1", 8));
	m = take_sent(0);
	(void)icmp6_in(m, ICMP6_ECHO_REPLY);
	CHECK(!IN6_IS_ADDR_MULTICAST(&ip6_of(m)->ip6_src));
	m_freem(m);
}

TEST(damaged_packets_are_dropped_and_counted)
{
	static const struct { const char *src, *dst, *stat; } bad[] = {
		{ "ff02::2", "2001:db8::1", "badaddr" },
		{ "2001:db8::2", "::", "badaddr" },
		{ "::1", "2001:db8::1", "badaddr" },
		{ "2001:db8::2", "::1", "badaddr" },
		{ "::ffff:10.9.0.2", "2001:db8::1", "badaddr" },
		{ "2001:db8::2", "::ffff:10.9.0.1", "badaddr" },
		{ "2001:db8::2", "ff01::1", "badaddr" },
		{ "2001:db8::2", "ff02::99", "notmember" },
	};
	uint64_t before;
	struct mbuf *m;

	for (size_t i = 0; i < nitems(bad); i++) {
		before = stat6(bad[i].stat);
		mem_input(mem[0], packet6(0, bad[i].src, bad[i].dst,
		    PROTO_TEST, 8));
		CHECK_EQ(stat6(bad[i].stat), before + 1);
	}
	before = stat6("toosmall");
	for (uint32_t len = 0; len < IP6_HDRLEN + 8; len++) {
		m = packet6(0, LEFT, ROUTER, PROTO_TEST, 8);
		m_adj(m, (int64_t)len - (IP6_HDRLEN + 8));
		mem_input(mem[0], m);
	}
	CHECK_EQ(stat6("toosmall"), before + IP6_HDRLEN + 8);
	before = stat6("badvers");
	m = packet6(0, LEFT, ROUTER, PROTO_TEST, 8);
	ip6_of(m)->ip6_vfc = 0x45;
	mem_input(mem[0], m);
	CHECK_EQ(stat6("badvers"), before + 1);
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(link_padding_is_cut_off)
{
	struct mbuf *m = packet6(0, LEFT, ROUTER, PROTO_TEST, 40);

	ip6_of(m)->ip6_plen = htons(30);
	mem_input(mem[0], m);
	CHECK_EQ(delivered, 30);
}

TEST(headers_are_walked_to_the_upper_protocol)
{
	/*
	 * hop-by-hop, destination, routing with no segments left, destination
	 */
	static const uint8_t chain[] = {
		IPPROTO_DSTOPTS, 0, IP6OPT_PADN, 4, 0, 0, 0, 0,
		IPPROTO_ROUTING, 0, IP6OPT_ROUTER_ALERT, 2, 0, 0, IP6OPT_PADN,
		    0,
		IPPROTO_DSTOPTS, 2, 4, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		PROTO_TEST, 0, 0x1e, 4, 1, 2, 3, 4,	/* unknown: skip */
	};

	input_headers(IPPROTO_HOPOPTS, chain, sizeof(chain));
	CHECK_EQ(delivered, 16);
	CHECK_EQ(sent[0].mq_len, 0);
}

/* RFC 8200 section 4.2: the two highest bits say what to do. */
TEST(an_option_nobody_knows_is_treated_as_it_says)
{
	static const struct {
		uint8_t		 type;
		bool		 multicast, delivered, answered;
	} cases[] = {
		{ 0x1e, false, true, false }, { 0x5e, false, false, false },
		{ 0x9e, false, false, true }, { 0xde, false, false, true },
		{ 0x9e, true, false, true }, { 0xde, true, false, false },
	};

	for (size_t i = 0; i < nitems(cases); i++) {
		uint8_t opts[8] = { PROTO_TEST, 0, cases[i].type, 4 };
		struct mbuf *m = with_headers(IPPROTO_DSTOPTS, opts,
		    sizeof(opts));

		if (cases[i].multicast)
			ip6_of(m)->ip6_dst = addr6("ff02::1");
		delivered = 0;
		mem_input(mem[0], m);
		CHECK_EQ(delivered, cases[i].delivered ? 16 : 0);
		CHECK_EQ(sent[0].mq_len, cases[i].answered);
		if (cases[i].answered)
			expect_error6(0, ICMP6_PARAM_PROB, OPTION,
			    IP6_HDRLEN + 2);
	}
}

TEST(headers_that_cannot_be_are_answered)
{
	static const uint8_t hopbyhop_late[] = { IPPROTO_HOPOPTS, 0,
	    IP6OPT_PADN, 4, 0, 0, 0, 0, PROTO_TEST, 0, 1, 4, 0, 0, 0, 0 };
	static const uint8_t source_route[] = { PROTO_TEST, 2, 0, 1, 0, 0, 0,
	    0, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 };
	static const uint8_t unknown[] = { 254, 0, IP6OPT_PADN, 4, 0, 0, 0, 0 };

	input_headers(IPPROTO_DSTOPTS, hopbyhop_late, sizeof(hopbyhop_late));
	expect_error6(0, ICMP6_PARAM_PROB, NEXTHEADER, IP6_HDRLEN);
	input_headers(IPPROTO_ROUTING, source_route, sizeof(source_route));
	expect_error6(0, ICMP6_PARAM_PROB, HEADER, IP6_HDRLEN + 2);
	input_headers(254, unknown, 0);
	expect_error6(0, ICMP6_PARAM_PROB, NEXTHEADER, 6);
	input_headers(IPPROTO_DSTOPTS, unknown, sizeof(unknown));
	expect_error6(0, ICMP6_PARAM_PROB, NEXTHEADER, IP6_HDRLEN);
	/* "no next header": nothing to do */
	input_headers(IPPROTO_NONE, unknown, 0);
	CHECK_EQ(sent[0].mq_len, 0);
	CHECK_EQ(delivered, 0);
}

TEST(headers_beyond_the_limits_are_dropped)
{
	static const uint8_t cut[] = { PROTO_TEST, 200, 1, 4, 0, 0, 0, 0 };
	static const uint8_t overrun[] = { PROTO_TEST, 0, 0x1e, 5, 0, 0, 0, 0 };
	static const uint8_t padding[16] = { PROTO_TEST, 1, 1, 6, 0, 0, 0, 0,
	    0, 0, 1, 4, 0, 0, 0, 0 };
	uint8_t many[8 * 10], options[8 * 3] = { PROTO_TEST, 2 };

	input_headers(IPPROTO_DSTOPTS, cut, sizeof(cut));
	CHECK_EQ(delivered, 0);
	input_headers(IPPROTO_DSTOPTS, overrun, sizeof(overrun));
	CHECK_EQ(delivered, 0);
	input_headers(IPPROTO_DSTOPTS, padding, sizeof(padding));
	CHECK_EQ(delivered, 0);
	for (unsigned i = 0; i < 10; i++)
		memcpy(many + i * 8, (uint8_t[8]){ i < 9 ? IPPROTO_DSTOPTS :
		    PROTO_TEST, 0, 1, 4 }, 8);
	input_headers(IPPROTO_DSTOPTS, many, sizeof(many));
	CHECK_EQ(delivered, 0);
	input_headers(IPPROTO_DSTOPTS, many + 16, sizeof(many) - 16);
	CHECK_EQ(delivered, 16);
	for (unsigned i = 0; i < 11; i++)
		memcpy(options + 2 + i * 2, (uint8_t[2]){ 0x1e, 0 }, 2);
	input_headers(IPPROTO_DSTOPTS, options, sizeof(options));
	CHECK_EQ(delivered, 0);
	CHECK_EQ(sent[0].mq_len, 0);
}

/* Bytes [off, off + len) of a datagram, in a fragment. */
static struct mbuf *
fragment(uint32_t id, uint32_t off, uint32_t len, bool more, uint8_t nxt)
{
	struct mbuf *m = packet6(0, LEFT, ROUTER, IPPROTO_FRAGMENT, 8 + len);
	struct ip6_frag fh = { .ip6f_nxt = nxt, .ip6f_ident = htonl(id),
	    .ip6f_offlg = htons((uint16_t)(off | more)) };

	memcpy(payload_of(m), &fh, sizeof(fh));
	return (m);
}

static uint32_t
input_fragment(uint32_t id, uint32_t off, uint32_t len, bool more)
{
	delivered = 0;
	mem_input(mem[0], fragment(id, off, len, more, PROTO_TEST));
	return (delivered);
}

TEST(fragments_are_put_together_in_any_order)
{
	CHECK_EQ(input_fragment(1, 800, 100, false), 0);
	CHECK_EQ(input_fragment(1, 400, 400, true), 0);
	CHECK_EQ(input_fragment(1, 400, 400, true), 0);	/* twice is nothing */
	CHECK_EQ(input_fragment(1, 0, 400, true), 900);
}

/* RFC 5722: the whole datagram is dropped. */
TEST(overlapping_fragments_are_an_attack)
{
	CHECK_EQ(input_fragment(2, 0, 400, true), 0);
	CHECK_EQ(input_fragment(2, 392, 400, true), 0);
	CHECK_EQ(input_fragment(2, 400, 400, true), 0);
	CHECK_EQ(input_fragment(2, 800, 8, false), 0);
}

/*
 * RFC 6946: an atomic fragment is processed alone, even if others have its
 * identification.
 */
TEST(an_atomic_fragment_is_a_packet_of_its_own)
{
	CHECK_EQ(input_fragment(3, 0, 400, true), 0);
	CHECK_EQ(input_fragment(3, 0, 99, false), 99);
	CHECK_EQ(input_fragment(3, 400, 8, false), 408);
}

TEST(fragments_that_cannot_be_are_answered)
{
	CHECK_EQ(input_fragment(4, 0, 401, true), 0);
	expect_error6(0, ICMP6_PARAM_PROB, HEADER, 4);	/* payload length */
	CHECK_EQ(input_fragment(4, 65528, 100, false), 0);
	expect_error6(0, ICMP6_PARAM_PROB, HEADER, IP6_HDRLEN + 2);
	/* RFC 7112: the first has the headers up to the upper protocol's */
	mem_input(mem[0], fragment(5, 0, 8, true, IPPROTO_DSTOPTS));
	expect_error6(0, ICMP6_PARAM_PROB, 3, 0);
}

TEST(what_stays_incomplete_is_given_up_and_told)
{
	uint64_t before;

	t_sleep(65 * 1000);	/* fragments of other tests */
	before = stat6("fragtimeout");
	CHECK_EQ(input_fragment(6, 0, 400, true), 0);
	CHECK_EQ(input_fragment(7, 400, 400, true), 0);
	t_sleep(58 * 1000);
	learn_host6(0, LEFT);
	start_over();
	t_sleep(4 * 1000);
	CHECK_EQ(stat6("fragtimeout"), before + 2);
	expect_error6(0, ICMP6_TIME_EXCEEDED, ICMP6_TIME_EXCEED_REASSEMBLY, 0);
}

TEST(a_packet_is_forwarded_with_one_hop_less)
{
	struct mbuf *m;

	mem_input(mem[0], packet6(0, LEFT, RIGHT, PROTO_TEST, 100));
	m = take_sent(1);
	CHECK_EQ(ip6_of(m)->ip6_hlim, 63);
	CHECK(memcmp(m->m_data, HOST_MAC(1), 6) == 0);
	CHECK_EQ(m->m_pkthdr.len, ETHER_HDR_LEN + IP6_HDRLEN + 100);
	m_freem(m);
}

TEST(what_cannot_be_forwarded_is_told)
{
	struct mbuf *m = packet6(0, LEFT, RIGHT, PROTO_TEST, 100);

	ip6_of(m)->ip6_hlim = 1;
	mem_input(mem[0], m);
	expect_error6(0, ICMP6_TIME_EXCEEDED, ICMP6_TIME_EXCEED_TRANSIT, 0);
	mem_input(mem[0], packet6(0, LEFT, "2001:db8:7::1", PROTO_TEST, 9));
	expect_error6(0, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE, 0);
	mem_input(mem[0], packet6(0, LEFT, RIGHT, PROTO_TEST, 1461));
	expect_error6(0, ICMP6_PACKET_TOO_BIG, 0, 1500);
	mem_input(mem[0], packet6(0, "fe80::2", RIGHT, PROTO_TEST, 9));
	m = take_sent(0);	/* neighbour solicitation first */
	(void)icmp6_in(m, ND_NEIGHBOR_SOLICIT);
	m_freem(m);
	CHECK_EQ(sent[1].mq_len, 0);
}

TEST(nothing_link_local_or_from_nowhere_is_forwarded)
{
	const uint64_t before = stat6("cantforward");

	mem_input(mem[0], packet6(0, LEFT, "fe80::77", PROTO_TEST, 9));
	mem_input(mem[0], packet6(0, "::", RIGHT, IPPROTO_ICMPV6, 9));
	CHECK_EQ(stat6("cantforward"), before + 2);
	set("net.inet6.ip6.forwarding", "0");
	mem_input(mem[0], packet6(0, LEFT, RIGHT, PROTO_TEST, 9));
	set("net.inet6.ip6.forwarding", "1");
	CHECK_EQ(stat6("cantforward"), before + 3);
	CHECK_EQ(sent[0].mq_len + sent[1].mq_len, 0);
}

/* RFC 4443 section 2.4 (e) */
TEST(no_error_about_errors_and_multicast)
{
	struct mbuf *m = packet6(0, LEFT, RIGHT, IPPROTO_ICMPV6, 48);

	payload_of(m)[0] = ICMP6_DST_UNREACH;
	ip6_of(m)->ip6_hlim = 1;
	mem_input(mem[0], m);
	mem_input(mem[0], packet6(0, LEFT, "ff02::1", 254, 9));
	mem_input(mem[0], packet6(0, "::", ROUTER, 254, 9));
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(errors_are_sent_at_a_limited_rate)
{
	unsigned n = 0;

	t_sleep(2000);		/* a new second */
	fresh6();
	set("net.inet6.icmp6.errppslimit", "5");
	for (unsigned i = 0; i < 20; i++)
		mem_input(mem[0], packet6(0, LEFT, ROUTER, 254, 9));
	set("net.inet6.icmp6.errppslimit", "1000000");
	for (; sent[0].mq_len > 0; n++)
		m_freem(take_sent(0));
	CHECK_EQ(n, 5);
}

/* An error about a packet that the router sent to the right. */
static void
input_error(uint8_t type, uint8_t code, uint32_t param, uint32_t quoted)
{
	struct mbuf *m = packet6(1, RIGHT, ROUTER, IPPROTO_ICMPV6, 8 + quoted);
	struct icmp6_hdr icmp6 = { .icmp6_type = type, .icmp6_code = code,
	    .icmp6_data32 = { htonl(param) } };
	struct ip6_hdr ours = { .ip6_src = addr6(ROUTER),
	    .ip6_dst = addr6(RIGHT) };

	ours.ip6_flow = htonl(6U << 28);
	ours.ip6_nxt = PROTO_TEST;
	memcpy(payload_of(m), &icmp6, sizeof(icmp6));
	memcpy(payload_of(m) + 8, &ours, quoted < sizeof(ours) ? quoted :
	    sizeof(ours));
	seal6(m, 0);
	ctl_error = 0;
	mem_input(mem[1], m);
}

TEST(protocols_hear_of_errors)
{
	static const struct { uint8_t type, code; int error; } cases[] = {
		{ ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT, ECONNREFUSED },
		{ ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADMIN, EACCES },
		{ ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE, ENETUNREACH },
		{ ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR, EHOSTUNREACH },
		{ ICMP6_TIME_EXCEEDED, 0, EHOSTUNREACH },
		{ ICMP6_PARAM_PROB, 1, EPROTO },
	};
	uint64_t before = counter("net.inet6.icmp6.stats.badquote");

	for (size_t i = 0; i < nitems(cases); i++) {
		input_error(cases[i].type, cases[i].code, 0, 48);
		CHECK_EQ(ctl_error, cases[i].error);
	}
	for (uint32_t quoted = 0; quoted < 48; quoted++) {
		input_error(ICMP6_DST_UNREACH, 4, 0, quoted);
		CHECK_EQ(ctl_error, 0);
	}
	CHECK_EQ(counter("net.inet6.icmp6.stats.badquote"), before + 48);
}

/* RFC 8201: the path is narrower; what we send is cut to fit. */
TEST(a_path_tells_its_mtu)
{
	const struct in_conninfo c = { .laddr = addr6(ROUTER),
	    .faddr = addr6(RIGHT) };
	static const struct ip_sendopts dontfrag = { .dontfrag = true };
	static const struct ip_sendopts cut = { .dontfrag = false };
	struct mbuf *m = m_getcl(MCLBYTES);
	uint32_t got = 0;

	input_error(ICMP6_PACKET_TOO_BIG, 0, 1400, 48);
	CHECK_EQ(ctl_error, EMSGSIZE);
	CHECK_EQ(ctl_mtu, 1400);
	input_error(ICMP6_PACKET_TOO_BIG, 0, 100, 48);
	CHECK_EQ(ctl_mtu, IP6_MINMTU);
	/* the path limits what is sent, not what can be received */
	CHECK_EQ(tcp_offermss(&c, 0), 1440);
	m->m_data += 64;
	m->m_len = m->m_pkthdr.len = 1300;
	CHECK_EQ(ip6_output(m_copym(m, 0, 1300), &c, PROTO_TEST, &dontfrag),
	    EMSGSIZE);
	CHECK_EQ(ip6_output(m, &c, PROTO_TEST, &cut), 0);
	for (unsigned i = 0; i < 2; i++) {
		m = take_sent(1);
		CHECK_EQ(ip6_of(m)->ip6_nxt, IPPROTO_FRAGMENT);
		CHECK(m->m_pkthdr.len <= ETHER_HDR_LEN + IP6_MINMTU);
		got += ntohs(ip6_of(m)->ip6_plen) - 8;
		m_freem(m);
	}
	CHECK_EQ(got, 1300);
	t_sleep(601 * 1000);	/* the old MTU is tried again */
	fresh6();
	m = m_gethdr(64);
	m->m_next = m_getcl(MCLBYTES);
	m->m_next->m_len = m->m_pkthdr.len = 1300;
	CHECK_EQ(ip6_output(m, &c, PROTO_TEST, &dontfrag), 0);
	CHECK_EQ(sent[1].mq_len, 1);
}

TEST(sums_of_udp_are_not_optional)
{
	const uint64_t before = counter("net.inet.udp.stats.badsum");
	struct mbuf *m = packet6(0, LEFT, ROUTER, IPPROTO_UDP, 16);

	memcpy(payload_of(m), (uint8_t[8]){ 1, 2, 3, 4, 0, 16, 0, 0 }, 8);
	mem_input(mem[0], m);
	CHECK_EQ(counter("net.inet.udp.stats.badsum"), before + 1);
}

int
main(int argc, char **argv)
{
	boot_router6();
	ip6_register(PROTO_TEST, test_input, test_ctlinput);
	return (router6_main(argc, argv, fresh6));
}
