/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States of a socket that a program changes in unusual ways: ending a connect()
 * or a connection, shutting down what is not connected, sharing a port, and
 * timeouts below zero.
 */
#include <net/if.h>
#include <netdb.h>

#include "posix.h"

/* A listener whose queue is full: a later connect() waits. */
static int
full_listener(struct sockaddr_in *sin, int fill[4])
{
	int l = bound(SOCK_STREAM);

	OK(listen(l, 0));
	*sin = own_address(l);
	for (int i = 0; i < 4; i++) {
		fill[i] = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		(void)connect(fill[i], (struct sockaddr *)sin, sizeof(*sin));
		(void)ready(fill[i], POLLOUT, 100);
	}
	return (l);
}

/* Waits until another thread is in connect(). */
static void
shut_connecting(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	while (info.tcpi_state != TCP_SYN_SENT) {
		nap(10);
		OK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	}
	OK(shutdown(fd, SHUT_RDWR));
}

TEST(shutdown_ends_a_connect)
{
	struct sockaddr_in sin;
	struct later later_shut;
	int fill[4], l = full_listener(&sin, fill);
	int s = OK(socket(AF_INET, SOCK_STREAM, 0));

	later(&later_shut, 0, shut_connecting, s);
	FAILS(connect(s, (struct sockaddr *)&sin, sizeof(sin)), ECONNRESET);
	later_join(&later_shut);
	FAILS(shutdown(s, SHUT_RDWR), ENOTCONN);
	OK(close(s));
	for (int i = 0; i < 4; i++)
		OK(close(fill[i]));
	OK(close(l));
}

static const struct sockaddr unspecified = { .sa_family = AF_UNSPEC };

TEST(a_stream_is_disconnected_and_connected_again)
{
	int l = listener(), s = bound(SOCK_STREAM), peer, again;
	struct sockaddr_in to = own_address(l);
	char c;

	OK(connect(s, (struct sockaddr *)&to, sizeof(to)));
	peer = OK(accept(l, NULL, NULL));
	OK(connect(s, &unspecified, sizeof(unspecified)));
	FAILS(recv(peer, &c, 1, 0), ECONNRESET);
	CHECK_EQ(send(s, "x", 1, MSG_NOSIGNAL), -1);
	OK(connect(s, (struct sockaddr *)&to, sizeof(to)));
	again = OK(accept(l, NULL, NULL));
	send_byte(s);
	CHECK_EQ(read(again, &c, 1), 1);
	OK(close(s));
	OK(close(peer));
	OK(close(again));
	/* a socket that never connected, and one that listens */
	s = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(connect(s, &unspecified, sizeof(unspecified)));
	OK(close(s));
	OK(connect(l, &unspecified, sizeof(unspecified)));
	FAILS(accept(l, NULL, NULL), EINVAL);
	OK(close(l));
}

TEST(a_refused_connect_keeps_options)
{
	static const struct {
		int	 level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_IP, IP_TOS, 16 },
		{ IPPROTO_IP, IP_TTL, 33 },
		{ IPPROTO_IP, IP_RECVTOS, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_CORK, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 77 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 7 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },
		{ IPPROTO_TCP, TCP_SYNCNT, 3 },
		{ IPPROTO_TCP, TCP_LINGER2, 9 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 5000 },
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, 4096 },
	};
	int closed = bound(SOCK_STREAM), s, value;
	struct sockaddr_in to = own_address(closed);
	char before[16] = "", after[16] = "";
	socklen_t len = sizeof(before);

	s = OK(socket(AF_INET, SOCK_STREAM, 0));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		OK(setsockopt(s, options[i].level, options[i].name,
		    &options[i].value, sizeof(int)));
	OK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	OK(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, before, &len));
	FAILS(connect(s, (struct sockaddr *)&to, sizeof(to)), ECONNREFUSED);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		len = sizeof(value);
		OK(getsockopt(s, options[i].level, options[i].name, &value,
		    &len));
		CHECK_EQ(value, options[i].value);
	}
	len = sizeof(after);
	OK(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, after, &len));
	CHECK(strcmp(before, after) == 0);
	OK(close(s));
	OK(close(closed));
}

/* Nobody else can have the port between two attempts. */
TEST(a_refused_connect_keeps_the_port)
{
	int closed = bound(SOCK_STREAM), l = listener(), other, s;
	struct sockaddr_in refusing = own_address(closed);
	struct sockaddr_in to = own_address(l), from;

	s = bound(SOCK_STREAM);
	from = own_address(s);
	OK(close(s));
	s = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	OK(bind(s, (struct sockaddr *)&from, sizeof(from)));
	(void)connect(s, (struct sockaddr *)&refusing, sizeof(refusing));
	CHECK(ready(s, POLLOUT, 10000) & POLLHUP);
	other = OK(socket(AF_INET, SOCK_STREAM, 0));
	FAILS(bind(other, (struct sockaddr *)&from, sizeof(from)), EADDRINUSE);
	/* the first call may return the result of the other attempt */
	while (connect(s, (struct sockaddr *)&to, sizeof(to)) == -1 &&
	    errno != EINPROGRESS)
		CHECK(errno == ECONNREFUSED || errno == ECONNABORTED);
	CHECK_EQ(ready(s, POLLOUT, 10000), POLLOUT);
	CHECK_EQ(own_address(s).sin_port, from.sin_port);
	OK(close(s));
	OK(close(other));
	OK(close(l));
	OK(close(closed));
}

TEST(a_datagram_socket_is_disconnected)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, to = loopback(9);
	int s = OK(socket(AF_INET, SOCK_DGRAM, 0));
	in_port_t port;

	OK(connect(s, (struct sockaddr *)&to, sizeof(to)));
	CHECK_EQ(own_address(s).sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	OK(connect(s, &unspecified, sizeof(unspecified)));
	CHECK_EQ(own_address(s).sin_addr.s_addr, INADDR_ANY);
	CHECK_EQ(own_address(s).sin_port, 0);
	OK(close(s));
	/* what bind() named stays */
	s = bound(SOCK_DGRAM);
	any.sin_port = port = own_address(s).sin_port;
	OK(close(s));
	s = OK(socket(AF_INET, SOCK_DGRAM, 0));
	OK(bind(s, (struct sockaddr *)&any, sizeof(any)));
	OK(connect(s, (struct sockaddr *)&to, sizeof(to)));
	OK(connect(s, &unspecified, sizeof(unspecified)));
	CHECK_EQ(own_address(s).sin_addr.s_addr, INADDR_ANY);
	CHECK_EQ(own_address(s).sin_port, port);
	OK(close(s));
}

static void
shut_reading(int fd)
{
	OK(shutdown(fd, SHUT_RD));
}

TEST(what_came_before_shutdown_can_be_read)
{
	struct later l;
	int s[2], u, from;
	struct sockaddr_in sin;
	char buf[8];

	tcp_pair(s);
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 10000) != 0);
	OK(shutdown(s[1], SHUT_RD));
	CHECK_EQ(read(s[1], buf, 8), 1);
	CHECK_EQ(read(s[1], buf, 8), 0);
	close_pair(s);

	u = bound(SOCK_DGRAM);
	sin = own_address(u);
	from = bound(SOCK_DGRAM);
	OK(connect(from, (struct sockaddr *)&sin, sizeof(sin)));
	sin = own_address(from);
	OK(connect(u, (struct sockaddr *)&sin, sizeof(sin)));
	send_byte(from);
	CHECK(ready(u, POLLIN, 10000) != 0);
	later(&l, 50, shut_reading, u);
	CHECK_EQ(recv(u, buf, 8, 0), 1);
	CHECK_EQ(recv(u, buf, 8, 0), 0);	/* woken, or shut already */
	later_join(&l);
	FAILS(recv(u, buf, 8, MSG_DONTWAIT), EAGAIN);
	CHECK(ready(u, POLLIN | POLLRDHUP, 0) == (POLLIN | POLLRDHUP));
	send_byte(from);		/* is still received, as on Linux */
	while (recv(u, buf, 8, MSG_DONTWAIT) == -1) {
		CHECK_EQ(errno, EAGAIN);
		nap(1);
	}
	OK(close(from));
	OK(close(u));
}

/* As in Linux: ENOTCONN, and nevertheless shut down. */
TEST(shutdown_wakes_an_unconnected_receiver)
{
	int u = bound(SOCK_DGRAM);
	char c;

	FAILS(shutdown(u, SHUT_RDWR), ENOTCONN);
	CHECK_EQ(recv(u, &c, 1, 0), 0);
	CHECK((ready(u, POLLIN, 0) & (POLLIN | POLLHUP)) == (POLLIN | POLLHUP));
	OK(close(u));
}

TEST(a_negative_timeout_does_not_wait)
{
	struct timeval tv = { .tv_sec = -1 };
	int s[2];
	char c;

	tcp_pair(s);
	OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	FAILS(recv(s[0], &c, 1, 0), EAGAIN);
	tv = (struct timeval){ .tv_usec = -1 };
	FAILS(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)),
	    EDOM);
	close_pair(s);
}

TEST(datagram_sockets_do_not_accept)
{
	int u = bound(SOCK_DGRAM), s = bound(SOCK_STREAM);

	FAILS(accept(u, NULL, NULL), EOPNOTSUPP);
	FAILS(listen(u, 1), EOPNOTSUPP);
	FAILS(accept(s, NULL, NULL), EINVAL);
	OK(close(u));
	OK(close(s));
}

TEST(listeners_share_a_port)
{
	const int one = 1, clients = 64;
	struct sockaddr_in sin = loopback(0);
	int l[2], c[64], which, taken[2] = { 0, 0 };
	struct pollfd pfd[2];

	for (int i = 0; i < 2; i++) {
		l[i] = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		OK(setsockopt(l[i], SOL_SOCKET, SO_REUSEPORT, &one,
		    sizeof(one)));
		OK(bind(l[i], (struct sockaddr *)&sin, sizeof(sin)));
		OK(listen(l[i], clients));
		sin = own_address(l[i]);
		pfd[i] = (struct pollfd){ .fd = l[i], .events = POLLIN };
	}
	for (int i = 0; i < clients; i++)
		c[i] = connected_to(l[0]);
	/* the last segment of a handshake may arrive after connect() returned */
	for (int i = 0; i < clients; i++) {
		OK(poll(pfd, 2, -1));
		which = pfd[0].revents != 0 ? 0 : 1;
		OK(close(OK(accept(l[which], NULL, NULL))));
		taken[which]++;
	}
	CHECK(taken[0] > 0 && taken[1] > 0);
	for (int i = 0; i < clients; i++)
		OK(close(c[i]));
	/* without the option of both the port is taken */
	c[0] = OK(socket(AF_INET, SOCK_STREAM, 0));
	FAILS(bind(c[0], (struct sockaddr *)&sin, sizeof(sin)), EADDRINUSE);
	OK(close(c[0]));
	OK(close(l[0]));
	OK(close(l[1]));
}

TEST(congestion_controls_have_padded_names)
{
	int s = OK(socket(AF_INET, SOCK_STREAM, 0));
	char name[64];
	socklen_t len = sizeof(name);

	memset(name, 'x', sizeof(name));
	OK(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	CHECK_EQ(len, 16);
	CHECK_EQ(name[15], '\0');
	OK(close(s));
}

TEST(interfaces_have_one_list)
{
	struct if_nameindex *list = if_nameindex();
	unsigned n = 0;

	CHECK(list != NULL);
	for (; list[n].if_name != NULL; n++)
		CHECK_EQ(if_nametoindex(list[n].if_name), list[n].if_index);
	CHECK(n > 0);
	if_freenameindex(list);
	CHECK(if_nametoindex("lo") != 0);
}

/* RFC 3493 section 6.1: a server without a host name listens on all. */
TEST(servers_listen_on_both_families)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_PASSIVE }, *list;
	unsigned families = 0;

	CHECK_EQ(getaddrinfo(NULL, "80", &hints, &list), 0);
	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
		families |= a->ai_family == AF_INET6 ? 2 : 1;
	CHECK_EQ(families, 3);
	CHECK_EQ(list->ai_family, AF_INET);
	freeaddrinfo(list);
}

/* RFC 4007 section 11: the zone after '%' is an interface's name or index. */
TEST(zones_are_named_after_interfaces)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *info;
	struct if_nameindex *list = if_nameindex();
	struct sockaddr_in6 sin6;
	char text[64], host[64];

	for (unsigned n = 0; list[n].if_name != NULL; n++) {
		snprintf(text, sizeof(text), "fe80::8d%%%s", list[n].if_name);
		CHECK_EQ(getaddrinfo(text, "80", &hints, &info), 0);
		memcpy(&sin6, info->ai_addr, sizeof(sin6));
		freeaddrinfo(info);
		CHECK_EQ(sin6.sin6_scope_id, list[n].if_index);
		CHECK_EQ(getnameinfo((struct sockaddr *)&sin6, sizeof(sin6),
		    host, sizeof(host), NULL, 0, NI_NUMERICHOST), 0);
		CHECK(strcmp(host, text) == 0);
		CHECK_EQ(getnameinfo((struct sockaddr *)&sin6, sizeof(sin6),
		    host, (socklen_t)strlen(text), NULL, 0, NI_NUMERICHOST),
		    EAI_OVERFLOW);
	}
	if_freenameindex(list);
	/* Without room for a host, only the service is wanted. */
	CHECK_EQ(getnameinfo((struct sockaddr *)&sin6, sizeof(sin6), host, 0,
	    text, sizeof(text), NI_NUMERICHOST | NI_NUMERICSERV), 0);
	CHECK(strcmp(text, "80") == 0);
	sin6.sin6_scope_id = 7777;
	CHECK_EQ(getnameinfo((struct sockaddr *)&sin6, sizeof(sin6), host,
	    sizeof(host), NULL, 0, NI_NUMERICHOST), 0);
	CHECK(strcmp(host, "fe80::8d%7777") == 0);
	CHECK_EQ(getaddrinfo("fe80::8d%nothing", "80", &hints, &info),
	    EAI_NONAME);
}

TEST(numeric_addresses_need_no_interface)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;

	CHECK_EQ(getaddrinfo("::1", "80", &hints, &list), 0);
	CHECK_EQ(list->ai_family, AF_INET6);
	freeaddrinfo(list);
	CHECK_EQ(getaddrinfo("127.0.0.1", "80", &hints, &list), 0);
	CHECK_EQ(list->ai_family, AF_INET);
	freeaddrinfo(list);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
