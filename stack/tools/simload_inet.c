/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads between sockets of the internet protocols: from this stack to
 * itself, each stream through the mirror of its own interface.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "kern/thread.h"
#include "tools/simload_private.h"

#define	CHUNK		65536	/* bytes of one write to TCP */
#define	PORT		5000
#define	BACKLOG		256	/* more than all streams */

/* The listeners, or datagram sockets, of the streams; one may be for all. */
static struct socket *servers[STREAMS_MAX];

int
simload_mirrors(unsigned streams)
{
	int error = 0;

	for (unsigned i = 1; i <= streams && error == 0; i++) {
		error = simload_interface(i, "inet", "10.1.%u.1/24", i);
		if (error == 0)
			error = simload_interface(i, "wire", "mirror");
	}
	return (error);
}

/* Host 1 is this stack, and host 2 is seen in the mirror. */
static struct sockaddr_in
address(unsigned stream, unsigned host)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(PORT) };

	sin.sin_addr.s_addr = htonl(0x0a010000 | (stream + 1) << 8 | host);
	return (sin);
}

static struct socket *
make_socket(int type)
{
	struct socket *so;

	simload_check(socreate(AF_INET, type, 0, &so), "socket");
	return (so);
}

static struct socket *
bind_to(int type, struct sockaddr_in sin)
{
	struct socket *so = make_socket(type);

	simload_check(sobind(so, (struct sockaddr *)&sin, sizeof(sin)),
	    "bind");
	return (so);
}

static struct socket *
connect_to(int type, unsigned stream)
{
	struct sockaddr_in sin = address(stream, 2);
	struct socket *so = make_socket(type);

	simload_check(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    "connect");
	return (so);
}

static struct socket *
accept_from(struct socket *head)
{
	struct socket *so;

	simload_check(soaccept(head, 0, NULL, NULL, &so), "accept");
	return (so);
}

/* A listener and two threads for each stream. */
static void
start_streams(unsigned streams, void (*serve)(void *), void (*ask)(void *))
{
	for (unsigned i = 0; i < streams; i++) {
		servers[i] = bind_to(SOCK_STREAM, address(i, 1));
		simload_check(solisten(servers[i], 1), "listen");
	}
	for (unsigned i = 0; i < streams; i++) {
		simload_thread("serve", serve, i);
		simload_thread("ask", ask, i);
	}
}

static void
tcp_serve(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;
	struct socket *so = accept_from(servers[n]);
	char *buf = kmalloc(CHUNK);

	for (;;)
		simload_done[n].units += simload_receive(so, buf, CHUNK, 0);
}

static void
tcp_send(void *arg)
{
	struct socket *so = connect_to(SOCK_STREAM, (unsigned)(uintptr_t)arg);
	uint64_t left = simload_units == UINT64_MAX ? UINT64_MAX :
	    simload_units * 1000;
	char *buf = kmalloc(CHUNK);

	while (left > 0) {
		const size_t n = left < CHUNK ? left : CHUNK;

		simload_send(so, buf, n);
		left -= n;
	}
}

void
simload_tcp_start(unsigned streams)
{
	start_streams(streams, tcp_serve, tcp_send);
}

uint64_t
simload_tcp_count(unsigned streams)
{
	return (simload_count(streams) / 1000);
}

static void
rr_serve(void *arg)
{
	simload_answer(accept_from(servers[(uintptr_t)arg]));
}

static void
rr_ask(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;

	simload_ask(connect_to(SOCK_STREAM, n), n);
}

void
simload_rr_start(unsigned streams)
{
	start_streams(streams, rr_serve, rr_ask);
}

/* A connection for each request; one listener for all streams. */
static void
crr_serve(void *arg)
{
	(void)arg;
	for (;;) {
		struct socket *so = accept_from(servers[0]);

		simload_answer(so);
		(void)soclose(so);
	}
}

static void
crr_ask(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;
	char buf[MESSAGE] = "?";

	while (simload_done[n].units < simload_units) {
		struct socket *so = connect_to(SOCK_STREAM, n);

		simload_send(so, buf, sizeof(buf));
		(void)simload_receive(so, buf, sizeof(buf), MSG_WAITALL);
		(void)soclose(so);
		simload_done[n].units++;
	}
}

void
simload_crr_start(unsigned streams)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
	    .sin_port = htons(PORT) };

	servers[0] = bind_to(SOCK_STREAM, any);
	simload_check(solisten(servers[0], BACKLOG), "listen");
	for (unsigned i = 0; i < streams; i++) {
		simload_thread("serve", crr_serve, i);
		simload_thread("ask", crr_ask, i);
	}
}

/* Datagrams there and back; none is lost, because one is under way. */
static void
udp_serve(void *arg)
{
	struct socket *so = servers[(uintptr_t)arg];
	struct sockaddr_storage from;
	char buf[MESSAGE];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_name = &from };
	size_t n;

	for (;;) {
		msg.msg_namelen = sizeof(from);
		simload_check(soreceive(so, &msg, 0, &n), "receive");
		simload_check(sosend(so, &msg, 0, &n), "send");
	}
}

static void
udp_ask(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;

	simload_ask(connect_to(SOCK_DGRAM, n), n);
}

void
simload_udp_start(unsigned streams)
{
	for (unsigned i = 0; i < streams; i++)
		servers[i] = bind_to(SOCK_DGRAM, address(i, 1));
	for (unsigned i = 0; i < streams; i++) {
		simload_thread("serve", udp_serve, i);
		simload_thread("ask", udp_ask, i);
	}
}
