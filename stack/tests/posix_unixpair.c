/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of UNIX-domain sockets as programs use them: bytes and records, back
 * pressure and ends.  Names and connections are in posix_unix.c, descriptors and
 * credentials in posix_passing.c.
 */
#include "posix_child.h"

static void
pair(int type, int s[2])
{
	OK(socketpair(AF_UNIX, type, 0, s));
}

TEST(a_stream_pair_carries_bytes_both_ways)
{
	char buf[64];
	int s[2], avail = -1;

	pair(SOCK_STREAM, s);
	CHECK_EQ(write(s[0], "hello", 5), 5);
	CHECK_EQ(write(s[0], " world", 6), 6);
	OK(ioctl(s[1], FIONREAD, &avail));
	CHECK_EQ(avail, 11);
	CHECK_EQ(recv(s[1], buf, 3, MSG_PEEK), 3);
	CHECK(memcmp(buf, "hel", 3) == 0);
	CHECK_EQ(read(s[1], buf, 2), 2);
	CHECK_EQ(read(s[1], buf, sizeof(buf)), 9);
	CHECK(memcmp(buf, "llo world", 9) == 0);
	CHECK_EQ(send(s[1], "back", 4, 0), 4);
	CHECK_EQ(recv(s[0], buf, 4, MSG_WAITALL), 4);
	FAILS(recv(s[0], buf, 1, MSG_DONTWAIT), EAGAIN);
	close_pair(s);
}

static void
send_late(int fd)
{
	CHECK_EQ(send(fd, "cd", 2, 0), 2);
}

TEST(a_reader_waits_for_all_if_it_says_so)
{
	struct later l;
	char buf[4];
	int s[2];

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[0], "ab", 2, 0), 2);
	later(&l, 20, send_late, s[0]);
	CHECK_EQ(recv(s[1], buf, 4, MSG_WAITALL), 4);
	CHECK(memcmp(buf, "abcd", 4) == 0);
	later_join(&l);
	close_pair(s);
}

/* As in Linux: only TCP's peek waits. */
TEST(a_peek_does_not_wait_for_all)
{
	char buf[4];
	int s[2];

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[0], "ab", 2, 0), 2);
	CHECK_EQ(recv(s[1], buf, 4, MSG_WAITALL | MSG_PEEK), 2);
	CHECK_EQ(recv(s[1], buf, 0, MSG_DONTWAIT), 0);
	CHECK_EQ(recv(s[1], buf, 4, 0), 2);
	FAILS(recv(s[1], buf, 0, MSG_DONTWAIT), EAGAIN);
	close_pair(s);
}

static void
receive_records(int fd)
{
	char buf[60];

	for (int i = 1; i <= 2; i++)
		CHECK_EQ(OK(recv(fd, buf, sizeof(buf), MSG_WAITALL)), i);
}

TEST(a_read_of_all_ends_with_its_record)
{
	int s[2];

	pair(SOCK_SEQPACKET, s);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(send(s[0], "a", 1, 0), 1);
		CHECK_EQ(send(s[0], "bc", 2, 0), 2);
		if (i == 0)
			receive_records(s[1]);
		else
			ends_well(child(receive_records, s[1]));
	}
	close_pair(s);
}

/* SO_LINGER is for protocols of a network. */
TEST(a_close_with_linger_is_no_reset)
{
	const struct linger none = { .l_onoff = 1 };
	char c;
	int s[2];

	pair(SOCK_STREAM, s);
	OK(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
	send_byte(s[0]);
	OK(close(s[0]));
	CHECK_EQ(OK(read(s[1], &c, 1)), 1);
	CHECK_EQ(OK(read(s[1], &c, 1)), 0);
	OK(close(s[1]));
}

static long
resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, resident;

	CHECK(f != NULL);
	CHECK_EQ(fscanf(f, "%ld %ld", &all, &resident), 2);
	fclose(f);
	return (resident);
}

/* Of bytes that came one by one; a sanitizer keeps more of each. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define	PER_BYTE	100
#define	SLACK		(32 << 20)
#else
#define	PER_BYTE	20
#define	SLACK		(1 << 20)
#endif

TEST(small_writes_take_little_memory)
{
	char buf[4096];
	size_t written = 0, got = 0;
	long before;
	int s[2];
	ssize_t n;

	pair(SOCK_STREAM | SOCK_NONBLOCK, s);
	OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &(int){ 128 << 10 },
	    sizeof(int)));
	before = resident_pages();
	while (send(s[0], &(char){ (char)(written % 127) }, 1, 0) == 1)
		written++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(written > 200);
	CHECK((resident_pages() - before) * 4096 <
	    (long)written * PER_BYTE + SLACK);
	while ((n = recv(s[1], buf, 1 + got % sizeof(buf), 0)) > 0)
		for (ssize_t i = 0; i < n; i++, got++)
			CHECK_EQ(buf[i], got % 127);
	CHECK_EQ(got, written);
	close_pair(s);
}

TEST(bulk_arrives_in_order_and_ends_with_eof)
{
	int s[2];

	pair(SOCK_STREAM, s);
	check_bulk(s[0], s[1]);
	close_pair(s);
}

static char big[200000];

/* Writes until the socket would block; returns the number of bytes written. */
static size_t
fill(int fd, size_t piece)
{
	size_t total = 0;
	ssize_t n;

	while ((n = send(fd, big, piece, MSG_DONTWAIT)) > 0)
		total += (size_t)n;
	CHECK_EQ(n, -1);
	CHECK_EQ(errno, EAGAIN);
	return (total);
}

static size_t
empty(int fd)
{
	size_t total = 0;
	ssize_t n;

	while ((n = recv(fd, big, sizeof(big), MSG_DONTWAIT)) > 0)
		total += (size_t)n;
	CHECK_EQ(errno, EAGAIN);
	return (total);
}

static void
check_back_pressure(int type, size_t piece)
{
	int s[2], queued;
	size_t sent;

	pair(type, s);
	CHECK_EQ(ready(s[0], POLLOUT, 0), POLLOUT);
	sent = fill(s[0], piece);
	CHECK(sent >= piece);
	CHECK_EQ(ready(s[0], POLLOUT, 0), 0);
	OK(ioctl(s[0], TIOCOUTQ, &queued));
	CHECK(queued > 0);
	set_timeout(s[0], SO_SNDTIMEO, 20);
	FAILS(send(s[0], big, piece, 0), EAGAIN);
	CHECK_EQ(empty(s[1]), sent);
	CHECK_EQ(ready(s[0], POLLOUT, 10000), POLLOUT);
	OK(ioctl(s[0], TIOCOUTQ, &queued));
	CHECK_EQ(queued, 0);
	CHECK(fill(s[0], piece) >= piece);
	close_pair(s);
}

TEST(a_reader_that_does_not_read_holds_the_writer_back)
{
	check_back_pressure(SOCK_STREAM, 1000);
	check_back_pressure(SOCK_SEQPACKET, 1000);
}

TEST(datagrams_hold_the_sender_back)
{
	int s[2];
	size_t sent;

	pair(SOCK_DGRAM, s);
	sent = fill(s[0], 2000);
	CHECK(sent >= 2000);
	CHECK_EQ(empty(s[1]), sent);
	CHECK_EQ(send(s[0], "x", 1, MSG_DONTWAIT), 1);
	close_pair(s);
}

TEST(each_direction_ends_by_itself)
{
	char buf[4];
	int s[2];

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[0], "ab", 2, 0), 2);
	OK(shutdown(s[0], SHUT_WR));
	FAILS(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(ready(s[1], POLLIN | POLLRDHUP, 10000) & POLLRDHUP);
	CHECK_EQ(recv(s[1], buf, 4, 0), 2);
	CHECK_EQ(recv(s[1], buf, 4, 0), 0);
	CHECK_EQ(send(s[1], "back", 4, 0), 4);
	CHECK_EQ(recv(s[0], buf, 4, 0), 4);
	OK(shutdown(s[0], SHUT_RD));
	CHECK_EQ(recv(s[0], buf, 4, 0), 0);
	FAILS(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	close_pair(s);
}

TEST(the_end_of_the_peer_is_seen)
{
	char buf[4];
	int s[2];

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[0], "ab", 2, 0), 2);
	OK(close(s[0]));
	CHECK(ready(s[1], POLLIN, 0) & POLLHUP);
	/* the data sent before is readable */
	CHECK_EQ(recv(s[1], buf, 4, 0), 2);
	CHECK_EQ(recv(s[1], buf, 4, 0), 0);
	FAILS(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	OK(close(s[1]));

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[1], "unread", 6, 0), 6);
	OK(close(s[0]));
	FAILS(recv(s[1], buf, 4, 0), ECONNRESET);
	CHECK_EQ(recv(s[1], buf, 4, 0), 0);
	OK(close(s[1]));
}

static void
close_it(int fd)
{
	OK(close(fd));
}

TEST(raw_means_datagrams)
{
	int s[2], type;
	socklen_t len = sizeof(type);

	OK(socketpair(AF_UNIX, SOCK_RAW, 0, s));
	OK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &type, &len));
	CHECK_EQ(type, SOCK_DGRAM);
	send_byte(s[0]);
	send_byte(s[1]);
	close_pair(s);
}

TEST(a_blocked_reader_hears_of_the_end)
{
	struct later l;
	char c;
	int s[2];

	pair(SOCK_STREAM, s);
	later(&l, 20, close_it, s[0]);
	CHECK_EQ(read(s[1], &c, 1), 0);
	later_join(&l);
	OK(close(s[1]));
}

TEST(a_blocked_writer_hears_of_the_end)
{
	struct later l;
	int s[2];

	pair(SOCK_STREAM, s);
	(void)fill(s[1], 1000);
	later(&l, 20, close_it, s[0]);
	CHECK_EQ(send(s[1], big, 1000, MSG_NOSIGNAL), -1);
	CHECK(errno == EPIPE || errno == ECONNRESET);
	later_join(&l);
	OK(close(s[1]));
}

TEST(epoll_tells_of_both_kinds)
{
	int ep = OK(epoll_create1(0)), s[2], p[2];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	char c;

	pair(SOCK_STREAM, s);
	OK(pipe(p));
	ev.data.fd = s[1];
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &ev));
	ev.data.fd = p[0];
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ev));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	send_byte(s[0]);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 1000), 1);
	CHECK_EQ(ev.data.fd, s[1]);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);	/* an edge is reported once */
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 1000), 1);
	CHECK_EQ(ev.data.fd, p[0]);
	CHECK_EQ(read(s[1], &c, 1), 1);
	close_pair(s);
	close_pair(p);
	OK(close(ep));
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
