/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets over loopback: what a program sees of them. */
#include "tests/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>

#include "kern/socketvar.h"
#include "kern/thread.h"

static struct sockaddr_in
loopback(uint16_t port)
{
	return ((struct sockaddr_in){ .sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) });
}

static struct socket *
listener(uint16_t port)
{
	struct sockaddr_in sin = loopback(port);
	struct socket *so;

	CHECK_EQ(socreate(AF_INET, SOCK_STREAM, 0, &so), 0);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
	CHECK_EQ(solisten(so, 5), 0);
	return (so);
}

static size_t
put(struct socket *so, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	CHECK_EQ(sosend(so, &msg, 0, &done), 0);
	return (done);
}

static int
get(struct socket *so, void *buf, size_t len, int flags, size_t *done)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return (soreceive(so, &msg, flags, done));
}

TEST(bytes_go_both_ways_and_end)
{
	struct sockaddr_in sin = loopback(7001);
	struct socket *head = listener(7001), *a, *b;
	char buf[100];
	size_t n;

	CHECK_EQ(socreate(AF_INET, SOCK_STREAM, 0, &a), 0);
	CHECK_EQ(soconnect(a, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	CHECK_EQ(soaccept(head, 0, NULL, NULL, &b), 0);
	CHECK_EQ(put(a, "hello", 5), 5);
	CHECK_EQ(get(b, buf, sizeof(buf), 0, &n), 0);
	CHECK_EQ(n, 5);
	CHECK_EQ(memcmp(buf, "hello", 5), 0);
	CHECK_EQ(put(b, "world!", 6), 6);
	CHECK_EQ(soshutdown(b, SHUT_WR), 0);
	CHECK_EQ(get(a, buf, sizeof(buf), MSG_WAITALL, &n), 0);
	CHECK_EQ(n, 6);
	CHECK_EQ(get(a, buf, sizeof(buf), 0, &n), 0);
	CHECK_EQ(n, 0);
	soclose(a);
	soclose(b);
	soclose(head);
}

int
main(int argc, char **argv)
{
	CHECK_EQ(stack_boot(NULL), 0);
	return (check_main(argc, argv));
}
