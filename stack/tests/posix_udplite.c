/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP-Lite (RFC 3828): its own ports, and how much the checksum covers.
 */
#include "posix.h"

#define	LITE		IPPROTO_UDPLITE
#define	SEND_CSCOV	10	/* UDPLITE_SEND_CSCOV, linux/udp.h */
#define	RECV_CSCOV	11

static int
lite(int family)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = { .sa.sa_family = (sa_family_t)family };
	int fd = OK(socket(family, SOCK_DGRAM, LITE));

	if (family == AF_INET)
		name.in = loopback(0);
	else
		name.in6.sin6_addr = in6addr_loopback;
	OK(bind(fd, &name.sa, family == AF_INET ? sizeof(name.in) :
	    sizeof(name.in6)));
	return (fd);
}

/* s[0] is connected to s[1]. */
static void
lite_pair(int family, int s[2])
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	s[1] = lite(family);
	s[0] = lite(family);
	OK(getsockname(s[1], (struct sockaddr *)&name, &len));
	OK(connect(s[0], (struct sockaddr *)&name, len));
}

static void
set(int fd, int name, int value, int want)
{
	int got = -1;
	socklen_t len = sizeof(got);

	OK(setsockopt(fd, LITE, name, &value, sizeof(value)));
	OK(getsockopt(fd, LITE, name, &got, &len));
	CHECK_EQ(got, want);
}

TEST(coverages_are_read_back_as_limited)
{
	int fd = lite(AF_INET), udp = bound(SOCK_DGRAM), value = 8;

	set(fd, SEND_CSCOV, 0, 0);
	set(fd, SEND_CSCOV, 3, 8);
	set(fd, SEND_CSCOV, -1, 8);
	set(fd, SEND_CSCOV, 20, 20);
	set(fd, RECV_CSCOV, 70000, 65535);
	FAILS(setsockopt(udp, IPPROTO_UDP, SEND_CSCOV, &value, sizeof(value)),
	    ENOPROTOOPT);
	FAILS(setsockopt(fd, LITE, 12345, &value, sizeof(value)),
	    ENOPROTOOPT);
	OK(close(fd));
	OK(close(udp));
}

TEST(datagrams_pass_with_any_coverage)
{
	static const int families[] = { AF_INET, AF_INET6 };
	static const int coverages[] = { 0, 8, 9, 12, 100 };
	char buf[16];
	int s[2];

	for (size_t f = 0; f < 2; f++) {
		lite_pair(families[f], s);
		for (size_t i = 0; i < 5; i++) {
			set(s[0], SEND_CSCOV, coverages[i], coverages[i]);
			CHECK_EQ(send(s[0], "abcdef", 6, 0), 6);
			CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 6);
			CHECK(memcmp(buf, "abcdef", 6) == 0);
		}
		close_pair(s);
	}
}

/* udplite(7): less coverage than requested is dropped; whole passes. */
TEST(a_receiver_requires_a_coverage)
{
	static const struct { int send, recv; bool passes; } cases[] = {
		{ 8, 8, true }, { 8, 10, false }, { 10, 10, true },
		{ 0, 100, true }, { 8, 0, false }, { 0, 0, true },
		{ 100, 100, true },
	};
	char buf[16];
	int s[2];

	lite_pair(AF_INET, s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(s[0], SEND_CSCOV, cases[i].send, cases[i].send);
		set(s[1], RECV_CSCOV, cases[i].recv, cases[i].recv);
		CHECK_EQ(send(s[0], "abcdef", 6, 0), 6);
		set(s[0], SEND_CSCOV, 0, 0);
		CHECK_EQ(send(s[0], "mark", 4, 0), 4);
		CHECK_EQ(recv(s[1], buf, sizeof(buf), 0),
		    cases[i].passes ? 6 : 4);
		if (cases[i].passes)
			CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 4);
	}
	close_pair(s);
}

TEST(ports_are_its_own)
{
	struct sockaddr_in sin;
	int fd = lite(AF_INET), udp = OK(socket(AF_INET, SOCK_DGRAM, 0));
	socklen_t len;
	int proto = 0, s;
	char c;

	sin = own_address(fd);
	OK(bind(udp, (struct sockaddr *)&sin, sizeof(sin)));
	len = sizeof(proto);
	OK(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &proto, &len));
	CHECK_EQ(proto, LITE);
	s = OK(socket(AF_INET, SOCK_DGRAM, LITE));
	CHECK_EQ(sendto(s, "x", 1, 0, (struct sockaddr *)&sin, sizeof(sin)),
	    1);
	CHECK_EQ(recv(fd, &c, 1, 0), 1);
	FAILS(recv(udp, &c, 1, MSG_DONTWAIT), EAGAIN);
	OK(close(fd));
	/* nobody is at the port: an ICMP error */
	OK(connect(s, (struct sockaddr *)&sin, sizeof(sin)));
	CHECK_EQ(send(s, "x", 1, 0), 1);
	FAILS(recv(s, &c, 1, 0), ECONNREFUSED);
	OK(close(s));
	OK(close(udp));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
