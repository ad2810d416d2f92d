/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several IPv4 addresses on one interface: each is answered for and heard,
 * and the next hop's subnet chooses the one that packets come from (RFC 1122
 * section 3.3.4.3).
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <netinet/udp.h>

#include "machine/virtual/virtual.h"
#include "tests/net.h"
#include "tests/packet.h"

#define	LIST	"10.9.0.1/24 10.8.0.1/16,10.8.1.1/24 10.9.0.7/24"
#define	HOST	"10.9.0.2"
#define	PORT	9000

static const char *const ours[] = {
	"10.9.0.1", "10.8.0.1", "10.8.1.1", "10.9.0.7"
};

static bool
has_addr(const uint8_t bytes[4], const char *text)
{
	const struct in_addr a = addr(text);

	return (memcmp(bytes, &a, sizeof(a)) == 0);
}

static int
send_to(struct socket *so, const char *ip)
{
	struct sockaddr_in sin = t_addr(ip, PORT);
	struct iovec iov = { (char[1]){ 'x' }, 1 };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	return (sosend(so, &msg, 0, &done));
}

TEST(arp_is_answered_for_each)
{
	struct mbuf *m;

	for (size_t i = 0; i < nitems(ours); i++) {
		mem_input(mem[0], arp_frame(0, ARPOP_REQUEST, HOST_MAC(0),
		    addr(HOST), addr(ours[i])));
		m = take_sent(0);
		CHECK_EQ(ntohs(arp_in(m)->arp_op), ARPOP_REPLY);
		CHECK(has_addr(arp_in(m)->arp_spa, ours[i]));
		m_freem(m);
	}
	mem_input(mem[0], arp_frame(0, ARPOP_REQUEST, HOST_MAC(0),
	    addr(HOST), addr("10.8.0.7")));
	CHECK_EQ(sent[0].mq_len, 0);
}

/* All addresses of two subnets; many have the hash of a local address. */
TEST(nobody_elses_address_is_ours)
{
	struct in_addr a;
	bool listed;

	for (uint32_t host = 0; host < 1 << 16; host++) {
		a.s_addr = htonl(ntohl(addr("10.8.0.0").s_addr) + host);
		listed = false;
		for (size_t i = 0; i < nitems(ours); i++)
			listed |= a.s_addr == addr(ours[i]).s_addr;
		CHECK(if_byaddr(a) == (listed ? mem[0] : NULL));
	}
	CHECK(if_byaddr(addr("10.9.0.7")) == mem[0]);
	CHECK(if_byaddr(addr("127.0.0.1")) == loif);
}

TEST(each_is_defended_alone)
{
	struct mbuf *m;

	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(7),
	    addr("10.8.0.1"), addr("10.8.0.1")));
	m = take_sent(0);
	CHECK(has_addr(arp_in(m)->arp_spa, "10.8.0.1"));
	CHECK(has_addr(arp_in(m)->arp_tpa, "10.8.0.1"));
	m_freem(m);
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(each_answers_an_echo_itself)
{
	struct mbuf *m;

	for (size_t i = 0; i < nitems(ours); i++) {
		mem_input(mem[0], echo_request(ours[i], 8));
		m = take_sent(0);
		CHECK_EQ(icmp_in(m)->icmp_type, ICMP_ECHOREPLY);
		CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ours[i]).s_addr);
		m_freem(m);
	}
}

TEST(errors_come_from_whom_the_packet_was_for)
{
	struct mbuf *m;

	for (size_t i = 0; i < nitems(ours); i++) {
		mem_input(mem[0], packet(0, HOST, ours[i], 253, 8));
		m = take_sent(0);
		CHECK_EQ(icmp_in(m)->icmp_type, ICMP_UNREACH);
		CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ours[i]).s_addr);
		m_freem(m);
	}
}

/* SO_NO_CHECK: the field of the checksum is zero (RFC 768). */
TEST(a_datagram_may_have_no_checksum)
{
	struct socket *so = t_socket(SOCK_DGRAM);
	const struct udphdr *uh;
	struct mbuf *m;

	for (int off = 1; off >= 0; off--) {
		t_setint(so, SOL_SOCKET, SO_NO_CHECK, off);
		CHECK_EQ(send_to(so, HOST), 0);
		m = take_sent(0);
		uh = (const struct udphdr *)(const void *)(IP_AT(m) + 1);
		CHECK_EQ(uh->uh_sum == 0, off);
		m_freem(m);
	}
	soclose(so);
}

TEST(the_subnet_of_the_next_hop_chooses_the_source)
{
	static const struct { const char *to, *hop, *from; } ways[] = {
		{ "10.9.0.2", "10.9.0.2", "10.9.0.1" },
		{ "10.8.1.9", "10.8.1.9", "10.8.1.1" },
		{ "10.8.7.9", "10.8.7.9", "10.8.0.1" },
		{ "10.20.0.1", "10.8.1.2", "10.8.1.1" },
		{ "10.21.0.1", "10.8.2.2", "10.8.0.1" },
	};
	struct socket *so = t_socket(SOCK_DGRAM);
	struct mbuf *m;

	CHECK_EQ(route_add(addr("10.20.0.0"), 16, addr("10.8.1.2"), NULL), 0);
	CHECK_EQ(route_add(addr("10.21.0.0"), 16, addr("10.8.2.2"), NULL), 0);
	for (size_t i = 0; i < nitems(ways); i++) {
		CHECK_EQ(send_to(so, ways[i].to), 0);
		if (i > 0) { /* the request has the same source address */
			m = take_sent(0);
			CHECK(has_addr(arp_in(m)->arp_spa, ways[i].from));
			CHECK(has_addr(arp_in(m)->arp_tpa, ways[i].hop));
			m_freem(m);
			learn_host(0, ways[i].hop);
		}
		m = take_sent(0);
		CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ways[i].from).s_addr);
		m_freem(m);
	}
	soclose(so);
}

TEST(a_socket_may_have_any_of_them)
{
	struct sockaddr_in sin;
	struct socket *so;
	struct mbuf *m;

	for (size_t i = 0; i < nitems(ours); i++) {
		so = t_socket(SOCK_DGRAM);
		sin = t_addr(ours[i], PORT);
		CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
		CHECK_EQ(send_to(so, HOST), 0);
		m = take_sent(0);
		CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ours[i]).s_addr);
		m_freem(m);
		soclose(so);
	}
	so = t_socket(SOCK_DGRAM);
	sin = t_addr("10.9.0.9", PORT);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)),
	    EADDRNOTAVAIL);
	soclose(so);
}

TEST(broadcasts_of_each_subnet_are_sent_and_heard)
{
	static const char *const many[] = {
		"10.9.0.255", "10.8.255.255", "10.8.1.255", "255.255.255.255"
	};
	struct socket *so = t_socket(SOCK_DGRAM);
	const uint64_t heard = counter("net.inet.udp.stats.noportbcast");
	struct mbuf *m;

	for (size_t i = 0; i < nitems(many); i++) {
		CHECK_EQ(send_to(so, many[i]), EACCES);
		m = packet(0, HOST, many[i], IPPROTO_UDP, 8);
		memcpy(m->m_data + ETHER_HDR_LEN + IP_HDRLEN,
		    "\0\1\0\2\0\10\0", 8);
		mem_input(mem[0], m);
		CHECK_EQ(counter("net.inet.udp.stats.noportbcast"),
		    heard + i + 1);
	}
	t_setint(so, SOL_SOCKET, SO_BROADCAST, 1);
	CHECK_EQ(send_to(so, "10.8.255.255"), 0);
	m = take_sent(0);
	CHECK(memcmp(m->m_data, "\377\377\377\377\377\377", 6) == 0);
	CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr("10.8.0.1").s_addr);
	m_freem(m);
	soclose(so);
}

TEST(redirects_keep_to_a_subnet)
{
	struct mbuf *m;

	set("net.inet.ip.forwarding", "1");
	set("net.inet.icmp.icmplim", "1000000");
	CHECK_EQ(route_add(addr("10.22.0.0"), 16, addr(HOST), NULL), 0);
	/* the sender and the next hop are neighbours */
	learn_host(0, "10.9.0.5");
	mem_input(mem[0], packet(0, "10.9.0.5", "10.22.0.1", 253, 8));
	m = take_sent(0);
	CHECK_EQ(icmp_in(m)->icmp_type, ICMP_REDIRECT);
	CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr("10.9.0.1").s_addr);
	m_freem(m);
	m_freem(take_sent(0));
	/* on one wire, but in two subnets */
	mem_input(mem[0], packet(0, "10.8.7.5", "10.22.0.1", 253, 8));
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_p, 253);
	m_freem(m);
	CHECK_EQ(sent[0].mq_len, 0);
	set("net.inet.ip.forwarding", "0");
}

TEST(wrong_lists_are_refused)
{
	static const struct { const char *list, *reason; } wrong[] = {
		{ "", "is not an address like 10.1.0.2/24" },
		{ "10.1.0.2", "'10.1.0.2' is not an address" },
		{ "10.1.0.2/24 10.2.0.2/33", "'10.2.0.2/33' is not" },
		{ "224.0.0.1/4", "is not an address" },
		{ "255.255.255.255/32", "is not an address" },
		{ "10.1.0.2/24 10.1.0.2/16", "'10.1.0.2/16' is a duplicate" },
		{ "10.0.0.1/8 10.0.0.2/8 10.0.0.3/8 10.0.0.4/8 10.0.0.5/8 "
		    "10.0.0.6/8 10.0.0.7/8 10.0.0.8/8 10.0.0.9/8",
		    "'10.0.0.9/8' is one address too many" },
	};
	struct if_config ic = { .queues = 1 };
	char why[128];

	for (size_t i = 0; i < nitems(wrong); i++) {
		CHECK_EQ(inet_config_set(&ic, wrong[i].list, why,
		    sizeof(why)), EINVAL);
		if (strstr(why, wrong[i].reason) == NULL) {
			fprintf(stderr, "'%s': %s\n", wrong[i].list, why);
			abort();
		}
	}
	CHECK_EQ(inet_config_set(&ic, "0.0.0.0/0", why, sizeof(why)), 0);
	CHECK_EQ(ic.ninet, 0);
}

int
main(int argc, char **argv)
{
	int status;

	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	mbufq_init(&sent[0]);
	mem[0] = mem_attach("mem0", LIST, 0, NULL, keep, &sent[0]);
	learn_host(0, HOST);
	mbufq_drain(&sent[0]);
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
