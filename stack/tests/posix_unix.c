/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets as programs use them: names, the three types, back
 * pressure and ends.  Descriptors and credentials are in posix_passing.c.
 */
#include <stddef.h>
#include <sys/un.h>

#include "posix_child.h"

static char dir[] = "/tmp/stack-unix-XXXXXX";

static socklen_t
path_name(struct sockaddr_un *sun, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/%s", dir, name);
	return ((socklen_t)sizeof(*sun));
}

static socklen_t
abstract_name(struct sockaddr_un *sun, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "%s%d", name,
	    (int)getpid());
	return ((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	    strlen(sun->sun_path + 1)));
}

static int
unix_bound(int type, const char *name)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, name);
	int fd = OK(socket(AF_UNIX, type, 0));

	OK(bind(fd, (struct sockaddr *)&sun, len));
	return (fd);
}

static int
unix_connect(int fd, const char *name)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, name);

	return (connect(fd, (struct sockaddr *)&sun, len));
}

static void
unix_unlink(const char *name)
{
	struct sockaddr_un sun;

	(void)path_name(&sun, name);
	OK(unlink(sun.sun_path));
}

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

/* A buffer of bytes that came one by one takes no more than twenty times as much. */
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
	/* A buffer for each byte would be a kilobyte; a sanitizer adds its own memory. */
	CHECK((resident_pages() - before) * 4096 < (long)written * 100 + (32 << 20));
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

TEST(a_path_name_is_a_file)
{
	int l = unix_bound(SOCK_STREAM, "s"), c, a;
	struct sockaddr_un sun, other;
	socklen_t len = sizeof(sun);
	struct stat st;

	(void)path_name(&other, "s");
	OK(stat(other.sun_path, &st));
	CHECK(S_ISSOCK(st.st_mode));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(bind(c, (struct sockaddr *)&other, sizeof(other)), EADDRINUSE);
	(void)path_name(&sun, "t");
	FAILS(bind(l, (struct sockaddr *)&sun, sizeof(sun)), EINVAL);
	FAILS(stat(sun.sun_path, &st), ENOENT);
	/* the socket does not listen */
	FAILS(unix_connect(c, "s"), ECONNREFUSED);
	FAILS(unix_connect(c, "nothing"), ENOENT);
	OK(listen(l, 1));
	OK(unix_connect(c, "s"));
	FAILS(unix_connect(c, "s"), EISCONN);
	a = OK(accept(l, (struct sockaddr *)&sun, &len));
	/* the socket has no name */
	CHECK_EQ(len, sizeof(sa_family_t));
	CHECK_EQ(sun.sun_family, AF_UNIX);
	len = sizeof(sun);
	OK(getpeername(c, (struct sockaddr *)&sun, &len));
	CHECK_STREQ(sun.sun_path, other.sun_path);
	CHECK_EQ(len, offsetof(struct sockaddr_un, sun_path) +
	    strlen(other.sun_path) + 1);
	len = sizeof(sun);
	OK(getsockname(a, (struct sockaddr *)&sun, &len));
	CHECK_STREQ(sun.sun_path, other.sun_path);
	OK(close(l));
	OK(close(c));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(unix_connect(c, "s"), ECONNREFUSED);	/* the file remains */
	unix_unlink("s");
	FAILS(unix_connect(c, "s"), ENOENT);
	OK(close(c));
	OK(close(a));
}

TEST(a_file_that_was_replaced_is_another_name)
{
	int old = unix_bound(SOCK_DGRAM, "r"), new, c;
	char buf[8];

	unix_unlink("r");
	new = unix_bound(SOCK_DGRAM, "r");
	c = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	OK(unix_connect(c, "r"));
	CHECK_EQ(send(c, "new", 3, 0), 3);
	CHECK_EQ(recv(new, buf, sizeof(buf), MSG_DONTWAIT), 3);
	FAILS(recv(old, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	unix_unlink("r");
	OK(close(c));
	OK(close(old));
	OK(close(new));
}

TEST(abstract_names_are_bytes)
{
	struct sockaddr_un sun, got;
	socklen_t len = abstract_name(&sun, "stack-test"), glen = sizeof(got);
	int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), c, d;

	OK(bind(l, (struct sockaddr *)&sun, len));
	OK(listen(l, 1));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(connect(c, (struct sockaddr *)&sun, len - 1), ECONNREFUSED);
	OK(connect(c, (struct sockaddr *)&sun, len));
	OK(getpeername(c, (struct sockaddr *)&got, &glen));
	CHECK_EQ(glen, len);
	CHECK(memcmp(&got, &sun, len) == 0);
	OK(close(l));
	d = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(bind(d, (struct sockaddr *)&sun, len));	/* free again */
	OK(close(d));
	OK(close(c));
	/* the kernel chooses the name */
	d = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	OK(bind(d, (struct sockaddr *)&sun, sizeof(sa_family_t)));
	glen = sizeof(got);
	OK(getsockname(d, (struct sockaddr *)&got, &glen));
	CHECK_EQ(glen, sizeof(sa_family_t) + 6);
	CHECK_EQ(got.sun_path[0], 0);
	OK(close(d));
}

static void
accept_one(int fd)
{
	OK(close(OK(accept(fd, NULL, NULL))));
}

TEST(a_full_queue_holds_clients_back)
{
	int l = unix_bound(SOCK_STREAM, "q"), c[8], n = 0;
	struct later t;

	OK(listen(l, 1));
	do {
		CHECK(n < 8);
		c[n] = OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	} while (unix_connect(c[n], "q") == 0 && ++n);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, 2);			/* the backlog plus one */
	OK(fcntl(c[n], F_SETFL, 0));
	later(&t, 20, accept_one, l);
	OK(unix_connect(c[n], "q"));
	later_join(&t);
	CHECK(ready(l, POLLIN, 10000) & POLLIN);
	OK(close(l));
	CHECK(ready(c[n], POLLIN, 10000) & POLLHUP);
	for (int i = 0; i <= n; i++)
		OK(close(c[i]));
	unix_unlink("q");
}

static void
connect_late(int fd)
{
	(void)unix_connect(fd, "x");
}

/* The connect may succeed or fail; either way later calls must work. */
TEST(a_socket_is_closed_while_it_connects)
{
	int l = unix_bound(SOCK_STREAM, "x"), c, d, a;
	struct later t;

	OK(listen(l, 0));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(unix_connect(c, "x"));		/* the queue is full */
	d = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	later(&t, 0, connect_late, d);
	nap(30);
	OK(close(d));
	a = OK(accept(l, NULL, NULL));
	later_join(&t);
	OK(fcntl(l, F_SETFL, O_NONBLOCK));
	while ((d = accept(l, NULL, NULL)) != -1)
		OK(close(d));
	CHECK_EQ(errno, EAGAIN);
	OK(close(a));
	OK(close(c));
	OK(close(l));
	unix_unlink("x");
}

TEST(who_is_never_accepted_is_reset)
{
	int l = unix_bound(SOCK_STREAM, "n");
	int c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	char buf[1];

	OK(listen(l, 4));
	OK(unix_connect(c, "n"));
	CHECK_EQ(send(c, "x", 1, 0), 1);
	OK(close(l));
	FAILS(recv(c, buf, 1, 0), ECONNRESET);
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), EPIPE);
	OK(close(c));
	unix_unlink("n");
}

static char big[200000];

static void
shut_reading(int fd)
{
	OK(shutdown(fd, SHUT_RD));
}

TEST(shutting_a_listener_ends_accept)
{
	int l = unix_bound(SOCK_STREAM, "l");
	int c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	struct later t;

	OK(listen(l, 1));
	later(&t, 30, shut_reading, l);
	FAILS(accept(l, NULL, NULL), EINVAL);
	later_join(&t);
	FAILS(unix_connect(c, "l"), ECONNREFUSED);
	OK(close(l));
	OK(close(c));
	unix_unlink("l");
}

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

TEST(messages_of_a_connection_keep_their_bounds)
{
	int l = unix_bound(SOCK_SEQPACKET, "p"), c, a;
	char buf[16];
	struct iovec iov = { buf, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	OK(listen(l, 1));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(unix_connect(c, "p"), EPROTOTYPE);
	OK(close(c));
	c = OK(socket(AF_UNIX, SOCK_SEQPACKET, 0));
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	OK(unix_connect(c, "p"));
	a = OK(accept(l, NULL, NULL));
	CHECK_EQ(send(c, "first", 5, 0), 5);
	CHECK_EQ(send(c, "2", 1, 0), 1);
	CHECK_EQ(recvmsg(a, &msg, 0), 4);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 1);
	OK(close(c));
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 0);
	OK(close(a));
	OK(close(l));
	unix_unlink("p");
}

TEST(datagrams_have_bounds_and_senders)
{
	int a = unix_bound(SOCK_DGRAM, "a"), b = unix_bound(SOCK_DGRAM, "b");
	int c = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	struct sockaddr_un sun, from;
	socklen_t len = path_name(&sun, "b"), flen = sizeof(from);
	char buf[16];

	FAILS(send(c, "x", 1, 0), ENOTCONN);
	CHECK_EQ(sendto(a, "one", 3, 0, (struct sockaddr *)&sun, len), 3);
	CHECK_EQ(sendto(c, "", 0, 0, (struct sockaddr *)&sun, len), 0);
	CHECK_EQ(recv(b, buf, 1, MSG_TRUNC | MSG_PEEK), 3);
	CHECK_EQ(recvfrom(b, buf, sizeof(buf), 0, (struct sockaddr *)&from,
	    &flen), 3);
	(void)path_name(&sun, "a");
	CHECK_STREQ(from.sun_path, sun.sun_path);
	flen = sizeof(from);
	CHECK_EQ(recvfrom(b, buf, sizeof(buf), 0, (struct sockaddr *)&from,
	    &flen), 0);
	CHECK_EQ(flen, 0);
	OK(unix_connect(a, "b"));
	OK(unix_connect(b, "a"));
	/* it receives only from its peer */
	FAILS(unix_connect(c, "b"), EPERM);
	CHECK_EQ(send(b, "back", 4, 0), 4);
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 4);
	OK(close(b));
	FAILS(send(a, "x", 1, 0), ECONNREFUSED);
	FAILS(send(a, "x", 1, 0), ENOTCONN);
	FAILS(sendto(c, "x", 1, 0, (struct sockaddr *)&sun, 1), EINVAL);
	OK(close(a));
	OK(close(c));
	unix_unlink("a");
	unix_unlink("b");
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

TEST(bad_calls_give_their_errors)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, "e");
	int s = OK(socket(AF_UNIX, SOCK_STREAM, 0)), value = 0;
	int d = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	socklen_t vlen = sizeof(value);
	char c;

	FAILS(listen(s, 1), EINVAL);
	FAILS(accept(s, NULL, NULL), EINVAL);
	FAILS(listen(d, 1), EOPNOTSUPP);
	CHECK_EQ(recv(s, &c, 1, 0), -1);
	CHECK(errno == ENOTCONN || errno == EINVAL);	/* POSIX, Linux */
	FAILS(send(s, &c, 1, MSG_NOSIGNAL), ENOTCONN);
	FAILS(sendto(s, &c, 1, 0, (struct sockaddr *)&sun, len), EOPNOTSUPP);
	FAILS(getpeername(s, (struct sockaddr *)&sun, &len), ENOTCONN);
	sun.sun_family = AF_INET;
	FAILS(bind(s, (struct sockaddr *)&sun, sizeof(sun)), EINVAL);
	len = path_name(&sun, "no/such/directory");
	FAILS(bind(s, (struct sockaddr *)&sun, len), ENOENT);
	FAILS(socket(AF_UNIX, SOCK_STREAM, 6), EPROTONOSUPPORT);
	OK(getsockopt(s, SOL_SOCKET, SO_DOMAIN, &value, &vlen));
	CHECK_EQ(value, AF_UNIX);
	OK(close(s));
	OK(close(d));
}

int
main(int argc, char **argv)
{
	int status;

	CHECK(mkdtemp(dir) != NULL);
	status = check_main(argc, argv);
	OK(rmdir(dir));
	return (status);
}
