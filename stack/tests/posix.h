/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the socket calls: plain POSIX programs over 127.0.0.1.  Each runs
 * twice, on the stack with $STACK_CONF and on the kernel without it.  The run
 * on the kernel verifies the test's own expectations.
 */
#ifndef TESTS_POSIX_H
#define TESTS_POSIX_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/*
 * With $POSIX_CHILD all tests of the program run in a child of fork(), whose
 * sockets are in another process if they are the stack's.
 */
static inline int
posix_main(int argc, char **argv)
{
	pid_t pid;
	int status;

	if (getenv("POSIX_CHILD") == NULL || (pid = fork()) == 0)
		return (check_main(argc, argv));
	if (waitpid(pid, &status, 0) != pid)
		return (1);
	return (WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status));
}

/* A call that must succeed; evaluates to its result. */
#define	OK(call)	ok_value((long)(call), #call, __FILE__, __LINE__)
/* A call that must fail with an errno value. */
#define	FAILS(call, err) do {						\
	errno = 0;							\
	CHECK_EQ((long)(call), -1);					\
	CHECK_EQ(errno, (err));						\
} while (0)

static inline int
ok_value(long value, const char *call, const char *file, int line)
{
	if (value == -1) {
		fprintf(stderr, "%s:%d: %s: %s\n", file, line, call,
		    strerror(errno));
		abort();
	}
	return ((int)value);
}

static inline struct sockaddr_in
loopback(uint16_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};

	return (sin);
}

static inline struct sockaddr_in
own_address(int fd)
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	OK(getsockname(fd, (struct sockaddr *)&sin, &len));
	CHECK_EQ(len, sizeof(sin));
	return (sin);
}

/* A bound socket; type may have SOCK_NONBLOCK. */
static inline int
bound(int type)
{
	struct sockaddr_in sin = loopback(0);
	int fd = OK(socket(AF_INET, type, 0));

	OK(bind(fd, (struct sockaddr *)&sin, sizeof(sin)));
	return (fd);
}

static inline int
listener(void)
{
	int fd = bound(SOCK_STREAM);

	OK(listen(fd, 16));
	return (fd);
}

static inline int
connected_to(int fd)
{
	struct sockaddr_in sin = own_address(fd);
	int s = OK(socket(AF_INET, SOCK_STREAM, 0));

	OK(connect(s, (struct sockaddr *)&sin, sizeof(sin)));
	return (s);
}

/* Two connected TCP sockets: [0] the client's, [1] the server's. */
static inline void
tcp_pair(int fds[2])
{
	int l = listener();

	fds[0] = connected_to(l);
	fds[1] = OK(accept(l, NULL, NULL));
	OK(close(l));
}

/* Two UDP sockets: [1] a receiver, [0] a sender connected to it. */
static inline void
udp_pair(int s[2])
{
	struct sockaddr_in sin;

	s[1] = bound(SOCK_DGRAM);
	s[0] = bound(SOCK_DGRAM);
	sin = own_address(s[1]);
	OK(connect(s[0], (struct sockaddr *)&sin, sizeof(sin)));
}

static inline void
close_pair(int fds[2])
{
	OK(close(fds[0]));
	OK(close(fds[1]));
}

static inline void
nap(int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L
	};

	nanosleep(&ts, NULL);
}

static inline int
ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return (OK(poll(&p, 1, ms)) == 1 ? p.revents : 0);
}

static inline void
set_timeout(int fd, int name, int ms)
{
	struct timeval tv = {
		.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000
	};

	OK(setsockopt(fd, SOL_SOCKET, name, &tv, sizeof(tv)));
}

/* A new epoll set with one descriptor. */
static inline int
epoll_of(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	int ep = OK(epoll_create1(EPOLL_CLOEXEC));

	OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	return (ep);
}

static inline void
write_pipe(int fd)
{
	CHECK_EQ(write(fd, "p", 1), 1);
}

static inline void
drain(int fd)
{
	char buf[16];

	CHECK(read(fd, buf, sizeof(buf)) > 0);
}

/* A function for another thread to run while this one waits. */
struct later {
	pthread_t	 thread;
	int		 ms;
	void		(*fn)(int);
	int		 arg;
};

static inline void *
later_main(void *arg)
{
	struct later *l = arg;

	nap(l->ms);
	l->fn(l->arg);
	return (NULL);
}

static inline void
later(struct later *l, int ms, void (*fn)(int), int arg)
{
	*l = (struct later){ .ms = ms, .fn = fn, .arg = arg };
	CHECK_EQ(pthread_create(&l->thread, NULL, later_main, l), 0);
}

static inline void
later_join(struct later *l)
{
	CHECK_EQ(pthread_join(l->thread, NULL), 0);
}

static inline void
send_byte(int fd)
{
	CHECK_EQ(send(fd, "x", 1, MSG_NOSIGNAL), 1);
}

#define	BULK	(3 << 20)

static inline unsigned char
bulk_byte(size_t at)
{
	return ((unsigned char)(at * 31 >> 3));
}

/* Sends BULK bytes in pieces of many sizes, and shuts this direction down. */
static inline void *
send_bulk(void *arg)
{
	const int fd = *(int *)arg;
	static unsigned char buf[BULK];
	size_t done = 0, piece = 1;

	for (size_t i = 0; i < BULK; i++)
		buf[i] = bulk_byte(i);
	for (; done < BULK; piece = piece * 7 % 100003) {
		size_t n = piece < BULK - done ? piece : BULK - done;

		done += (size_t)OK(write(fd, buf + done, n));
	}
	OK(shutdown(fd, SHUT_WR));
	return (NULL);
}

/* Receives the bulk in order until EOF; the other direction stays open. */
static inline void
check_bulk(int from, int to)
{
	unsigned char buf[70000];
	pthread_t t;
	size_t at = 0;
	ssize_t n;

	CHECK_EQ(pthread_create(&t, NULL, send_bulk, &from), 0);
	while ((n = OK(read(to, buf, at % sizeof(buf) + 1))) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			CHECK_EQ(buf[i], bulk_byte(at));
	CHECK_EQ(at, BULK);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(write(to, "still", 5), 5);
	CHECK_EQ(read(from, buf, 16), 5);
}

#endif /* TESTS_POSIX_H */
