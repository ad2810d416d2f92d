/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcpload -e: all connections of an end in one thread, as in programs with an
 * event loop.
 */
#include "tools/tcpload.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define	EVENTS_MAX	64	/* of one call */

static void
watch(int ep, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0)
		die("epoll");
}

static int
epoll(void)
{
	int ep = epoll_create1(0);

	if (ep < 0)
		die("epoll");
	return (ep);
}

/* by descriptor; size 0: not received yet */
static struct hello hellos[CONNECTIONS_MAX];

static void
welcome(int ep, int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd >= CONNECTIONS_MAX) {
		close(fd);
	} else if (fd >= 0) {
		no_delay(fd);
		hellos[fd].size = 0;
		watch(ep, fd, EPOLLIN);
	}
}

/*
 * True if more may follow.  The rest of a hello or request arrives with its
 * first byte, so waiting for it does not delay others.
 */
static bool
serve_event(int fd)
{
	static char buf[SIZE_MAX_RR];
	struct hello *h = &hellos[fd];

	if (h->size == 0) {
		if (!read_all(fd, h, sizeof(*h)) || h->size == 0 ||
		    h->size > SIZE_MAX_RR || (h->mode != RR && h->mode != CRR))
			return (false);
		if (h->mode == RR)
			return (true);
	}
	return (read_all(fd, buf, h->size) && write_all(fd, buf, h->size) &&
	    h->mode == RR);
}

_Noreturn void
serve_events(int listener)
{
	struct epoll_event events[EVENTS_MAX];
	int ep = epoll(), n;

	watch(ep, listener, EPOLLIN);
	for (;;) {
		n = epoll_wait(ep, events, EVENTS_MAX, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				welcome(ep, listener);
			else if (!serve_event(fd))
				close(fd);
		}
	}
}

/* By descriptor, which may be larger than the number of connections. */
static struct asked {
	bool		 greeted;
	uint32_t	 left;	/* bytes left of the response */
} asked[2 * CONNECTIONS_MAX];
static char block[SIZE_MAX_EVENTS];

/* Starts a connection and watches all its events. */
static void
begin(int ep)
{
	int fd = socket(options.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || fd >= 2 * CONNECTIONS_MAX ||
	    (connect(fd, (struct sockaddr *)&options.sa, options.salen) != 0 &&
	    errno != EINPROGRESS))
		die("connect");
	asked[fd].greeted = false;
	watch(ep, fd, EPOLLIN | EPOLLOUT | EPOLLET);
}

static void
request(int fd)
{
	asked[fd].left = options.size;
	if (!write_all(fd, block, options.size))
		die("request");
}

/* Whether bytes were received; the end of file counts as none. */
static bool
received(int fd, size_t len, ssize_t *n)
{
	*n = recv(fd, block, len, 0);
	if (*n < 0 && errno != EAGAIN)
		die("transfer");
	return (*n >= 0);
}

static void
ask_event(int ep, int fd)
{
	struct asked *a = &asked[fd];
	ssize_t n;

	if (!a->greeted) {
		if (!say_hello_to(fd))
			die("connect");
		a->greeted = true;
		request(fd);
		return;
	}
	for (; a->left > 0; a->left -= (uint32_t)n) {
		if (!received(fd, a->left, &n))
			return;
		if (n == 0)
			die("transfer");
	}
	if (options.mode == RR) {
		request(fd);
	} else {
		if (!received(fd, 1, &n))
			return;
		if (n != 0)
			die("end");
		reset(fd);
		begin(ep);
	}
	count(1);
}

void *
ask_events(void *arg)
{
	struct epoll_event events[EVENTS_MAX];
	int ep = epoll(), n;

	(void)arg;
	for (int i = 0; i < options.connections; i++)
		begin(ep);
	for (;;) {
		n = epoll_wait(ep, events, EVENTS_MAX, -1);
		for (int i = 0; i < n; i++)
			ask_event(ep, events[i].data.fd);
	}
}
