/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting with poll and select, for sockets and kernel descriptors together;
 * and wakeups of every way to wait.
 */
#include <sys/resource.h>

#include "posix.h"

#define	HOPS	3000

TEST(poll_sees_sockets_and_pipes)
{
	struct pollfd p[3];
	struct later l;
	int s[2], pipes[2];

	tcp_pair(s);
	OK(pipe(pipes));
	p[0] = (struct pollfd){ .fd = s[1], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	CHECK_EQ(poll(p, 3, 0), 0);
	CHECK_EQ(poll(p, 3, 20), 0);
	CHECK_EQ(poll(p, 1, 20), 0);
	later(&l, 30, send_byte, s[0]);
	CHECK_EQ(poll(p, 3, 5000), 1);
	CHECK_EQ(p[0].revents, POLLIN);
	later_join(&l);
	CHECK_EQ(poll(p, 1, -1), 1);
	drain(s[1]);
	later(&l, 30, write_pipe, pipes[1]);
	CHECK_EQ(poll(p, 3, -1), 1);
	CHECK_EQ(p[1].revents, POLLIN);
	CHECK_EQ(p[0].revents, 0);
	later_join(&l);
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 10000));
	CHECK_EQ(poll(p, 3, -1), 2);
	drain(s[1]);
	later(&l, 30, send_byte, s[0]);
	CHECK_EQ(poll(p, 1, -1), 1);	/* one socket alone */
	later_join(&l);
	OK(close(s[1]));
	CHECK_EQ(poll(p, 2, -1), 2);
	CHECK_EQ(p[0].revents, POLLNVAL);
	OK(close(s[0]));
	OK(close(pipes[0]));
	OK(close(pipes[1]));
}

TEST(poll_tells_of_ends)
{
	int s[2], l = listener();

	tcp_pair(s);
	CHECK_EQ(ready(s[0], POLLOUT | POLLIN, 0), POLLOUT);
	OK(shutdown(s[1], SHUT_WR));
	CHECK(ready(s[0], POLLIN | POLLRDHUP, 10000) == (POLLIN | POLLRDHUP));
	OK(shutdown(s[0], SHUT_WR));
	while (!(ready(s[0], POLLIN, 10000) & POLLHUP))
		nap(1);
	close_pair(s);
	CHECK_EQ(ready(l, POLLIN, 0), 0);
	s[0] = connected_to(l);
	CHECK_EQ(ready(l, POLLIN, 10000), POLLIN);
	OK(close(s[0]));
	OK(close(l));
}

TEST(select_sees_sockets_and_pipes)
{
	struct timeval tv = { .tv_usec = 20000 };
	struct later l;
	int s[2], pipes[2], n;
	fd_set rd, wr;

	tcp_pair(s);
	OK(pipe(pipes));
	n = (s[1] > pipes[0] ? s[1] : pipes[0]) + 1;
	FD_ZERO(&rd);
	FD_SET(s[1], &rd);
	FD_SET(pipes[0], &rd);
	CHECK_EQ(select(n, &rd, NULL, NULL, &tv), 0);
	CHECK(!FD_ISSET(s[1], &rd));
	CHECK_EQ(tv.tv_sec + tv.tv_usec, 0);
	FD_SET(s[1], &rd);
	FD_SET(pipes[0], &rd);
	FD_ZERO(&wr);
	FD_SET(s[1], &wr);
	later(&l, 20, send_byte, s[0]);
	CHECK_EQ(select(n, &rd, NULL, NULL, NULL), 1);
	CHECK(FD_ISSET(s[1], &rd) && !FD_ISSET(pipes[0], &rd));
	later_join(&l);
	tv.tv_sec = 5;
	CHECK_EQ(select(n, &rd, &wr, NULL, &tv), 2);
	CHECK(FD_ISSET(s[1], &rd) && FD_ISSET(s[1], &wr));
	OK(close(pipes[0]));
	FD_SET(pipes[0], &rd);
	FAILS(select(n, &rd, NULL, NULL, NULL), EBADF);
	OK(close(pipes[1]));
	close_pair(s);
}

static void
shut_write(int fd)
{
	OK(shutdown(fd, SHUT_WR));
}

static void
shut_read(int fd)
{
	OK(shutdown(fd, SHUT_RD));
}

/* Sends until the other end is readable. */
static void
send_until_readable(const int s[2])
{
	static const char block[65536];
	struct pollfd p[] = { { .fd = s[1], .events = POLLIN },
	    { .fd = s[0], .events = POLLOUT } };

	while (ready(s[1], POLLIN, 0) == 0) {
		CHECK(OK(poll(p, 2, 10000)) > 0);
		if (send(s[0], block, sizeof(block), MSG_DONTWAIT) == -1)
			CHECK_EQ(errno, EAGAIN);
	}
}

/* A mark above the buffer, as a negative one, is as if it fitted. */
TEST(a_stream_is_readable_with_any_low_mark)
{
	static const int marks[] = { -1, INT32_MIN, INT32_MAX, 16 << 20 };
	struct epoll_event ev;
	static char block[65536];
	int s[2], ep;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		tcp_pair(s);
		OK(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &marks[i],
		    sizeof(int)));
		ep = epoll_of(s[1], EPOLLIN);
		send_until_readable(s);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
		CHECK(recv(s[1], block, sizeof(block), 0) > 0);
		OK(close(ep));
		close_pair(s);
	}
}

TEST(datagrams_and_local_streams_have_no_low_mark)
{
	const int most = INT32_MAX;
	int pairs[2][2];

	udp_pair(pairs[0]);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[1]));
	for (int i = 0; i < 2; i++) {
		OK(setsockopt(pairs[i][1], SOL_SOCKET, SO_RCVLOWAT, &most,
		    sizeof(most)));
		send_byte(pairs[i][0]);
		CHECK_EQ(ready(pairs[i][1], POLLIN, 10000), POLLIN);
		close_pair(pairs[i]);
	}
}

static void
stream_pair(bool local, int s[2])
{
	if (local)
		OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	else
		tcp_pair(s);
}

/* POLLRDHUP alone wakes: the peer's end, and the own end of reading. */
TEST(a_half_closed_stream_wakes_who_waits_for_that)
{
	struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLET };
	struct pollfd p;
	struct later l;
	int s[2], ep;

	for (int how = 0; how < 4; how++) {
		stream_pair((how & 1) != 0, s);
		p = (struct pollfd){ .fd = s[0], .events = POLLRDHUP };
		CHECK_EQ(OK(poll(&p, 1, 0)), 0);
		later(&l, 30, (how & 2) != 0 ? shut_read : shut_write,
		    s[(how & 2) != 0 ? 0 : 1]);
		CHECK_EQ(OK(poll(&p, 1, 10000)), 1);
		CHECK_EQ(p.revents, POLLRDHUP);
		later_join(&l);
		close_pair(s);
		stream_pair((how & 1) != 0, s);
		ep = OK(epoll_create1(0));
		OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[0], &ev));
		later(&l, 30, (how & 2) != 0 ? shut_read : shut_write,
		    s[(how & 2) != 0 ? 0 : 1]);
		CHECK_EQ(OK(epoll_wait(ep, &ev, 1, 10000)), 1);
		CHECK_EQ(ev.events, EPOLLRDHUP);
		later_join(&l);
		close_pair(s);
		OK(close(ep));
		ev.events = EPOLLRDHUP | EPOLLET;
	}
}

/* poll(2) needs no descriptor of its own, once the thread has used a socket. */
static pthread_barrier_t at_limit;

static void *
poll_mixed(void *arg)
{
	const int *fds = arg;
	struct pollfd p[2] = { { .fd = fds[0], .events = POLLIN },
	    { .fd = fds[1], .events = POLLIN } };

	CHECK_EQ(ready(fds[0], POLLIN, 0), 0);
	pthread_barrier_wait(&at_limit);
	pthread_barrier_wait(&at_limit);
	CHECK_EQ(OK(poll(p, 2, 20)), 0);
	send_byte(fds[2]);
	CHECK_EQ(OK(poll(p, 2, -1)), 1);
	CHECK_EQ(p[0].revents, POLLIN);
	return (NULL);
}

TEST(poll_works_at_the_descriptor_limit)
{
	struct rlimit old, low;
	int s[2], pipes[2], fds[3], fill[64], n = 0;
	pthread_t t;

	tcp_pair(s);
	OK(pipe(pipes));
	fds[0] = s[0];
	fds[1] = pipes[0];
	fds[2] = s[1];
	CHECK_EQ(pthread_barrier_init(&at_limit, NULL, 2), 0);
	/* a thread that has never waited in the kernel */
	CHECK_EQ(pthread_create(&t, NULL, poll_mixed, fds), 0);
	pthread_barrier_wait(&at_limit);
	OK(getrlimit(RLIMIT_NOFILE, &old));
	low = old;
	low.rlim_cur = (rlim_t)pipes[1] + 20;
	OK(setrlimit(RLIMIT_NOFILE, &low));
	while (n < 64 && (fill[n] = dup(pipes[0])) != -1)
		n++;
	pthread_barrier_wait(&at_limit);
	CHECK_EQ(pthread_join(t, NULL), 0);
	while (n > 0)
		OK(close(fill[--n]));
	OK(setrlimit(RLIMIT_NOFILE, &old));
	close_pair(s);
	close_pair(pipes);
}

/*
 * A token goes round through every way of waiting, as fast as it can.  A
 * wake-up that is lost anywhere stops it, and the alarm ends the test.
 */
struct hop {
	int	in, out, idle;	/* idle: a pipe without a writer's data */
	bool	(*wait)(const struct hop *);
};

static bool
wait_poll(const struct hop *h)
{
	return (ready(h->in, POLLIN, -1) & POLLIN);
}

static bool
wait_poll_mixed(const struct hop *h)
{
	struct pollfd p[2] = {
		{ .fd = h->idle, .events = POLLIN },
		{ .fd = h->in, .events = POLLIN }
	};

	return (OK(poll(p, 2, -1)) == 1);
}

static bool
wait_select(const struct hop *h)
{
	fd_set rd;

	FD_ZERO(&rd);
	FD_SET(h->in, &rd);
	return (OK(select(h->in + 1, &rd, NULL, NULL, NULL)) == 1);
}

static bool
wait_epoll(const struct hop *h)
{
	static _Thread_local int ep = -1;
	struct epoll_event ev;

	if (ep == -1)
		ep = epoll_of(h->in, EPOLLIN);
	return (OK(epoll_wait(ep, &ev, 1, -1)) == 1);
}

static bool
wait_epoll_edge(const struct hop *h)
{
	static _Thread_local int ep = -1;
	struct epoll_event ev = { .events = EPOLLIN };

	if (ep == -1) {
		ep = epoll_of(h->in, EPOLLIN | EPOLLET);
		OK(epoll_ctl(ep, EPOLL_CTL_ADD, h->idle, &ev));
	}
	return (OK(epoll_wait(ep, &ev, 1, -1)) == 1);
}

static void *
hop_main(void *arg)
{
	struct hop *h = arg;
	char c;

	for (int i = 0; i < HOPS; i++) {
		while (recv(h->in, &c, 1, MSG_DONTWAIT) != 1) {
			CHECK_EQ(errno, EAGAIN);
			CHECK(h->wait(h));
		}
		send_byte(h->out);
	}
	return (NULL);
}

TEST(no_wake_up_is_lost)
{
	bool (*const ways[])(const struct hop *) = {
		wait_poll, wait_poll_mixed, wait_select, wait_epoll,
		wait_epoll_edge
	};
	enum { N = sizeof(ways) / sizeof(ways[0]) };
	struct hop hops[N];
	pthread_t t[N];
	int s[N][2], idle[2], one = 1;

	alarm(100);
	OK(pipe(idle));
	for (int i = 0; i < N; i++) {
		tcp_pair(s[i]);
		OK(setsockopt(s[i][0], IPPROTO_TCP, TCP_NODELAY, &one,
		    sizeof(one)));
	}
	for (int i = 0; i < N; i++) {
		hops[i] = (struct hop){ .in = s[i][1], .wait = ways[i],
		    .out = s[(i + 1) % N][0], .idle = idle[0] };
		CHECK_EQ(pthread_create(&t[i], NULL, hop_main, &hops[i]), 0);
	}
	send_byte(s[0][0]);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < N; i++)
		close_pair(s[i]);
	OK(close(idle[0]));
	OK(close(idle[1]));
	alarm(0);
}

#define	MEETINGS	3000

struct meeting {
	int	fd;
	atomic_int turn;
};

/* Sends a byte in each round, after 0 to 99 us. */
static void *
meeting_main(void *arg)
{
	struct meeting *m = arg;

	for (int i = 0; i < MEETINGS; i++) {
		struct timespec later = { .tv_nsec = i % 100 * 1000L };

		while (m->turn < i)
			sched_yield();
		nanosleep(&later, NULL);
		send_byte(m->fd);
	}
	return (NULL);
}

/* A byte that arrives at a deadline is reported by this call or the next. */
TEST(a_wake_up_meets_a_deadline)
{
	const struct timespec soon = { .tv_nsec = 100000 };
	struct meeting m = { .turn = -1 };
	struct pollfd p;
	pthread_t t;
	int s[2], n, one = 1;

	alarm(100);
	tcp_pair(s);
	OK(setsockopt(s[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	p = (struct pollfd){ .fd = s[1], .events = POLLIN };
	m.fd = s[0];
	CHECK_EQ(pthread_create(&t, NULL, meeting_main, &m), 0);
	for (int i = 0; i < MEETINGS; i++) {
		m.turn = i;
		n = OK(ppoll(&p, 1, &soon, NULL));
		CHECK_EQ(p.revents, n == 0 ? 0 : POLLIN);
		if (n == 0)
			CHECK_EQ(poll(&p, 1, 5000), 1);
		drain(s[1]);
	}
	pthread_join(t, NULL);
	close_pair(s);
	alarm(0);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
