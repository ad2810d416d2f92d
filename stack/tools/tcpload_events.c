/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcpload serve -e: all connections in one thread, as servers with an event
 * loop have them.
 */
#include "tools/tcpload.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define	EVENTS_MAX	64	/* of one call */

static void
watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0)
		die("epoll");
}

/*
 * A client says hello when it has connected, and the rest of a request comes
 * with its first byte: who waits for either keeps nobody waiting for long.
 */
static void
welcome(int ep, int listener, uint32_t *sizes)
{
	int fd = accept(listener, NULL, NULL);
	struct hello h;

	if (fd < 0)
		return;
	no_delay(fd);
	if (fd < CONNECTIONS_MAX && read_all(fd, &h, sizeof(h)) &&
	    h.mode == RR && h.size <= SIZE_MAX_RR) {
		sizes[fd] = h.size;
		watch(ep, fd);
	} else {
		close(fd);
	}
}

_Noreturn void
serve_events(int listener)
{
	static uint32_t sizes[CONNECTIONS_MAX];	/* by descriptor */
	static char buf[SIZE_MAX_RR];
	struct epoll_event events[EVENTS_MAX];
	int ep = epoll_create1(0), n;

	if (ep < 0)
		die("epoll");
	watch(ep, listener);
	for (;;) {
		n = epoll_wait(ep, events, EVENTS_MAX, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				welcome(ep, listener, sizes);
			else if (!read_all(fd, buf, sizes[fd]) ||
			    !write_all(fd, buf, sizes[fd]))
				close(fd);
		}
	}
}
