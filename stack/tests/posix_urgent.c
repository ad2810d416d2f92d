/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Urgent data of TCP (tcp(7)): MSG_OOB, SO_OOBINLINE, the mark, and how a
 * program learns of it.
 */
#include "posix.h"

static atomic_int urgent_signals;

static void
on_urgent(int sig)
{
	(void)sig;
	atomic_fetch_add(&urgent_signals, 1);
}

static void
put(int fd, const char *text, int flags)
{
	CHECK_EQ(send(fd, text, strlen(text), flags), strlen(text));
}

/* Checks the result of one read of the stream. */
static void
expect(int fd, const char *text)
{
	char buf[64] = "";

	CHECK_EQ(recv(fd, buf, sizeof(buf) - 1, 0), strlen(text));
	CHECK_STREQ(buf, text);
}

static void
expect_urgent(int fd, char wanted)
{
	char c = 0;

	CHECK_EQ(ready(fd, POLLPRI, 5000), POLLPRI);
	CHECK_EQ(recv(fd, &c, 1, MSG_OOB), 1);
	CHECK_EQ(c, wanted);
}

static void
set_inline(int fd)
{
	const int on = 1;

	OK(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
}

TEST(last_byte_comes_beside_the_stream)
{
	int s[2];

	tcp_pair(s);
	put(s[0], "before!", MSG_OOB);
	put(s[0], "after", 0);
	expect_urgent(s[1], '!');
	CHECK(!(ready(s[1], POLLPRI, 0) & POLLPRI));
	expect(s[1], "before");		/* a read stops at the mark */
	expect(s[1], "after");
	close_pair(s);
}

TEST(mark_is_found_in_the_stream)
{
	char c;
	int s[2];

	tcp_pair(s);
	CHECK_EQ(sockatmark(s[1]), 0);
	put(s[0], "ab!", MSG_OOB);
	put(s[0], "cd", 0);
	CHECK_EQ(ready(s[1], POLLPRI, 5000), POLLPRI);
	CHECK_EQ(sockatmark(s[1]), 0);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(sockatmark(s[1]), 0);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(sockatmark(s[1]), 1);
	expect(s[1], "cd");
	CHECK_EQ(sockatmark(s[1]), 0);
	close_pair(s);
}

TEST(inline_it_stays_in_the_stream_behind_the_mark)
{
	char c;
	int s[2];

	tcp_pair(s);
	set_inline(s[1]);
	put(s[0], "ab!", MSG_OOB);
	put(s[0], "cd", 0);
	CHECK_EQ(ready(s[1], POLLPRI, 5000), POLLPRI);
	FAILS(recv(s[1], &c, 1, MSG_OOB), EINVAL);
	expect(s[1], "ab");
	CHECK_EQ(sockatmark(s[1]), 1);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(c, '!');
	CHECK_EQ(sockatmark(s[1]), 0);
	CHECK(!(ready(s[1], POLLPRI, 0) & POLLPRI));
	expect(s[1], "cd");
	close_pair(s);
}

TEST(listener_has_its_children_keep_it_inline)
{
	int l = listener(), s[2];
	char c;

	set_inline(l);
	s[0] = connected_to(l);
	s[1] = OK(accept(l, NULL, NULL));
	put(s[0], "!", MSG_OOB);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	CHECK_EQ(c, '!');
	close_pair(s);
	OK(close(l));
}

TEST(without_urgent_data_there_is_none)
{
	char c;
	int s[2];

	tcp_pair(s);
	FAILS(recv(s[1], &c, 1, MSG_OOB), EINVAL);
	put(s[0], "plain", 0);
	expect(s[1], "plain");
	FAILS(recv(s[1], &c, 1, MSG_OOB), EINVAL);
	put(s[0], "!", MSG_OOB);
	expect_urgent(s[1], '!');
	FAILS(recv(s[1], &c, 1, MSG_OOB), EINVAL);	/* fetched */
	close_pair(s);
}

TEST(who_reads_on_has_missed_it)
{
	char c;
	int s[2];

	tcp_pair(s);
	put(s[0], "!", MSG_OOB);
	put(s[0], "later", 0);
	CHECK(ready(s[1], POLLIN, 5000) & POLLIN);
	expect(s[1], "later");
	FAILS(recv(s[1], &c, 1, MSG_OOB), EINVAL);
	CHECK(!(ready(s[1], POLLPRI, 0) & POLLPRI));
	close_pair(s);
}

TEST(looking_leaves_it_there)
{
	char c = 0;
	int s[2];

	tcp_pair(s);
	put(s[0], "!", MSG_OOB);
	CHECK_EQ(ready(s[1], POLLPRI, 5000), POLLPRI);
	CHECK_EQ(recv(s[1], &c, 1, MSG_OOB | MSG_PEEK), 1);
	CHECK_EQ(c, '!');
	expect_urgent(s[1], '!');
	close_pair(s);
}

TEST(message_says_that_it_is_out_of_band)
{
	char buf[4];
	struct iovec iov[] = { { buf, 0 }, { buf, sizeof(buf) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int s[2];

	tcp_pair(s);
	put(s[0], "!", MSG_OOB);
	CHECK_EQ(ready(s[1], POLLPRI, 5000), POLLPRI);
	CHECK_EQ(recvmsg(s[1], &msg, MSG_OOB), 1);
	CHECK_EQ(buf[0], '!');
	CHECK(msg.msg_flags & MSG_OOB);
	close_pair(s);
}

TEST(what_waits_for_all_ends_at_the_mark)
{
	char buf[16];
	int s[2];

	tcp_pair(s);
	put(s[0], "abc!", MSG_OOB);
	put(s[0], "defghijklmnop", 0);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), MSG_WAITALL), 3);
	CHECK_EQ(recv(s[1], buf, 13, MSG_WAITALL), 13);
	close_pair(s);
}

TEST(bytes_to_read_are_those_before_the_mark)
{
	int n, s[2];

	tcp_pair(s);
	put(s[0], "abc!", MSG_OOB);
	put(s[0], "de", 0);
	CHECK_EQ(ready(s[1], POLLPRI, 5000), POLLPRI);
	while (OK(ioctl(s[1], FIONREAD, &n)), n < 3)
		nap(1);
	CHECK_EQ(n, 3);
	close_pair(s);
}

TEST(select_has_it_as_an_exception)
{
	struct timeval tv = { .tv_sec = 5 };
	fd_set except;
	int s[2];

	tcp_pair(s);
	put(s[0], "!", MSG_OOB);
	FD_ZERO(&except);
	FD_SET(s[1], &except);
	CHECK_EQ(select(s[1] + 1, NULL, NULL, &except, &tv), 1);
	CHECK(FD_ISSET(s[1], &except));
	close_pair(s);
}

TEST(epoll_tells_of_it)
{
	struct epoll_event ev = { .events = EPOLLPRI };
	int ep = OK(epoll_create1(0)), s[2];

	tcp_pair(s);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &ev));
	put(s[0], "plain", 0);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 50), 0);
	put(s[0], "!", MSG_OOB);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 5000), 1);
	CHECK_EQ(ev.events, EPOLLPRI);
	OK(close(ep));
	close_pair(s);
}

TEST(owner_gets_a_signal)
{
	struct sigaction sa = { .sa_handler = on_urgent };
	int owner, s[2];

	tcp_pair(s);
	OK(sigaction(SIGURG, &sa, NULL));
	put(s[0], "!", MSG_OOB);
	expect_urgent(s[1], '!');
	CHECK_EQ(atomic_load(&urgent_signals), 0);	/* nobody owns it */
	OK(fcntl(s[1], F_SETOWN, getpid()));
	CHECK_EQ(fcntl(s[1], F_GETOWN), getpid());
	OK(ioctl(s[1], FIOGETOWN, &owner));
	CHECK_EQ(owner, getpid());
	put(s[0], "!", MSG_OOB);
	for (int i = 0; i < 5000 && atomic_load(&urgent_signals) == 0; i++)
		nap(1);
	CHECK_EQ(atomic_load(&urgent_signals), 1);
	close_pair(s);
}

TEST(datagrams_have_none)
{
	struct sockaddr_in sin;
	int s = bound(SOCK_DGRAM);

	sin = own_address(s);
	FAILS(sendto(s, "!", 1, MSG_OOB, (struct sockaddr *)&sin,
	    sizeof(sin)), EOPNOTSUPP);
	OK(close(s));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
