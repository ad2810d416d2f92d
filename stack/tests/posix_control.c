/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages of datagrams: those returned by recvmsg(), and those given
 * to sendmsg() for one datagram (ip(7), ipv6(7), socket(7)).
 */
#include <linux/sockios.h>
#include <netinet/udp.h>

#include "posix.h"

#include <linux/errqueue.h>	/* needs struct timespec */

union control {
	char		 buf[256];
	struct cmsghdr	 align;
};

union address {
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static void
set_int(int fd, int level, int name, int value)
{
	int got = -1;
	socklen_t len = sizeof(got);

	OK(setsockopt(fd, level, name, &value, sizeof(value)));
	OK(getsockopt(fd, level, name, &got, &len));
	CHECK_EQ(got, value);
}

/* Sends one byte, with one control message if len > 0. */
static ssize_t
send_with(int fd, int level, int type, const void *data, size_t len)
{
	struct iovec iov = { "x", 1 };
	union control control = { .buf = "" };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (len > 0) {
		control.align.cmsg_level = level;
		control.align.cmsg_type = type;
		control.align.cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(&control.align), data, len);
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(len);
	}
	return (sendmsg(fd, &msg, 0));
}

/* Receives one byte; stores the sender's address in *from. */
static struct msghdr
receive(int fd, union control *control, size_t room, union address *from)
{
	static char c;
	static struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_name = from, .msg_namelen = sizeof(*from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control->buf, .msg_controllen = room
	};

	CHECK(ready(fd, POLLIN, 5000) & POLLIN);
	CHECK_EQ(recvmsg(fd, &msg, 0), 1);
	return (msg);
}

/* The data of the control message of a type, which must have len bytes. */
static const void *
find(struct msghdr *msg, int level, int type, size_t len)
{
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(msg); cm != NULL; cm = CMSG_NXTHDR(msg, cm))
		if (cm->cmsg_level == level && cm->cmsg_type == type) {
			CHECK_EQ(cm->cmsg_len, CMSG_LEN(len));
			return (CMSG_DATA(cm));
		}
	return (NULL);
}

TEST(nothing_comes_unasked)
{
	union control control;
	union address from;
	struct msghdr msg;
	int s[2];

	udp_pair(s);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	CHECK_EQ(msg.msg_controllen, 0);
	CHECK_EQ(msg.msg_flags, 0);
	CHECK_EQ(from.in.sin_port, own_address(s[0]).sin_port);
	close_pair(s);
}

TEST(the_address_it_was_sent_to)
{
	union control control;
	union address from;
	struct in_pktinfo info;
	struct msghdr msg;
	const void *data;
	int s[2];

	udp_pair(s);
	set_int(s[1], IPPROTO_IP, IP_PKTINFO, 1);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	data = find(&msg, IPPROTO_IP, IP_PKTINFO, sizeof(info));
	CHECK(data != NULL);
	memcpy(&info, data, sizeof(info));
	CHECK_EQ(info.ipi_addr.s_addr, htonl(INADDR_LOOPBACK));
	CHECK(info.ipi_ifindex > 0);
	close_pair(s);
}

static int
number(struct msghdr *msg, int level, int type, size_t len)
{
	const void *data = find(msg, level, type, len);
	int value = 0;

	CHECK(data != NULL);
	memcpy(&value, data, len);
	return (value);
}

TEST(time_to_live_and_type_of_service)
{
	union control control;
	union address from;
	struct msghdr msg;
	int s[2], ttl = 9, tos = 0x20;

	udp_pair(s);
	set_int(s[0], IPPROTO_IP, IP_TTL, 7);
	set_int(s[0], IPPROTO_IP, IP_TOS, 0x10);
	set_int(s[1], IPPROTO_IP, IP_RECVTTL, 1);
	set_int(s[1], IPPROTO_IP, IP_RECVTOS, 1);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	CHECK_EQ(number(&msg, IPPROTO_IP, IP_TTL, sizeof(int)), 7);
	CHECK_EQ(number(&msg, IPPROTO_IP, IP_TOS, 1), 0x10);
	/* applies to one datagram only */
	CHECK_EQ(send_with(s[0], IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)), 1);
	msg = receive(s[1], &control, sizeof(control), &from);
	CHECK_EQ(number(&msg, IPPROTO_IP, IP_TTL, sizeof(int)), 9);
	CHECK_EQ(send_with(s[0], IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 1);
	msg = receive(s[1], &control, sizeof(control), &from);
	CHECK_EQ(number(&msg, IPPROTO_IP, IP_TOS, 1), 0x20);
	CHECK_EQ(number(&msg, IPPROTO_IP, IP_TTL, sizeof(int)), 7);
	set_int(s[1], IPPROTO_IP, IP_RECVTTL, 0);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	CHECK(find(&msg, IPPROTO_IP, IP_TTL, sizeof(int)) == NULL);
	close_pair(s);
}

TEST(the_source_of_one_datagram)
{
	struct in_pktinfo info = {
		.ipi_spec_dst.s_addr = htonl(INADDR_LOOPBACK + 1)
	};
	union control control;
	union address from;
	struct sockaddr_in to;
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov,
		.msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(sizeof(info))
	};
	int r = bound(SOCK_DGRAM), s = OK(socket(AF_INET, SOCK_DGRAM, 0));

	to = own_address(r);
	memset(&control, 0, sizeof(control));
	control.align = (struct cmsghdr){
		.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO,
		.cmsg_len = CMSG_LEN(sizeof(info))
	};
	memcpy(CMSG_DATA(&control.align), &info, sizeof(info));
	CHECK_EQ(sendmsg(s, &msg, 0), 1);
	(void)receive(r, &control, sizeof(control), &from);
	CHECK_EQ(from.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK + 1));
	OK(close(r));
	OK(close(s));
}

TEST(the_same_of_version_six)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT
	};
	int r = OK(socket(AF_INET6, SOCK_DGRAM, 0)), hops = 5;
	int s = OK(socket(AF_INET6, SOCK_DGRAM, 0));
	socklen_t len = sizeof(sin6);
	struct in6_pktinfo info;
	union control control;
	union address from;
	struct msghdr msg;
	const void *data;

	OK(bind(r, (struct sockaddr *)&sin6, sizeof(sin6)));
	OK(getsockname(r, (struct sockaddr *)&sin6, &len));
	OK(connect(s, (struct sockaddr *)&sin6, sizeof(sin6)));
	set_int(r, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	set_int(r, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	set_int(r, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	set_int(s, IPPROTO_IPV6, IPV6_TCLASS, 0x20);
	CHECK_EQ(send_with(s, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops,
	    sizeof(hops)), 1);
	msg = receive(r, &control, sizeof(control), &from);
	CHECK_EQ(number(&msg, IPPROTO_IPV6, IPV6_HOPLIMIT, sizeof(int)), 5);
	CHECK_EQ(number(&msg, IPPROTO_IPV6, IPV6_TCLASS, sizeof(int)), 0x20);
	data = find(&msg, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info));
	CHECK(data != NULL);
	memcpy(&info, data, sizeof(info));
	CHECK(IN6_IS_ADDR_LOOPBACK(&info.ipi6_addr));
	CHECK(info.ipi6_ifindex > 0);
	OK(close(r));
	OK(close(s));
}

TEST(when_it_came)
{
	union control control;
	union address from;
	struct msghdr msg;
	struct timespec ts;
	struct timeval tv;
	const void *data;
	int s[2];

	udp_pair(s);
	set_int(s[1], SOL_SOCKET, SO_TIMESTAMP, 1);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	data = find(&msg, SOL_SOCKET, SCM_TIMESTAMP, sizeof(tv));
	CHECK(data != NULL);
	memcpy(&tv, data, sizeof(tv));
	CHECK(tv.tv_sec > time(NULL) - 600 && tv.tv_sec <= time(NULL) + 1);
	OK(setsockopt(s[1], SOL_SOCKET, SO_TIMESTAMPNS, &(int){ 1 },
	    sizeof(int)));
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	data = find(&msg, SOL_SOCKET, SCM_TIMESTAMPNS, sizeof(ts));
	CHECK(data != NULL);
	memcpy(&ts, data, sizeof(ts));
	CHECK(ts.tv_sec >= tv.tv_sec && ts.tv_sec <= time(NULL) + 1);
	close_pair(s);
}

/* A sender connected to a port of ::1. */
static int
connected6(in_port_t port)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
	    .sin6_addr = in6addr_loopback, .sin6_port = port };
	int s = OK(socket(AF_INET6, SOCK_DGRAM, 0));

	OK(connect(s, (struct sockaddr *)&to, sizeof(to)));
	return (s);
}

/* ip(7): also for an unbound address, and with the port. */
TEST(the_original_destination)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, sin6;
	socklen_t len = sizeof(any);
	struct sockaddr_in sin;
	union control control;
	union address from;
	struct msghdr msg;
	const void *data;
	int s[2], six, sender;

	udp_pair(s);
	set_int(s[1], IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	send_byte(s[0]);
	msg = receive(s[1], &control, sizeof(control), &from);
	data = find(&msg, IPPROTO_IP, IP_ORIGDSTADDR, sizeof(sin));
	CHECK(data != NULL);
	memcpy(&sin, data, sizeof(sin));
	CHECK_EQ(sin.sin_family, AF_INET);
	CHECK_EQ(sin.sin_port, own_address(s[1]).sin_port);
	CHECK_EQ(sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	/* a socket of IPv6 that serves IPv4 */
	six = OK(socket(AF_INET6, SOCK_DGRAM, 0));
	OK(bind(six, (struct sockaddr *)&any, sizeof(any)));
	OK(getsockname(six, (struct sockaddr *)&any, &len));
	set_int(six, IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	set_int(six, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1);
	sin.sin_port = any.sin6_port;
	OK(connect(s[0], (struct sockaddr *)&sin, sizeof(sin)));
	send_byte(s[0]);
	msg = receive(six, &control, sizeof(control), &from);
	data = find(&msg, IPPROTO_IP, IP_ORIGDSTADDR, sizeof(sin));
	CHECK(data != NULL);
	memcpy(&sin, data, sizeof(sin));
	CHECK_EQ(sin.sin_port, any.sin6_port);
	sender = connected6(any.sin6_port);
	send_byte(sender);
	msg = receive(six, &control, sizeof(control), &from);
	data = find(&msg, IPPROTO_IPV6, IPV6_ORIGDSTADDR, sizeof(sin6));
	CHECK(data != NULL);
	memcpy(&sin6, data, sizeof(sin6));
	CHECK_EQ(sin6.sin6_port, any.sin6_port);
	CHECK(IN6_IS_ADDR_LOOPBACK(&sin6.sin6_addr));
	close_pair(s);
	OK(close(sender));
	OK(close(six));
}

/* SO_NO_CHECK is for IPv4; IPv6 requires a checksum (RFC 8200 section 8.1). */
TEST(datagrams_without_a_checksum_arrive)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	int six = OK(socket(AF_INET6, SOCK_DGRAM, 0)), sender, s[2];
	socklen_t len = sizeof(any);
	char c;

	OK(bind(six, (struct sockaddr *)&any, sizeof(any)));
	OK(getsockname(six, (struct sockaddr *)&any, &len));
	sender = connected6(any.sin6_port);
	set_int(sender, SOL_SOCKET, SO_NO_CHECK, 1);
	send_byte(sender);
	CHECK(ready(six, POLLIN, 5000) & POLLIN);
	CHECK_EQ(recv(six, &c, 1, 0), 1);
	OK(close(sender));
	OK(close(six));
	udp_pair(s);
	set_int(s[0], SOL_SOCKET, SO_NO_CHECK, 1);
	send_byte(s[0]);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	set_int(s[0], SOL_SOCKET, SO_NO_CHECK, 0);
	send_byte(s[0]);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	close_pair(s);
}

/* UDP over IPv6 from s[0] to s[1] (RFC 6935). */
static void
udp6_pair(int s[2])
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
	    .sin6_addr = in6addr_loopback };
	socklen_t len = sizeof(sin6);

	for (unsigned i = 0; i < 2; i++)
		s[i] = OK(socket(AF_INET6, SOCK_DGRAM, 0));
	OK(bind(s[1], (struct sockaddr *)&sin6, sizeof(sin6)));
	OK(getsockname(s[1], (struct sockaddr *)&sin6, &len));
	OK(connect(s[0], (struct sockaddr *)&sin6, len));
}

TEST(ipv6_needs_a_checksum_unless_both_ends_do_without)
{
	int s[2];
	char c;

	udp6_pair(s);
	set_int(s[0], IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
	OK(send(s[0], "a", 1, 0));	/* dropped */
	set_int(s[0], IPPROTO_UDP, UDP_NO_CHECK6_TX, 0);
	OK(send(s[0], "b", 1, 0));
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(c, 'b');
	set_int(s[1], IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	set_int(s[0], IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
	OK(send(s[0], "c", 1, 0));
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(c, 'c');
	close_pair(s);
}

TEST(what_has_no_room_is_cut)
{
	union control control;
	union address from;
	struct msghdr msg;
	int s[2];

	udp_pair(s);
	set_int(s[1], IPPROTO_IP, IP_RECVTTL, 1);
	set_int(s[1], IPPROTO_IP, IP_PKTINFO, 1);
	for (size_t room = 0; room <= sizeof(control); room++) {
		send_byte(s[0]);
		memset(&control, 'c', sizeof(control));
		msg = receive(s[1], &control, room, &from);
		CHECK(msg.msg_controllen <= room);
		for (size_t i = room; i < sizeof(control); i++)
			CHECK_EQ(control.buf[i], 'c');
		CHECK_EQ((msg.msg_flags & MSG_CTRUNC) != 0, room <
		    CMSG_SPACE(sizeof(struct in_pktinfo)) +
		    CMSG_LEN(sizeof(int)));
	}
	close_pair(s);
}

TEST(bad_messages_are_refused)
{
	struct iovec iov = { "x", 1 };
	union control control = { .align = {
		.cmsg_level = IPPROTO_IP, .cmsg_type = IP_TTL,
		.cmsg_len = 1000
	} };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(sizeof(int))
	};
	int s[2], bad = 300;

	udp_pair(s);
	FAILS(sendmsg(s[0], &msg, 0), EINVAL);
	control.align.cmsg_len = 3;
	FAILS(sendmsg(s[0], &msg, 0), EINVAL);
	FAILS(send_with(s[0], IPPROTO_IP, IP_TTL, &bad, sizeof(bad)), EINVAL);
	FAILS(send_with(s[0], IPPROTO_IP, IP_TTL, &bad, 1), EINVAL);
	FAILS(send_with(s[0], IPPROTO_IP, 99, &bad, sizeof(bad)), EINVAL);
	FAILS(send_with(s[0], SOL_SOCKET, 99, &bad, sizeof(bad)), EINVAL);
	CHECK_EQ(send_with(s[0], 77, 99, &bad, sizeof(bad)), 1);
	close_pair(s);
}

/* udp(7): segments may be received merged, as they were written. */
TEST(segments_may_come_together)
{
	static const size_t size = 100, total = 350;
	char out[350], in[1000];
	struct iovec iov = { in, sizeof(in) };
	union control control;
	struct msghdr msg;
	size_t got, came;
	const int *merged;
	int s[2];

	for (size_t i = 0; i < total; i++)
		out[i] = (char)i;
	udp_pair(s);
	set_int(s[1], IPPROTO_UDP, UDP_GRO, 1);
	set_int(s[0], IPPROTO_UDP, UDP_SEGMENT, (int)size);
	CHECK_EQ(send(s[0], out, total, 0), total);
	for (got = 0; got < total; got += came) {
		msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1,
		    .msg_control = control.buf,
		    .msg_controllen = sizeof(control) };
		CHECK(ready(s[1], POLLIN, 5000) & POLLIN);
		came = (size_t)OK((int)recvmsg(s[1], &msg, 0));
		CHECK(came > 0 && memcmp(in, out + got, came) == 0);
		merged = find(&msg, IPPROTO_UDP, UDP_GRO, sizeof(int));
		if (merged != NULL)
			CHECK_EQ(*merged, size);
		else
			CHECK(came == size || got + came == total);
	}
	CHECK_EQ(got, total);
	close_pair(s);
}

/* tcp(7) TCP_INQ: after a FIN the value is at least 1. */
TEST(reads_of_a_stream_say_what_is_left)
{
	char c[2];
	struct iovec iov = { c, sizeof(c) };
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf, .msg_controllen = sizeof(control) };
	int s[2];

	tcp_pair(s);
	set_int(s[1], IPPROTO_TCP, TCP_INQ, 1);
	CHECK_EQ(send(s[0], "abcde", 5, 0), 5);
	CHECK(ready(s[1], POLLIN, 5000) & POLLIN);
	CHECK_EQ(recvmsg(s[1], &msg, 0), 2);
	CHECK_EQ(*(const int *)find(&msg, IPPROTO_TCP, TCP_CM_INQ,
	    sizeof(int)), 3);
	OK(shutdown(s[0], SHUT_WR));
	CHECK(ready(s[1], POLLRDHUP, 5000) & POLLRDHUP);
	iov.iov_len = 1;
	for (int i = 0; i < 3; i++) {
		msg.msg_controllen = sizeof(control);
		CHECK_EQ(recvmsg(s[1], &msg, 0), 1);
	}
	CHECK_EQ(*(const int *)find(&msg, IPPROTO_TCP, TCP_CM_INQ,
	    sizeof(int)), 1);
	close_pair(s);
}

/* The numbers of the sends, once each; several may come together. */
static unsigned
completed(int fd, unsigned *first)
{
	union control control;
	struct msghdr msg = { .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf) };
	struct sock_extended_err ee;
	struct cmsghdr *cm;

	CHECK(ready(fd, 0, 10000) & POLLERR);
	CHECK_EQ(recvmsg(fd, &msg, MSG_ERRQUEUE), 0);
	CHECK(msg.msg_flags & MSG_ERRQUEUE);
	CHECK((cm = CMSG_FIRSTHDR(&msg)) != NULL);
	CHECK_EQ(cm->cmsg_level, SOL_IP);
	CHECK_EQ(cm->cmsg_type, IP_RECVERR);
	CHECK_EQ(cm->cmsg_len, CMSG_LEN(sizeof(ee) +
	    sizeof(struct sockaddr_in)));
	memcpy(&ee, CMSG_DATA(cm), sizeof(ee));
	CHECK_EQ(ee.ee_errno, 0);
	CHECK_EQ(ee.ee_origin, SO_EE_ORIGIN_ZEROCOPY);
	*first = ee.ee_info;
	return (ee.ee_data - ee.ee_info + 1);
}

TEST(sends_without_a_copy_are_completed)
{
	struct msghdr none = { .msg_flags = MSG_TRUNC };
	unsigned first;
	int s[2];
	char buf[16];

	tcp_pair(s);
	CHECK_EQ(send(s[0], "abc", 3, MSG_ZEROCOPY), 3);	/* ignored */
	CHECK_EQ(ready(s[0], 0, 0), 0);
	set_int(s[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(send(s[0], "abc", 3, MSG_ZEROCOPY), 3);
	for (int left = 12; left > 0;)
		left -= OK(read(s[1], buf, sizeof(buf)));
	CHECK_EQ(completed(s[0], &first), 3);	/* adjacent ones at once */
	CHECK_EQ(first, 0);
	FAILS(recv(s[0], buf, 1, MSG_ERRQUEUE), EAGAIN);
	FAILS(recvmsg(s[0], &none, MSG_ERRQUEUE), EAGAIN);
	CHECK_EQ(none.msg_flags, MSG_TRUNC);	/* unchanged by an error */
	for (int i = 0; i < 3; i++)	/* nobody reads of these */
		CHECK_EQ(send(s[0], "abc", 3, MSG_ZEROCOPY), 3);
	close_pair(s);
}

TEST(several_messages_each_with_its_own)
{
	union control control[3] = { { .buf = "" } };
	char c[3];
	struct iovec iov[3] = { { &c[0], 1 }, { &c[1], 1 }, { &c[2], 1 } };
	struct mmsghdr vec[3] = { 0 };
	int s[2], ttl;

	udp_pair(s);
	set_int(s[1], IPPROTO_IP, IP_RECVTTL, 1);
	for (ttl = 1; ttl <= 3; ttl++) {
		CHECK_EQ(send_with(s[0], IPPROTO_IP, IP_TTL, &ttl,
		    sizeof(ttl)), 1);
		vec[ttl - 1].msg_hdr = (struct msghdr){
			.msg_iov = &iov[ttl - 1], .msg_iovlen = 1,
			.msg_control = control[ttl - 1].buf,
			.msg_controllen = sizeof(control[0])
		};
	}
	CHECK_EQ(recvmmsg(s[1], vec, 3, 0, NULL), 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(number(&vec[i].msg_hdr, IPPROTO_IP, IP_TTL,
		    sizeof(int)), i + 1);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
