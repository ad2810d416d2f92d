/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of AF_INET6, which also support IPv4 (RFC 3493). */
#include "posix.h"

static struct sockaddr_in6
address(const char *text, uint16_t port)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port)
	};

	CHECK_EQ(inet_pton(AF_INET6, text, &sin6.sin6_addr), 1);
	return (sin6);
}

static int
bind6(int fd, const char *text, uint16_t port)
{
	struct sockaddr_in6 sin6 = address(text, port);

	return (bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)));
}

static int
connect6(int fd, const char *text, uint16_t port)
{
	struct sockaddr_in6 sin6 = address(text, port);

	return (connect(fd, (struct sockaddr *)&sin6, sizeof(sin6)));
}

static uint16_t
port_of(int fd)
{
	struct sockaddr_in6 sin6;
	socklen_t len = sizeof(sin6);

	OK(getsockname(fd, (struct sockaddr *)&sin6, &len));
	CHECK_EQ(len, sizeof(sin6));
	CHECK_EQ(sin6.sin6_family, AF_INET6);
	return (ntohs(sin6.sin6_port));
}

static int
socket6(int type)
{
	return (OK(socket(AF_INET6, type, 0)));
}

static int
option6(int fd, int name, int value)
{
	return (setsockopt(fd, IPPROTO_IPV6, name, &value, sizeof(value)));
}

static int
listener6(const char *text)
{
	int fd = socket6(SOCK_STREAM);

	OK(bind6(fd, text, 0));
	OK(listen(fd, 4));
	return (fd);
}

/* Accepts a connection, whose peer must have this address. */
static void
accept_from(int l, const char *text)
{
	struct sockaddr_in6 from, want = address(text, 0);
	socklen_t len = sizeof(from);
	int fd = OK(accept(l, (struct sockaddr *)&from, &len));

	CHECK_EQ(len, sizeof(from));
	CHECK_EQ(from.sin6_family, AF_INET6);
	CHECK(memcmp(&from.sin6_addr, &want.sin6_addr, 16) == 0);
	OK(close(fd));
}

TEST(a_listener_serves_both_families)
{
	int l = listener6("::"), s = socket6(SOCK_STREAM);
	int s4 = OK(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in sin = loopback(port_of(l));

	OK(connect6(s, "::1", port_of(l)));
	accept_from(l, "::1");
	OK(connect(s4, (struct sockaddr *)&sin, sizeof(sin)));
	accept_from(l, "::ffff:127.0.0.1");
	OK(close(s));
	OK(close(s4));
	OK(close(l));
}

TEST(a_socket_of_ipv6_reaches_ipv4_by_mapped_addresses)
{
	int l = listener(), s = socket6(SOCK_STREAM);
	struct sockaddr_in6 peer, want = address("::ffff:127.0.0.1", 0);
	socklen_t len = sizeof(peer);

	OK(connect6(s, "::ffff:127.0.0.1", ntohs(own_address(l).sin_port)));
	OK(getpeername(s, (struct sockaddr *)&peer, &len));
	CHECK(memcmp(&peer.sin6_addr, &want.sin6_addr, 16) == 0);
	OK(getsockname(s, (struct sockaddr *)&peer, &len));
	CHECK(memcmp(&peer.sin6_addr, &want.sin6_addr, 16) == 0);
	OK(close(s));
	OK(close(l));
}

TEST(v6only_keeps_ipv4_out)
{
	int l = socket6(SOCK_STREAM), s = socket6(SOCK_STREAM);
	int s4 = OK(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in sin;

	OK(option6(l, IPV6_V6ONLY, 1));
	OK(bind6(l, "::", 0));
	FAILS(option6(l, IPV6_V6ONLY, 0), EINVAL);
	OK(listen(l, 4));
	sin = loopback(port_of(l));
	FAILS(connect(s4, (struct sockaddr *)&sin, sizeof(sin)), ECONNREFUSED);
	OK(option6(s, IPV6_V6ONLY, 1));
	FAILS(connect6(s, "::ffff:127.0.0.1", port_of(l)), ENETUNREACH);
	/* the port is free for IPv4 */
	OK(close(s4));
	s4 = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(bind(s4, (struct sockaddr *)&sin, sizeof(sin)));
	OK(close(s4));
	OK(close(s));
	OK(close(l));
}

TEST(a_port_taken_for_both_is_taken_for_ipv4)
{
	int l = listener6("::"), s4 = OK(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in sin = loopback(port_of(l));

	FAILS(bind(s4, (struct sockaddr *)&sin, sizeof(sin)), EADDRINUSE);
	sin.sin_addr.s_addr = INADDR_ANY;
	FAILS(bind(s4, (struct sockaddr *)&sin, sizeof(sin)), EADDRINUSE);
	OK(close(s4));
	OK(close(l));
}

TEST(wrong_addresses_are_refused)
{
	int s = socket6(SOCK_STREAM);
	struct sockaddr_in6 sin6 = address("::1", 1);

	FAILS(bind(s, (struct sockaddr *)&sin6, 20), EINVAL);
	FAILS(bind6(s, "2001:db8:ffff::1", 0), EADDRNOTAVAIL);
	FAILS(bind6(s, "ff0e::1", 0), EINVAL);
	FAILS(bind6(s, "fe80::1", 0), EINVAL);
	FAILS(connect(s, (struct sockaddr *)&sin6, 16), EINVAL);
	sin6.sin6_family = AF_INET;
	FAILS(connect(s, (struct sockaddr *)&sin6, sizeof(sin6)),
	    EAFNOSUPPORT);
	/* a link-local address without a zone */
	FAILS(connect6(s, "fe80::1", 1), EINVAL);
	OK(close(s));
	s = OK(socket(AF_INET, SOCK_STREAM, 0));
	FAILS(option6(s, IPV6_V6ONLY, 1), ENOPROTOOPT);
	OK(close(s));
}

/* Sends a datagram from one socket to another and checks its source address. */
static void
check_datagram(int from, int to, const char *dst, const char *src)
{
	struct sockaddr_in6 sin6 = address(dst, port_of(to));
	struct sockaddr_in6 want = address(src, 0);
	socklen_t len = sizeof(sin6);
	char buf[8];

	CHECK_EQ(OK(sendto(from, "hello", 5, 0, (struct sockaddr *)&sin6,
	    sizeof(sin6))), 5);
	CHECK_EQ(OK(recvfrom(to, buf, sizeof(buf), 0,
	    (struct sockaddr *)&sin6, &len)), 5);
	CHECK_EQ(len, sizeof(sin6));
	CHECK(memcmp(&sin6.sin6_addr, &want.sin6_addr, 16) == 0);
	CHECK_EQ(ntohs(sin6.sin6_port), port_of(from));
}

TEST(datagrams_of_both_families)
{
	int a = socket6(SOCK_DGRAM), b = socket6(SOCK_DGRAM);

	OK(bind6(b, "::", 0));
	check_datagram(a, b, "::1", "::1");
	check_datagram(a, b, "::ffff:127.0.0.1", "::ffff:127.0.0.1");
	OK(close(a));
	OK(close(b));
}

TEST(nobody_at_the_port)
{
	int s = socket6(SOCK_DGRAM), t = socket6(SOCK_STREAM);
	char c;

	OK(connect6(s, "::1", 9));
	OK(send(s, "x", 1, 0));
	FAILS(recv(s, &c, 1, 0), ECONNREFUSED);
	FAILS(connect6(t, "::1", 9), ECONNREFUSED);
	OK(close(s));
	OK(close(t));
}

TEST(options)
{
	int s = socket6(SOCK_STREAM), value = -2;
	socklen_t len = sizeof(value);

	OK(getsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &value, &len));
	CHECK_EQ(value, 0);
	OK(option6(s, IPV6_UNICAST_HOPS, 5));
	OK(getsockopt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, &len));
	CHECK_EQ(value, 5);
	OK(option6(s, IPV6_UNICAST_HOPS, -1));
	OK(getsockopt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, &len));
	CHECK_EQ(value, 64);
	FAILS(option6(s, IPV6_UNICAST_HOPS, 256), EINVAL);
	OK(option6(s, IPV6_TCLASS, 0x20));
	OK(getsockopt(s, IPPROTO_IPV6, IPV6_TCLASS, &value, &len));
	CHECK_EQ(value, 0x20);
	FAILS(option6(s, IPV6_TCLASS, 256), EINVAL);
	OK(getsockopt(s, SOL_SOCKET, SO_DOMAIN, &value, &len));
	CHECK_EQ(value, AF_INET6);
	OK(close(s));
}

/* Transfers more than any MTU in either direction. */
TEST(large_datagrams_and_streams_pass)
{
	static char out[60000], in[60000];
	int a = socket6(SOCK_DGRAM), b = socket6(SOCK_DGRAM);
	struct sockaddr_in6 sin6;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 7);
	OK(bind6(b, "::1", 0));
	sin6 = address("::1", port_of(b));
	CHECK_EQ(OK(sendto(a, out, sizeof(out), 0, (struct sockaddr *)&sin6,
	    sizeof(sin6))), (long)sizeof(out));
	CHECK_EQ(OK(recv(b, in, sizeof(in), 0)), (long)sizeof(in));
	CHECK(memcmp(in, out, sizeof(out)) == 0);
	OK(close(a));
	OK(close(b));
}

/* Containers often have no IPv6: then there is no kernel to compare with. */
static int
without_inet6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd == -1 || bind6(fd, "::1", 0) == -1)
		return (1);
	OK(close(fd));
	return (0);
}

int
main(int argc, char **argv)
{
	if (getenv("STACK_CONF") == NULL && without_inet6())
		return (77);	/* skipped */
	return (posix_main(argc, argv));
}
