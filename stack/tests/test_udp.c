/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP sockets: over loopback, over a wire, and against single packets. */
#include "tests/check.h"

#include <errno.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>

#include "netinet/in_family.h"
#include "tests/peer.h"

#define	LO	"127.0.0.1"

static uint16_t next_port = 7100;

static struct socket *
bound(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct socket *so = t_socket(SOCK_DGRAM);

	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return (so);
}

static int
send_to(struct socket *so, const char *ip, uint16_t port, const void *buf,
    size_t len)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	return (sosend(so, &msg, 0, &done));
}

static size_t
receive(struct socket *so, void *buf, size_t room, int flags, int *msgflags,
    struct sockaddr_in *from)
{
	struct iovec iov = { buf, room };
	struct msghdr msg = { .msg_name = from, .msg_iov = &iov,
	    .msg_namelen = from != NULL ? sizeof(*from) : 0,
	    .msg_iovlen = 1 };
	size_t done;

	CHECK_EQ(soreceive(so, &msg, flags, &done), 0);
	if (msgflags != NULL)
		*msgflags = msg.msg_flags;
	return (done);
}

TEST(datagrams_keep_their_borders_and_sender)
{
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port), *b = bound(LO, next_port++);
	struct sockaddr_in from;
	char buf[100];

	CHECK_EQ(send_to(b, LO, port, "one", 3), 0);
	CHECK_EQ(send_to(b, LO, port, "", 0), 0);
	CHECK_EQ(send_to(b, LO, port, "three", 5), 0);
	CHECK_EQ(receive(a, buf, sizeof(buf), 0, NULL, &from), 3);
	CHECK_EQ(ntohs(from.sin_port), next_port - 1);
	CHECK_EQ(receive(a, buf, sizeof(buf), 0, NULL, NULL), 0);
	CHECK_EQ(receive(a, buf, sizeof(buf), 0, NULL, NULL), 5);
	CHECK_EQ(memcmp(buf, "three", 5), 0);
	soclose(a);
	soclose(b);
}

TEST(what_does_not_fit_is_cut)
{
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port), *b = t_socket(SOCK_DGRAM);
	char buf[4];
	int flags;

	CHECK_EQ(send_to(b, LO, port, "0123456789", 10), 0);
	CHECK_EQ(receive(a, buf, 4, MSG_PEEK, &flags, NULL), 4);
	CHECK(flags & MSG_TRUNC);
	CHECK_EQ(soavail(a), 10);
	CHECK_EQ(receive(a, buf, 4, MSG_TRUNC, &flags, NULL), 10);
	CHECK(flags & MSG_TRUNC);
	CHECK_EQ(soavail(a), 0);
	soclose(a);
	soclose(b);
}

TEST(large_datagrams_pass_in_fragments)
{
	struct socket *a = bound("0.0.0.0", 7300), *b = t_socket(SOCK_DGRAM);
	static uint8_t out[65508], in[60000];
	size_t done;

	t_stream_fill(5, 0, out, sizeof(in));
	CHECK_EQ(send_to(b, "10.9.0.2", 7300, out, sizeof(in)), 0);
	CHECK_EQ(receive(a, in, sizeof(in), 0, NULL, NULL), sizeof(in));
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	CHECK_EQ(t_trysend(b, out, sizeof(in), 0, &done), EDESTADDRREQ);
	CHECK_EQ(send_to(b, "10.9.0.2", 7300, out, 65508), EMSGSIZE);
	soclose(a);
	soclose(b);
}

TEST(dont_fragment_says_emsgsize)
{
	const struct in6_addr narrow = in_map(t_addr("10.9.0.77", 0).sin_addr);
	struct socket *so = t_socket(SOCK_DGRAM);
	static uint8_t out[3000];

	t_setint(so, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	CHECK_EQ(send_to(so, "10.9.0.2", 7300, out, sizeof(out)), EMSGSIZE);
	/* a path whose MTU ICMP has reported */
	CHECK_EQ(send_to(so, "10.9.0.77", 7300, out, 1472), 0);
	in_pmtu_update(&narrow, 0, 1000);
	CHECK_EQ(send_to(so, "10.9.0.77", 7300, out, 973), EMSGSIZE);
	CHECK_EQ(send_to(so, "10.9.0.77", 7300, out, 972), 0);
	t_setint(so, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT);
	CHECK_EQ(send_to(so, "10.9.0.77", 7300, out, 1472), 0);
	soclose(so);
}

TEST(connected_sockets_hear_one_peer_and_errors)
{
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port), *b = bound(LO, next_port++);
	struct socket *c = bound(LO, next_port++);
	struct sockaddr_in sin = t_addr(LO, port);
	char buf[10];
	size_t n;

	CHECK_EQ(soconnect(b, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	CHECK_EQ(send_to(c, LO, (uint16_t)(next_port - 2), "x", 1), 0);
	t_sleep(10);
	CHECK_EQ(t_tryrecv(b, buf, 1, MSG_DONTWAIT, &n), EWOULDBLOCK);
	t_send(b, "hi", 2);
	CHECK_EQ(receive(a, buf, sizeof(buf), 0, NULL, &sin), 2);
	soclose(a);
	/* the socket is closed: an ICMP error is returned */
	t_send(b, "hi", 2);
	while ((sopoll(b, POLLIN) & POLLERR) == 0)
		t_sleep(1);
	CHECK_EQ(t_tryrecv(b, buf, 1, 0, &n), ECONNREFUSED);
	/* disconnected, it receives from all */
	sin.sin_family = AF_UNSPEC;
	CHECK_EQ(soconnect(b, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	CHECK_EQ(send_to(c, LO, (uint16_t)(next_port - 2), "x", 1), 0);
	CHECK_EQ(receive(b, buf, sizeof(buf), 0, NULL, NULL), 1);
	soclose(b);
	soclose(c);
}

static int
send_segments(struct socket *so, const void *buf, size_t len, uint16_t size)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 99);
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	union { struct cmsghdr cm; char buf[CMSG_SPACE(2)]; } control = {
		.cm = { CMSG_LEN(sizeof(size)), IPPROTO_UDP, UDP_SEGMENT } };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
	    .msg_controllen = sizeof(control) };
	size_t done;

	memcpy(CMSG_DATA(&control.cm), &size, sizeof(size));
	return (sosend(so, &msg, 0, &done));
}

TEST(one_write_is_many_datagrams_if_asked)
{
	struct socket *so = t_socket(SOCK_DGRAM);
	static uint8_t out[3000];
	struct peer_seg s;
	unsigned n;

	CHECK_EQ(send_to(so, PEER_IP, 99, "x", 1), 0);	/* ARP */
	peer_forget();
	CHECK_EQ(send_segments(so, out, sizeof(out), 1000), 0);
	for (n = 0; peer_next(&s); n++)
		CHECK_EQ(s.proto, IPPROTO_UDP);
	CHECK_EQ(n, 3);
	CHECK_EQ(send_segments(so, out, sizeof(out), 700), 0);
	for (n = 0; peer_next(&s); n++)
		continue;
	CHECK_EQ(n, 5);
	CHECK_EQ(send_segments(so, out, sizeof(out), 1473), EINVAL);
	CHECK_EQ(send_segments(so, out, sizeof(out), 23), EINVAL);
	t_setint(so, IPPROTO_UDP, UDP_SEGMENT, 1500);
	CHECK_EQ(t_getint(so, IPPROTO_UDP, UDP_SEGMENT), 1500);
	CHECK_EQ(send_to(so, PEER_IP, 99, out, 900), 0);
	for (n = 0; peer_next(&s); n++)
		continue;
	CHECK_EQ(n, 1);
	soclose(so);
}

static uint64_t
arrived(void)
{
	return (t_sysctl("net.inet.udp.stats.fullsock") +
	    t_sysctl("net.inet.udp.stats.delivered"));
}

static bool
have_arrived(void *total)
{
	return (arrived() == *(uint64_t *)total);
}

/* A datagram whose bytes count up, for receive_merged() to check. */
static int
send_counting(struct socket *so, uint16_t port, size_t len)
{
	uint8_t out[2000];

	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(i % 251);
	return (send_to(so, LO, port, out, len));
}

/* Receives merged datagrams; returns their segment size and length. */
static int
receive_merged(struct socket *so, size_t *len)
{
	static char buf[65536];
	union { char buf[64]; struct cmsghdr align; } c;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = c.buf, .msg_controllen = sizeof(c.buf) };
	struct cmsghdr *cm;
	int size = 0;

	CHECK_EQ(soreceive(so, &msg, 0, len), 0);
	for (cm = CMSG_FIRSTHDR(&msg); cm != NULL; cm = CMSG_NXTHDR(&msg, cm)) {
		if (cm->cmsg_level != IPPROTO_UDP)
			continue;
		CHECK_EQ(cm->cmsg_type, UDP_GRO);
		CHECK_EQ(cm->cmsg_len, CMSG_LEN(sizeof(size)));
		memcpy(&size, CMSG_DATA(cm), sizeof(size));
	}
	for (size_t i = 0; i < *len; i++)
		CHECK_EQ((uint8_t)buf[i], i % (size != 0 ? (size_t)size :
		    *len) % 251);
	return (size);
}

TEST(gro_joins_what_one_sender_sent)
{
	/* sent in this order */
	static const struct { unsigned from, len, ttl; } sends[] = {
		{ 0, 100, 64 }, { 0, 100, 64 }, { 0, 100, 64 }, { 0, 40, 64 },
		{ 0, 40, 64 }, { 0, 41, 64 }, { 1, 41, 64 }, { 1, 0, 64 },
		{ 1, 41, 64 }, { 1, 41, 9 }, { 1, 1000, 9 }, { 1, 1000, 9 },
	};
	static const struct { size_t len; int size; } want[] = {
		{ 340, 100 }, { 40, 0 }, { 41, 0 }, { 41, 0 }, { 0, 0 },
		{ 41, 0 }, { 41, 0 }, { 2000, 1000 },
	};
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port);
	struct socket *b[2];
	uint64_t total = arrived();
	size_t len;

	for (int i = 0; i < 2; i++)
		b[i] = bound(LO, next_port++);
	t_setint(a, IPPROTO_UDP, UDP_GRO, 1);
	CHECK_EQ(t_getint(a, IPPROTO_UDP, UDP_GRO), 1);
	t_setint(a, IPPROTO_IP, IP_RECVTTL, 1);
	for (size_t i = 0; i < nitems(sends); i++) {
		t_setint(b[sends[i].from], IPPROTO_IP, IP_TTL,
		    (int)sends[i].ttl);
		CHECK_EQ(send_counting(b[sends[i].from], port, sends[i].len),
		    0);
		total++;
		CHECK(t_until(have_arrived, &total));
	}
	for (size_t i = 0; i < nitems(want); i++) {
		CHECK_EQ(receive_merged(a, &len), want[i].size);
		CHECK_EQ(len, want[i].len);
	}
	soclose(a);
	soclose(b[0]);
	soclose(b[1]);
}

TEST(gro_has_an_end)
{
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port), *b = bound(LO, next_port++);
	uint64_t total = arrived();
	size_t len;

	t_setint(a, IPPROTO_UDP, UDP_GRO, 1);
	for (unsigned i = 0; i < 100; i++, total++) {
		CHECK_EQ(send_counting(b, port, i < 65 ? 10 : 2000), 0);
		if (i % 8 == 7) {	/* loopback's queue is short */
			uint64_t sofar = total + 1;

			CHECK(t_until(have_arrived, &sofar));
		}
	}
	CHECK(t_until(have_arrived, &total));
	CHECK_EQ(receive_merged(a, &len), 10);
	CHECK_EQ(len, 640);		/* max 64 segments, as in Linux */
	CHECK_EQ(receive_merged(a, &len), 0);
	CHECK_EQ(len, 10);
	CHECK_EQ(receive_merged(a, &len), 2000);
	CHECK_EQ(len, 64000);		/* at most the length of a datagram */
	CHECK_EQ(receive_merged(a, &len), 2000);
	CHECK_EQ(len, 6000);
	soclose(a);
	soclose(b);
}

TEST(closed_ports_answer_by_icmp)
{
	struct peer_seg s;

	peer_forget();
	peer_udp(1234, 4, "abc", 3);
	CHECK(peer_next(&s));
	CHECK_EQ(s.proto, IPPROTO_ICMP);
	CHECK_EQ(s.icmp_type, ICMP_DEST_UNREACH);
	CHECK_EQ(s.icmp_code, ICMP_PORT_UNREACH);
}

/*
 * A report is kept for all connections to a host, so it must quote the ports of
 * a connected socket.  Another socket that requests errors only gets this one.
 */
TEST(a_path_mtu_needs_a_connected_socket)
{
	const uint16_t port = next_port++;
	const struct in6_addr dst = in_map(t_addr("10.8.0.77", 0).sin_addr);
	struct sockaddr_in sin = t_addr("10.8.0.77", 99);
	struct socket *so = bound("0.0.0.0", port);

	t_setint(so, IPPROTO_IP, IP_RECVERR, 1);
	peer_udp_toobig(port, "10.8.0.77", 99, 1000);
	CHECK_EQ(in_pmtu(&dst, 0, 1500), 1500);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), EMSGSIZE);
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	peer_udp_toobig(port, "10.8.0.77", 98, 1000);	/* another port */
	peer_udp_toobig(port, "10.8.0.78", 99, 1000);	/* another host */
	CHECK_EQ(in_pmtu(&dst, 0, 1500), 1500);
	peer_udp_toobig(port, "10.8.0.77", 99, 1000);
	CHECK_EQ(in_pmtu(&dst, 0, 1500), 1000);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), EMSGSIZE);
	soclose(so);
}

TEST(broadcast_needs_permission)
{
	struct socket *so = t_socket(SOCK_DGRAM);
	struct peer_seg s;

	peer_forget();
	CHECK_EQ(send_to(so, "10.8.0.255", 99, "x", 1), EACCES);
	t_setint(so, SOL_SOCKET, SO_BROADCAST, 1);
	CHECK_EQ(send_to(so, "10.8.0.255", 99, "x", 1), 0);
	CHECK(peer_next(&s));
	CHECK_EQ(s.proto, IPPROTO_UDP);
	soclose(so);
}

TEST(a_full_buffer_drops)
{
	uint16_t port = next_port++;
	struct socket *a = bound(LO, port), *b = t_socket(SOCK_DGRAM);
	uint64_t before = t_sysctl("net.inet.udp.stats.fullsock");
	uint64_t total = arrived() + 100;
	char buf[1000] = "";
	size_t n, got = 0;

	t_setint(a, SOL_SOCKET, SO_RCVBUF, 20000);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(send_to(b, LO, port, buf, sizeof(buf)), 0);
		t_sleep(1);	/* the queue of the loopback is shorter */
	}
	CHECK(t_until(have_arrived, &total));
	while (t_tryrecv(a, buf, sizeof(buf), MSG_DONTWAIT, &n) == 0)
		got++;
	CHECK(got >= 10 && got <= 20);
	CHECK_EQ(t_sysctl("net.inet.udp.stats.fullsock"), before + 100 - got);
	soclose(a);
	soclose(b);
}

int
main(int argc, char **argv)
{
	t_boot();
	peer_attach();
	t_mirror_attach("mem0", "10.9.0.1/24", 0, NULL);
	return (check_main(argc, argv));
}
