/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll(7), for sockets and kernel descriptors together.
 */
#include "posix.h"

#define	EVENTS	3000

static uint32_t
epoll_next(int ep, int ms, int *fd)
{
	struct epoll_event ev;

	if (OK(epoll_wait(ep, &ev, 1, ms)) == 0)
		return (0);
	*fd = ev.data.fd;
	return (ev.events);
}

TEST(epoll_level_edge_and_one_shot)
{
	struct epoll_event ev;
	int s[2], ep, fd = -1;

	tcp_pair(s);
	ep = epoll_of(s[1], EPOLLIN);
	CHECK_EQ(epoll_next(ep, 20, &fd), 0);
	send_byte(s[0]);
	CHECK_EQ(epoll_next(ep, 1000, &fd), EPOLLIN);
	CHECK_EQ(fd, s[1]);
	CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLIN);	/* level: again */
	ev = (struct epoll_event){ .events = EPOLLIN | EPOLLET,
	    .data.fd = s[1] };
	OK(epoll_ctl(ep, EPOLL_CTL_MOD, s[1], &ev));
	CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLIN);
	CHECK_EQ(epoll_next(ep, 20, &fd), 0);		/* edge: once */
	send_byte(s[0]);
	CHECK_EQ(epoll_next(ep, 1000, &fd), EPOLLIN);	/* a new edge */
	ev.events = EPOLLIN | EPOLLONESHOT;
	OK(epoll_ctl(ep, EPOLL_CTL_MOD, s[1], &ev));
	CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLIN);
	send_byte(s[0]);
	CHECK_EQ(epoll_next(ep, 20, &fd), 0);		/* fired */
	OK(epoll_ctl(ep, EPOLL_CTL_MOD, s[1], &ev));
	CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLIN);
	ev.events = EPOLLOUT;
	OK(epoll_ctl(ep, EPOLL_CTL_MOD, s[1], &ev));
	CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLOUT);
	close_pair(s);
	OK(close(ep));
}

TEST(epoll_exclusive_and_half_closed)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int a = OK(epoll_create1(0)), b = OK(epoll_create1(0)), s[2];

	tcp_pair(s);
	OK(epoll_ctl(a, EPOLL_CTL_ADD, s[1], &ev));
	OK(epoll_ctl(b, EPOLL_CTL_ADD, s[1], &ev));
	FAILS(epoll_ctl(a, EPOLL_CTL_MOD, s[1], &ev), EINVAL);
	ev.events = EPOLLIN;
	FAILS(epoll_ctl(a, EPOLL_CTL_MOD, s[1], &ev), EINVAL);
	send_byte(s[0]);
	CHECK_EQ(epoll_wait(a, &ev, 1, 5000), 1);	/* it is level */
	CHECK_EQ(epoll_wait(b, &ev, 1, 5000), 1);
	drain(s[1]);
	OK(epoll_ctl(a, EPOLL_CTL_DEL, s[1], NULL));
	ev.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
	FAILS(epoll_ctl(a, EPOLL_CTL_ADD, s[1], &ev), EINVAL);
	ev.events = EPOLLRDHUP;
	OK(epoll_ctl(a, EPOLL_CTL_ADD, s[1], &ev));
	send_byte(s[0]);
	CHECK_EQ(epoll_wait(a, &ev, 1, 20), 0);
	OK(shutdown(s[0], SHUT_WR));
	CHECK_EQ(epoll_wait(a, &ev, 1, 5000), 1);
	CHECK_EQ(ev.events, EPOLLRDHUP);
	OK(close(a));
	OK(close(b));
	close_pair(s);
}

TEST(epoll_ctl_errors_and_closing)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int s[2], ep, fd = -1, copy;

	tcp_pair(s);
	ep = epoll_of(s[1], EPOLLIN);
	FAILS(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &ev), EEXIST);
	FAILS(epoll_ctl(ep, EPOLL_CTL_MOD, s[0], &ev), ENOENT);
	FAILS(epoll_ctl(ep, EPOLL_CTL_DEL, s[0], NULL), ENOENT);
	FAILS(epoll_ctl(ep, 77, s[1], &ev), EINVAL);
	FAILS(epoll_ctl(ep, EPOLL_CTL_ADD, 9999, &ev), EBADF);
	FAILS(epoll_wait(ep, &ev, 0, 0), EINVAL);
	FAILS(epoll_wait(s[0], &ev, 1, 0), EINVAL);
	OK(epoll_ctl(ep, EPOLL_CTL_DEL, s[1], NULL));
	send_byte(s[0]);
	CHECK_EQ(epoll_next(ep, 20, &fd), 0);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &ev));
	CHECK(epoll_next(ep, 1000, &fd) & EPOLLIN);
	copy = OK(dup(s[1]));
	/* a duplicate keeps the file open, so it stays in the set */
	OK(close(s[1]));
	CHECK(epoll_next(ep, 0, &fd) & EPOLLIN);
	OK(close(copy));
	CHECK_EQ(epoll_next(ep, 20, &fd), 0);
	OK(close(s[0]));
	OK(close(ep));
}

TEST(epoll_mixes_kinds_and_nests)
{
	struct epoll_event ev[4], one = { .events = EPOLLIN };
	struct later l;
	int s[2], pipes[2], ep, outer, fd = -1;

	tcp_pair(s);
	OK(pipe(pipes));
	ep = epoll_of(s[1], EPOLLIN);
	one.data.fd = pipes[0];
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &one));
	outer = epoll_of(ep, EPOLLIN);
	CHECK_EQ(epoll_next(outer, 20, &fd), 0);
	later(&l, 20, send_byte, s[0]);
	CHECK_EQ(epoll_next(outer, 5000, &fd), EPOLLIN);
	CHECK_EQ(fd, ep);
	later_join(&l);
	CHECK_EQ(ready(ep, POLLIN, 10000), POLLIN);
	CHECK_EQ(OK(epoll_wait(ep, ev, 4, 0)), 1);
	CHECK_EQ(ev[0].data.fd, s[1]);
	drain(s[1]);			/* the outer set knows at once */
	CHECK_EQ(epoll_next(outer, 0, &fd), 0);
	CHECK_EQ(ready(ep, POLLIN, 0), 0);
	later(&l, 20, write_pipe, pipes[1]);
	CHECK_EQ(OK(epoll_wait(ep, ev, 4, -1)), 1);
	CHECK_EQ(ev[0].data.fd, pipes[0]);
	later_join(&l);
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 10000));
	CHECK_EQ(OK(epoll_wait(ep, ev, 4, -1)), 2);
	for (int i = 0, seen = 0; seen != 3; i++) {	/* neither starves */
		CHECK(i < 100);
		CHECK_EQ(epoll_next(ep, 0, &fd), EPOLLIN);
		seen |= fd == s[1] ? 1 : 2;
	}
	drain(s[1]);
	drain(pipes[0]);
	CHECK_EQ(OK(epoll_wait(ep, ev, 4, 20)), 0);
	CHECK_EQ(epoll_next(outer, 20, &fd), 0);
	close_pair(s);
	OK(close(pipes[0]));
	OK(close(pipes[1]));
	OK(close(ep));
	OK(close(outer));
}

/* Events of the stack take all places if the kernel has none. */
TEST(epoll_returns_as_many_events_as_fit)
{
	struct epoll_event ev[8], one = { .events = EPOLLIN };
	int s[4][2], pipes[2], ep = OK(epoll_create1(0));

	OK(pipe(pipes));
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &one));
	for (int i = 0; i < 4; i++) {
		tcp_pair(s[i]);
		OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[i][1], &one));
		send_byte(s[i][0]);
		CHECK(ready(s[i][1], POLLIN, 10000));
	}
	CHECK_EQ(OK(epoll_wait(ep, ev, 4, 0)), 4);
	CHECK_EQ(OK(epoll_wait(ep, ev, 3, 0)), 3);
	CHECK_EQ(OK(epoll_wait(ep, ev, 1, 0)), 1);
	for (int i = 0; i < 4; i++)
		close_pair(s[i]);
	close_pair(pipes);
	OK(close(ep));
}

/* One set, several threads, one-shot: each event is reported to one thread. */
struct pool {
	int	ep;
	atomic_int left;
};

static void *
pool_main(void *arg)
{
	struct pool *p = arg;
	struct epoll_event ev;
	char c;

	while (p->left > 0) {
		if (OK(epoll_wait(p->ep, &ev, 1, 50)) == 0)
			continue;
		CHECK_EQ(recv(ev.data.fd, &c, 1, MSG_DONTWAIT), 1);
		p->left--;
		ev.events = EPOLLIN | EPOLLONESHOT;
		OK(epoll_ctl(p->ep, EPOLL_CTL_MOD, ev.data.fd, &ev));
	}
	return (NULL);
}

TEST(threads_share_a_set)
{
	struct pool p = { .left = EVENTS };
	struct epoll_event ev;
	pthread_t t[3];
	int s[4][2];

	p.ep = OK(epoll_create1(0));
	for (int i = 0; i < 4; i++) {
		tcp_pair(s[i]);
		ev.events = EPOLLIN | EPOLLONESHOT;
		ev.data.fd = s[i][1];
		OK(epoll_ctl(p.ep, EPOLL_CTL_ADD, s[i][1], &ev));
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, pool_main, &p), 0);
	for (int i = 0; i < EVENTS; i++)
		send_byte(s[i % 4][0]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(p.left, 0);
	for (int i = 0; i < 4; i++)
		close_pair(s[i]);
	OK(close(p.ep));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
