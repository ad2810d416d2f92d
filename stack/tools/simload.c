/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads of simstack and hostload.  Streams are equal, and share only what
 * the stack shares.
 */
#include "tools/simload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/socketvar.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

#define	FLOWS		"16"	/* of a forwarded stream */
#define	MESSAGE		64	/* bytes, between UNIX-domain sockets */
#define	CHUNK		65536	/* bytes of one write to TCP */
#define	PORT		5000

/* Each stream has its own cache line, which matters on a real machine. */
static struct {
	_Alignas(64) uint64_t units;
} done[STREAMS_MAX];
static uint64_t limit = UINT64_MAX;	/* of units for each stream */

void
simload_limit(uint64_t units)
{
	limit = units != 0 ? units : UINT64_MAX;
}

int
simload_set(const char *name, const char *value)
{
	char why[256] = "";
	int error = sysctl_set(name, value, why, sizeof(why));

	if (error != 0)
		fprintf(stderr, "%s: %s=%s: %s\n",
		    program_invocation_short_name, name, value,
		    why[0] != '\0' ? why : strerror(error));
	return (error);
}

/* Sets if.memN.WHAT. */
static int
set_interface(unsigned n, const char *what, const char *fmt, ...)
    PRINTFLIKE(3, 4);
static int
set_interface(unsigned n, const char *what, const char *fmt, ...)
{
	char name[64], value[128];
	va_list ap;

	snprintf(name, sizeof(name), "if.mem%u.%s", n, what);
	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return (simload_set(name, value));
}

static void
check(int error, const char *what)
{
	if (error == 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
	    strerror(error));
	exit(1);
}

static void
start_thread(const char *name, void (*fn)(void *), unsigned n)
{
	struct thread *td;

	check(kthread_create(name, MACH_CPU_ANY, fn, (void *)(uintptr_t)n,
	    &td), name);
}

static uint64_t
count_done(unsigned streams)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < streams; i++)
		sum += done[i].units;
	return (sum);
}

/*
 * Forwarding: each stream is received by its own thread, and all are sent
 * through mem0, whose far end never blocks.
 */
static int
forward_configure(unsigned streams)
{
	int error = simload_set("net.inet.ip.forwarding", "1");

	if (error == 0)
		error = set_interface(0, "inet", "10.0.0.1/16");
	for (unsigned i = 1; i <= streams && error == 0; i++) {
		error = set_interface(i, "inet", "10.1.%u.1/24", i);
		if (error == 0)
			error = set_interface(i, "source", "from=10.1.%u.2 "
			    "to=10.0.%u.2 flows=" FLOWS " count=%llu", i, i,
			    limit == UINT64_MAX ? 0 : (unsigned long long)limit);
	}
	return (error);
}

static uint64_t
forward_count(unsigned streams)
{
	char text[32];

	(void)streams;
	check(sysctl_get("if.mem0.stats.opackets", text, sizeof(text)),
	    "if.mem0.stats.opackets");
	return (strtoull(text, NULL, 10));
}

static void
send_all(struct socket *so, char *buf, size_t len)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t sent;

	check(sosend(so, &msg, 0, &sent), "send");
}

static size_t
receive(struct socket *so, char *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t received;

	check(soreceive(so, &msg, flags, &received), "receive");
	return (received);
}

/* UNIX domain: ping-pong of messages, without end. */
static struct socket *pairs[STREAMS_MAX][2];

static int
no_configure(unsigned streams)
{
	(void)streams;
	return (0);
}

static void
unix_ask(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;
	char buf[MESSAGE] = "?";

	while (done[n].units < limit) {
		send_all(pairs[n][0], buf, sizeof(buf));
		(void)receive(pairs[n][0], buf, sizeof(buf), MSG_WAITALL);
		done[n].units++;
	}
}

static void
unix_answer(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;
	char buf[MESSAGE];

	for (;;) {
		(void)receive(pairs[n][1], buf, sizeof(buf), MSG_WAITALL);
		send_all(pairs[n][1], buf, sizeof(buf));
	}
}

static void
unix_start(unsigned streams)
{
	for (unsigned i = 0; i < streams; i++) {
		check(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]),
		    "socketpair");
		start_thread("answer", unix_answer, i);
		start_thread("ask", unix_ask, i);
	}
}

/*
 * TCP: streams from this stack to itself, each through the mirror of its own
 * interface.
 */
static int
tcp_configure(unsigned streams)
{
	int error = 0;

	for (unsigned i = 1; i <= streams && error == 0; i++) {
		error = set_interface(i, "inet", "10.1.%u.1/24", i);
		if (error == 0)
			error = set_interface(i, "wire", "mirror");
	}
	return (error);
}

static struct sockaddr_in
tcp_address(unsigned stream, unsigned host)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(PORT) };

	sin.sin_addr.s_addr = htonl(0x0a010000 | (stream + 1) << 8 | host);
	return (sin);
}

static void
tcp_serve(void *arg)
{
	const unsigned n = (unsigned)(uintptr_t)arg;
	struct socket *so;
	char *buf = kmalloc(CHUNK);

	check(soaccept(pairs[n][0], 0, NULL, NULL, &so), "accept");
	for (;;)
		done[n].units += receive(so, buf, CHUNK, 0);
}

static void
tcp_send(void *arg)
{
	struct sockaddr_in sin = tcp_address((unsigned)(uintptr_t)arg, 2);
	struct socket *so;
	uint64_t left = limit == UINT64_MAX ? limit : limit * 1000;
	char *buf = kmalloc(CHUNK);

	check(socreate(AF_INET, SOCK_STREAM, 0, &so), "socket");
	check(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    "connect");
	while (left > 0) {
		const size_t n = left < CHUNK ? left : CHUNK;

		send_all(so, buf, n);
		left -= n;
	}
}

static void
tcp_start(unsigned streams)
{
	for (unsigned i = 0; i < streams; i++) {
		struct sockaddr_in sin = tcp_address(i, 1);

		check(socreate(AF_INET, SOCK_STREAM, 0, &pairs[i][0]),
		    "socket");
		check(sobind(pairs[i][0], (struct sockaddr *)&sin,
		    sizeof(sin)), "bind");
		check(solisten(pairs[i][0], 1), "listen");
	}
	for (unsigned i = 0; i < streams; i++) {
		start_thread("receive", tcp_serve, i);
		start_thread("send", tcp_send, i);
	}
}

static uint64_t
tcp_count(unsigned streams)
{
	return (count_done(streams) / 1000);
}

const struct simload simloads[] = {
	{ "forward", "forwarding of small packets, from each stream's source "
	    "to a sink",
	    "packets", forward_configure, NULL, forward_count },
	{ "unix", "ping-pong of messages between two UNIX-domain sockets",
	    "transactions", no_configure, unix_start, count_done },
	{ "tcp", "bulk TCP transfer to the same stack, through a mirror",
	    "kilobytes", tcp_configure, tcp_start, tcp_count },
};
const unsigned nsimloads = nitems(simloads);
