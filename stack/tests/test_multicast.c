/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: IGMP and MLD on the wire, and delivery to sockets. */
#include "tests/check.h"

#include <errno.h>

#include "netinet/in_family.h"
#include "netinet/in_group.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	GROUP	"239.1.2.3"
#define	ALLHOSTS "224.0.0.1"
#define	SECOND	1000

static struct in6_addr
mapped(const char *text)
{
	return (in_map(addr(text)));
}

static struct mbuf *shown;	/* the frame of next_igmp() */

static void
forget_shown(void)
{
	m_freem(shown);
	shown = NULL;
}

/*
 * The IGMP message in the next frame on the left, after the router alert
 * option.
 */
static const uint8_t *
next_igmp(const char *to)
{
	const struct ip *ip;

	forget_shown();
	shown = take_sent(0);
	ip = IP_AT(shown);
	CHECK_EQ(ip->ip_p, IPPROTO_IGMP);
	CHECK_EQ(ip->ip_ttl, 1);
	CHECK_EQ(ip->ip_hl, 6);
	CHECK(memcmp(ip + 1, "\x94\4\0", 4) == 0);
	CHECK_EQ(ip->ip_dst.s_addr, addr(to).s_addr);
	CHECK_EQ(in_hdrsum(ip, 24), 0);
	CHECK_EQ(in_fold(in_sum(shown, ETHER_HDR_LEN + 24,
	    shown->m_pkthdr.len - ETHER_HDR_LEN - 24, 0)), 0);
	return ((const uint8_t *)ip + 24);
}

static void
expect_report(uint8_t type, const char *group, const char *source)
{
	const uint8_t *p = next_igmp("224.0.0.22");
	const struct in_addr g = addr(group);
	struct in_addr s;

	CHECK_EQ(p[0], 0x22);
	CHECK_EQ(p[7], 1);
	CHECK_EQ(p[8], type);
	CHECK_EQ(p[11], source != NULL);
	CHECK(memcmp(p + 12, &g, 4) == 0);
	if (source != NULL) {
		s = addr(source);
		CHECK(memcmp(p + 16, &s, 4) == 0);
	}
}

/* An IGMP message of len bytes from the left, for the group. */
static void
igmp(uint8_t type, uint8_t code, const char *dst, const char *group,
    uint32_t len)
{
	struct mbuf *m = packet(0, LEFT, dst, IPPROTO_IGMP, len);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);
	uint8_t *p = (uint8_t *)(ip + 1);
	const struct in_addr g = addr(group);
	uint16_t sum;

	memset(p, 0, len);
	p[0] = type;
	p[1] = code;
	memcpy(p + 4, &g, 4);
	sum = in_fold(in_sum(m, ETHER_HDR_LEN + IP_HDRLEN, len, 0));
	memcpy(p + 2, &sum, sizeof(sum));
	ip->ip_ttl = 1;
	seal(ip);
	mem_input(mem[0], m);
}

TEST(a_group_is_reported_twice_and_left_twice)
{
	const struct in6_addr g = mapped(GROUP);

	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	expect_report(GROUP_TO_EXCLUDE, GROUP, NULL);
	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	t_sleep(3 * SECOND);
	expect_report(GROUP_TO_EXCLUDE, GROUP, NULL);
	CHECK_EQ(sent[0].mq_len, 0);
	in_group_leave(mem[0], &g, NULL);
	CHECK(in_group_ismember(mem[0], &g));
	in_group_leave(mem[0], &g, NULL);
	CHECK(!in_group_ismember(mem[0], &g));
	expect_report(GROUP_TO_INCLUDE, GROUP, NULL);
	CHECK_EQ(in_group_join(mem[0], &(struct in6_addr){ { { 1 } } }, NULL),
	    EINVAL);
}

TEST(sources_are_reported_until_somebody_wants_all)
{
	const struct in6_addr g = mapped("232.1.2.3");
	const struct in6_addr s = mapped(LEFT), t = mapped("10.9.0.3");

	CHECK_EQ(in_group_join(mem[0], &g, &s), 0);
	expect_report(GROUP_TO_INCLUDE, "232.1.2.3", LEFT);
	CHECK_EQ(in_group_join(mem[0], &g, &s), 0);
	CHECK_EQ(sent[0].mq_len, 0);
	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	expect_report(GROUP_TO_EXCLUDE, "232.1.2.3", NULL);
	CHECK_EQ(in_group_join(mem[0], &g, &t), 0);
	in_group_leave(mem[0], &g, &t);
	CHECK_EQ(sent[0].mq_len, 0);
	in_group_leave(mem[0], &g, NULL);
	expect_report(GROUP_TO_INCLUDE, "232.1.2.3", LEFT);
	in_group_leave(mem[0], &g, &s);
	in_group_leave(mem[0], &g, &s);
	expect_report(GROUP_TO_INCLUDE, "232.1.2.3", NULL);
}

TEST(queries_are_answered_in_time)
{
	const struct in6_addr g = mapped(GROUP);

	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	t_sleep(3 * SECOND);
	start_over();
	igmp(0x11, 20, ALLHOSTS, "0.0.0.0", 12);
	CHECK_EQ(sent[0].mq_len, 0);
	t_sleep(2 * SECOND);
	expect_report(GROUP_IS_EXCLUDE, GROUP, NULL);
	igmp(0x11, 20, GROUP, GROUP, 12);
	t_sleep(2 * SECOND);
	expect_report(GROUP_IS_EXCLUDE, GROUP, NULL);
	/*
	 * for another group, and a general query that is not sent to all hosts
	 */
	igmp(0x11, 20, GROUP, "239.1.2.4", 12);
	igmp(0x11, 20, GROUP, "0.0.0.0", 12);
	t_sleep(3 * SECOND);
	CHECK_EQ(sent[0].mq_len, 0);
	in_group_leave(mem[0], &g, NULL);
}

TEST(malformed_igmp_is_counted)
{
	const uint64_t bad = counter("net.inet.igmp.stats.bad");
	struct mbuf *m = packet(0, LEFT, ALLHOSTS, IPPROTO_IGMP, 4);

	mem_input(mem[0], m);
	CHECK_EQ(counter("net.inet.igmp.stats.tooshort"), 1);
	mem_input(mem[0], packet(0, LEFT, ALLHOSTS, IPPROTO_IGMP, 8));
	CHECK_EQ(counter("net.inet.igmp.stats.checksum"), 1);
	igmp(0x11, 0, ALLHOSTS, "10.1.1.1", 8);
	CHECK_EQ(counter("net.inet.igmp.stats.bad"), bad + 1);
}

/*
 * RFC 3376 section 7: uses the version of the oldest router until it times out.
 */
TEST(older_routers_are_spoken_to_in_their_version)
{
	const struct in6_addr g = mapped(GROUP);
	const struct in_addr group = addr(GROUP);
	const uint8_t *p;

	igmp(0x11, 10, ALLHOSTS, "0.0.0.0", 8);
	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	p = next_igmp(GROUP);
	CHECK_EQ(p[0], 0x16);
	CHECK(memcmp(p + 4, &group, 4) == 0);
	t_sleep(3 * SECOND);
	start_over();
	/* another host's report suppresses ours */
	igmp(0x11, 100, ALLHOSTS, "0.0.0.0", 8);
	igmp(0x16, 0, GROUP, GROUP, 8);
	t_sleep(12 * SECOND);
	CHECK_EQ(sent[0].mq_len, 0);
	igmp(0x11, 10, GROUP, GROUP, 8);
	t_sleep(2 * SECOND);
	CHECK_EQ(next_igmp(GROUP)[0], 0x16);
	/* version 1 has no leave */
	igmp(0x11, 0, ALLHOSTS, "0.0.0.0", 8);
	t_sleep(11 * SECOND);
	CHECK_EQ(next_igmp(GROUP)[0], 0x12);
	t_sleep(255 * SECOND);
	igmp(0x11, 10, ALLHOSTS, "0.0.0.0", 8);
	t_sleep(10 * SECOND);
	start_over();
	in_group_leave(mem[0], &g, NULL);
	p = next_igmp("224.0.0.2");
	CHECK_EQ(p[0], 0x17);
	CHECK(memcmp(p + 4, &group, 4) == 0);
	t_sleep(300 * SECOND);
	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	expect_report(GROUP_TO_EXCLUDE, GROUP, NULL);
	in_group_leave(mem[0], &g, NULL);
}

TEST(mldv1_routers_are_spoken_to_in_their_version)
{
	const struct in6_addr g = addr6("ff05::77"), zero = in6addr_any;
	struct mbuf *m = packet6(0, "fe80::2", "ff02::1", IPPROTO_ICMPV6, 24);

	memset(payload_of(m), 0, 24);
	payload_of(m)[0] = MLD_LISTENER_QUERY;
	memcpy(payload_of(m) + 8, &zero, sizeof(zero));
	ip6_of(m)->ip6_hlim = 1;
	seal6(m, 0);
	mem_input(mem[0], m);
	t_sleep(SECOND);
	start_over();
	CHECK_EQ(in_group_join(mem[0], &g, NULL), 0);
	m = take_sent(0);
	CHECK_EQ(payload_of(m)[8], MLD_LISTENER_REPORT);
	CHECK(IN6_ARE_ADDR_EQUAL(&ip6_of(m)->ip6_dst, &g));
	m_freem(m);
	t_sleep(3 * SECOND);
	start_over();
	in_group_leave(mem[0], &g, NULL);
	m = take_sent(0);
	CHECK_EQ(payload_of(m)[8], MLD_LISTENER_REDUCTION);
	m_freem(m);
	t_sleep(300 * SECOND);
}

TEST(the_time_in_a_query_may_have_an_exponent)
{
	CHECK_EQ(in_group_time(127, 8), 127);
	CHECK_EQ(in_group_time(0x80, 8), 0x10 << 3);
	CHECK_EQ(in_group_time(0xff, 8), 0x1f << 10);
	CHECK_EQ(in_group_time(32767, 16), 32767);
	CHECK_EQ(in_group_time(0x8000, 16), 0x1000 << 3);
	CHECK_EQ(in_group_time(0xffff, 16), 0x1fff << 10);
}

static struct socket *
udp_at(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct socket *so = t_socket(SOCK_DGRAM);

	t_setint(so, SOL_SOCKET, SO_REUSEADDR, 1);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return (so);
}

static int
membership(struct socket *so, int name, const char *group)
{
	struct ip_mreqn mreq = { .imr_multiaddr = addr(group),
	    .imr_ifindex = (int)mem[0]->if_index };

	return (sosetopt(so, IPPROTO_IP, name, &mreq, sizeof(mreq)));
}

static int
source(struct socket *so, int name, const char *group, const char *from)
{
	struct ip_mreq_source mreq = { .imr_multiaddr = addr(group),
	    .imr_interface = addr(ROUTER), .imr_sourceaddr = addr(from) };

	return (sosetopt(so, IPPROTO_IP, name, &mreq, sizeof(mreq)));
}

/* A datagram of four bytes from a host on the left. */
static void
datagram(const char *from, const char *to, uint16_t port)
{
	struct mbuf *m = packet(0, from, to, IPPROTO_UDP, 12);
	uint16_t words[4] = { htons(99), htons(port), htons(12), 0 };

	memcpy(m->m_data + ETHER_HDR_LEN + IP_HDRLEN, words, sizeof(words));
	mem_input(mem[0], m);
}

/* Reads all queued datagrams; returns their number. */
static unsigned
heard(struct socket *so)
{
	char buf[100];
	unsigned count = 0;
	size_t n;

	while (t_tryrecv(so, buf, sizeof(buf), MSG_DONTWAIT, &n) == 0)
		count++;
	return (count);
}

TEST(all_members_at_a_port_hear_what_comes_to_the_group)
{
	struct socket *a = udp_at("0.0.0.0", 7000), *b = udp_at(GROUP, 7000);
	struct socket *c = udp_at(ROUTER, 7000);
	const uint64_t no = counter("net.inet.ip.stats.notmember");

	datagram(LEFT, GROUP, 7000);
	CHECK_EQ(counter("net.inet.ip.stats.notmember"), no + 1);
	CHECK_EQ(membership(a, IP_ADD_MEMBERSHIP, GROUP), 0);
	CHECK_EQ(membership(a, IP_ADD_MEMBERSHIP, GROUP), EADDRINUSE);
	CHECK_EQ(membership(a, IP_ADD_MEMBERSHIP, LEFT), EINVAL);
	datagram(LEFT, GROUP, 7000);
	CHECK_EQ(heard(a), 1);
	/* also groups that other sockets joined: ip(7) */
	CHECK_EQ(heard(b), 1);
	CHECK_EQ(heard(c), 0);	/* bound to an address of the host's */
	t_setint(b, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	datagram(LEFT, GROUP, 7000);
	CHECK_EQ(heard(a), 1);
	CHECK_EQ(heard(b), 0);
	CHECK_EQ(membership(a, IP_DROP_MEMBERSHIP, GROUP), 0);
	CHECK_EQ(membership(a, IP_DROP_MEMBERSHIP, GROUP), EADDRNOTAVAIL);
	datagram(LEFT, GROUP, 7000);
	CHECK_EQ(heard(a), 0);
	CHECK_EQ(membership(b, IP_ADD_MEMBERSHIP, GROUP), 0);
	soclose(a);
	soclose(b);		/* leaves */
	soclose(c);
	CHECK(!in_group_ismember(mem[0], &(struct in6_addr){ .s6_addr32 =
	    { 0, 0, htonl(0xffff), addr(GROUP).s_addr } }));
}

TEST(sources_are_filtered)
{
	struct socket *so = udp_at("0.0.0.0", 7001);

	CHECK_EQ(source(so, IP_ADD_SOURCE_MEMBERSHIP, GROUP, LEFT), 0);
	CHECK_EQ(source(so, IP_ADD_SOURCE_MEMBERSHIP, GROUP, LEFT),
	    EADDRNOTAVAIL);
	CHECK_EQ(source(so, IP_BLOCK_SOURCE, GROUP, LEFT), EINVAL);
	datagram(LEFT, GROUP, 7001);
	datagram("10.9.0.3", GROUP, 7001);
	CHECK_EQ(heard(so), 1);
	CHECK_EQ(source(so, IP_ADD_SOURCE_MEMBERSHIP, GROUP, "10.9.0.3"), 0);
	CHECK_EQ(source(so, IP_DROP_SOURCE_MEMBERSHIP, GROUP, LEFT), 0);
	datagram(LEFT, GROUP, 7001);
	datagram("10.9.0.3", GROUP, 7001);
	CHECK_EQ(heard(so), 1);
	CHECK_EQ(source(so, IP_DROP_SOURCE_MEMBERSHIP, GROUP, "10.9.0.3"), 0);
	CHECK_EQ(membership(so, IP_ADD_MEMBERSHIP, GROUP), 0);
	CHECK_EQ(source(so, IP_BLOCK_SOURCE, GROUP, LEFT), 0);
	datagram(LEFT, GROUP, 7001);
	datagram("10.9.0.3", GROUP, 7001);
	CHECK_EQ(heard(so), 1);
	CHECK_EQ(source(so, IP_UNBLOCK_SOURCE, GROUP, LEFT), 0);
	datagram(LEFT, GROUP, 7001);
	CHECK_EQ(heard(so), 1);
	soclose(so);
}

static void
send_to(struct socket *so, const char *ip, uint16_t port, int error)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct iovec iov = { "abcd", 4 };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	CHECK_EQ(sosend(so, &msg, 0, &done), error);
	t_sleep(1);		/* copies to this host are queued */
}

/* The next UDP packet on the left; skips other packets. */
static unsigned
udp_left(uint8_t *ttl)
{
	unsigned count = 0;
	struct mbuf *m;

	while ((m = mbufq_dequeue(&sent[0])) != NULL) {
		if (IP_AT(m)->ip_v == 4 && IP_AT(m)->ip_p == IPPROTO_UDP) {
			*ttl = IP_AT(m)->ip_ttl;
			count++;
			CHECK(m->m_data[0] & 1);
		}
		m_freem(m);
	}
	return (count);
}

TEST(what_is_sent_to_a_group_comes_back_to_members_here)
{
	struct socket *in = udp_at("0.0.0.0", 7002), *out = udp_at(ROUTER, 7);
	struct in_addr got;
	socklen_t len = sizeof(got);
	uint8_t ttl = 0;

	CHECK_EQ(membership(in, IP_ADD_MEMBERSHIP, GROUP), 0);
	CHECK_EQ(sosetopt(out, IPPROTO_IP, IP_MULTICAST_IF,
	    &mem[0]->if_addr, 4), 0);
	CHECK_EQ(sogetopt(out, IPPROTO_IP, IP_MULTICAST_IF, &got, &len), 0);
	CHECK_EQ(got.s_addr, addr(ROUTER).s_addr);
	start_over();
	send_to(out, GROUP, 7002, 0);
	CHECK_EQ(heard(in), 1);
	CHECK_EQ(udp_left(&ttl), 1);
	CHECK_EQ(ttl, 1);
	t_setint(out, IPPROTO_IP, IP_MULTICAST_TTL, 7);
	t_setint(out, IPPROTO_IP, IP_MULTICAST_LOOP, 0);
	send_to(out, GROUP, 7002, 0);
	CHECK_EQ(heard(in), 0);
	CHECK_EQ(udp_left(&ttl), 1);
	CHECK_EQ(ttl, 7);
	t_setint(out, IPPROTO_IP, IP_MULTICAST_TTL, 0);
	t_setint(out, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
	send_to(out, GROUP, 7002, 0);
	CHECK_EQ(heard(in), 1);
	CHECK_EQ(udp_left(&ttl), 0);
	soclose(in);
	soclose(out);
}

TEST(broadcasts_are_heard_by_all_and_here)
{
	struct socket *a = udp_at("0.0.0.0", 7003), *b = udp_at("0.0.0.0", 7003);
	uint8_t ttl;

	datagram(LEFT, "10.9.0.255", 7003);
	datagram(LEFT, "255.255.255.255", 7003);
	CHECK_EQ(heard(a), 2);
	CHECK_EQ(heard(b), 2);
	send_to(a, "255.255.255.255", 7003, EACCES);
	t_setint(a, SOL_SOCKET, SO_BROADCAST, 1);
	start_over();
	send_to(a, "255.255.255.255", 7003, 0);
	CHECK_EQ(udp_left(&ttl), 1);
	CHECK_EQ(heard(a), 1);
	CHECK_EQ(heard(b), 1);
	soclose(a);
	soclose(b);
}

TEST(frames_to_groups_of_others_are_filtered)
{
	const uint64_t before = counter("if.mem0.stats.ifiltered");
	const uint64_t no = counter("net.inet.ip.stats.notmember");
	struct mbuf *m = packet(0, LEFT, "239.9.9.9", IPPROTO_UDP, 12);

	memcpy(m->m_data, "\1\0\x5e\x09\x09\x09", 6);
	mem_input(mem[0], m);
	CHECK_EQ(counter("if.mem0.stats.ifiltered"), before + 1);
	CHECK_EQ(counter("net.inet.ip.stats.notmember"), no);
}

TEST(groups_have_limits)
{
	struct socket *so = t_socket(SOCK_DGRAM), *tcp = t_socket(SOCK_STREAM);
	char group[20];

	CHECK_EQ(membership(tcp, IP_ADD_MEMBERSHIP, GROUP), EPROTO);
	set("net.inet.ip.mcast.maxsockgroups", "3");
	for (unsigned i = 0; i < 3; i++) {
		snprintf(group, sizeof(group), "239.0.0.%u", i);
		CHECK_EQ(membership(so, IP_ADD_MEMBERSHIP, group), 0);
	}
	CHECK_EQ(membership(so, IP_ADD_MEMBERSHIP, GROUP), ENOBUFS);
	set("net.inet.ip.mcast.maxsockgroups", "64");
	set("net.inet.ip.mcast.maxgroups", "16");
	for (unsigned i = 0; i < 16; i++) {
		snprintf(group, sizeof(group), "239.0.1.%u", i);
		if (membership(so, IP_ADD_MEMBERSHIP, group) == ENOBUFS)
			break;
		CHECK(i < 15);
	}
	set("net.inet.ip.mcast.maxgroups", "1024");
	soclose(so);
	soclose(tcp);
}

TEST(ipv6_sockets_join_and_hear)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons(7004) };
	struct ipv6_mreq mreq = { .ipv6mr_multiaddr = addr6("ff05::7"),
	    .ipv6mr_interface = mem[0]->if_index };
	struct group_req req = { .gr_interface = mem[0]->if_index };
	struct iovec iov = { "abcd", 4 };
	struct msghdr msg = { .msg_name = &sin6, .msg_namelen = sizeof(sin6),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	struct socket *so;
	size_t done;

	CHECK_EQ(socreate(AF_INET6, SOCK_DGRAM, 0, &so), 0);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin6, sizeof(sin6)), 0);
	CHECK_EQ(sosetopt(so, IPPROTO_IPV6, IPV6_JOIN_GROUP, &mreq,
	    sizeof(mreq)), 0);
	sin6.sin6_addr = addr6("ff05::7");
	memcpy(&req.gr_group, &sin6, sizeof(sin6));
	CHECK_EQ(sosetopt(so, IPPROTO_IPV6, MCAST_JOIN_GROUP, &req,
	    sizeof(req)), EADDRINUSE);
	t_setint(so, IPPROTO_IPV6, IPV6_MULTICAST_IF,
	    (int)mem[0]->if_index);
	CHECK_EQ(t_getint(so, IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 1);
	CHECK_EQ(sosend(so, &msg, 0, &done), 0);
	t_sleep(1);
	CHECK_EQ(heard(so), 1);
	t_setint(so, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
	CHECK_EQ(sosend(so, &msg, 0, &done), 0);
	t_sleep(1);
	CHECK_EQ(heard(so), 0);
	CHECK_EQ(sosetopt(so, IPPROTO_IPV6, MCAST_LEAVE_GROUP, &req,
	    sizeof(req)), 0);
	soclose(so);
}

static void
fresh(void)
{
	forget_shown();
	t_sleep(5 * SECOND);
	learn_host(0, LEFT);
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, fresh));
}
