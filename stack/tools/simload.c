/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads of simstack and hostload.  Streams are equal, and share only what
 * the stack shares.
 */
#include "tools/simload_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/sysctl.h"
#include "kern/thread.h"

#define	FLOWS		"16"	/* of a forwarded stream */

struct simload_done simload_done[STREAMS_MAX];
uint64_t simload_units = UINT64_MAX;

void
simload_limit(uint64_t units)
{
	simload_units = units != 0 ? units : UINT64_MAX;
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

int
simload_interface(unsigned n, const char *what, const char *fmt, ...)
{
	char name[64], value[128];
	va_list ap;

	snprintf(name, sizeof(name), "if.mem%u.%s", n, what);
	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return (simload_set(name, value));
}

void
simload_check(int error, const char *what)
{
	if (error == 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
	    strerror(error));
	exit(1);
}

void
simload_thread(const char *name, void (*fn)(void *), unsigned n)
{
	struct thread *td;

	simload_check(kthread_create(name, MACH_CPU_ANY, fn,
	    (void *)(uintptr_t)n, &td), name);
}

uint64_t
simload_count(unsigned streams)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < streams; i++)
		sum += simload_done[i].units;
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
		error = simload_interface(0, "inet", "10.0.0.1/16");
	for (unsigned i = 1; i <= streams && error == 0; i++) {
		error = simload_interface(i, "inet", "10.1.%u.1/24", i);
		if (error == 0)
			error = simload_interface(i, "source", "from=10.1.%u.2 "
			    "to=10.0.%u.2 flows=" FLOWS " count=%llu", i, i,
			    simload_units == UINT64_MAX ? 0 :
			    (unsigned long long)simload_units);
	}
	return (error);
}

static uint64_t
forward_count(unsigned streams)
{
	char text[32];

	(void)streams;
	simload_check(sysctl_get("if.mem0.stats.opackets", text, sizeof(text)),
	    "if.mem0.stats.opackets");
	return (strtoull(text, NULL, 10));
}

void
simload_send(struct socket *so, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t sent;

	simload_check(sosend(so, &msg, 0, &sent), "send");
}

size_t
simload_receive(struct socket *so, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t received;

	simload_check(soreceive(so, &msg, flags, &received), "receive");
	return (received);
}

void
simload_ask(struct socket *so, unsigned n)
{
	char buf[MESSAGE] = "?";

	while (simload_done[n].units < simload_units) {
		simload_send(so, buf, sizeof(buf));
		(void)simload_receive(so, buf, sizeof(buf), MSG_WAITALL);
		simload_done[n].units++;
	}
}

void
simload_answer(struct socket *so)
{
	char buf[MESSAGE];

	while (simload_receive(so, buf, sizeof(buf), MSG_WAITALL) > 0)
		simload_send(so, buf, sizeof(buf));
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

	simload_ask(pairs[n][0], n);
}

static void
unix_answer(void *arg)
{
	simload_answer(pairs[(uintptr_t)arg][1]);
}

static void
unix_start(unsigned streams)
{
	for (unsigned i = 0; i < streams; i++) {
		simload_check(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]),
		    "socketpair");
		simload_thread("answer", unix_answer, i);
		simload_thread("ask", unix_ask, i);
	}
}

const struct simload simloads[] = {
	{ "forward", "forwarding of small packets, from each stream's source "
	    "to a sink",
	    "packets", forward_configure, NULL, forward_count },
	{ "unix", "ping-pong of messages between two UNIX-domain sockets",
	    "transactions", no_configure, unix_start, simload_count },
	{ "tcp", "bulk TCP transfer to the same stack, through a mirror",
	    "kilobytes", simload_mirrors, simload_tcp_start,
	    simload_tcp_count },
	{ "rr", "requests of 64 bytes and answers on a TCP connection",
	    "transactions", simload_mirrors, simload_rr_start, simload_count },
	{ "crr", "a TCP connection for each request, to one listener for all "
	    "streams",
	    "transactions", simload_mirrors, simload_crr_start,
	    simload_count },
	{ "udp", "requests of 64 bytes and answers in UDP datagrams",
	    "transactions", simload_mirrors, simload_udp_start,
	    simload_count },
};
const unsigned nsimloads = nitems(simloads);
