/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets as programs use them: streams, datagrams, options, errors.
 */
#include "posix.h"

static volatile sig_atomic_t sigpipes;

static void
on_sigpipe(int sig)
{
	(void)sig;
	sigpipes++;
}

static void
check_stream(int from, int to)
{
	char buf[64] = "";
	struct iovec out[2] = { { "ab", 2 }, { "cde", 3 } };
	struct iovec in[2] = { { buf, 1 }, { buf + 1, 10 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 2 };

	CHECK_EQ(write(from, "hello", 5), 5);
	CHECK_EQ(recv(to, buf, sizeof(buf), MSG_PEEK), 5);
	CHECK_EQ(read(to, buf, sizeof(buf)), 5);
	CHECK(memcmp(buf, "hello", 5) == 0);
	CHECK_EQ(writev(from, out, 2), 5);
	CHECK_EQ(readv(to, in, 2), 5);
	CHECK(memcmp(buf, "abcde", 5) == 0);
	CHECK_EQ(sendmsg(from, &msg, 0), 5);
	in[1].iov_len = 4;
	msg.msg_iov = in;
	CHECK_EQ(recvmsg(to, &msg, MSG_WAITALL), 5);
	CHECK_EQ(send(from, "1234567890", 10, 0), 10);
	CHECK_EQ(recvfrom(to, buf, 10, MSG_WAITALL, NULL, NULL), 10);
	CHECK_EQ(read(to, buf, 0), 0);
}

TEST(streams_carry_bytes_both_ways)
{
	int s[2];

	tcp_pair(s);
	check_stream(s[0], s[1]);
	check_stream(s[1], s[0]);
	close_pair(s);
}

TEST(bulk_arrives_in_order_and_ends_with_eof)
{
	int s[2];

	tcp_pair(s);
	check_bulk(s[0], s[1]);
	close_pair(s);
}

TEST(names_and_types)
{
	struct sockaddr_in a, b;
	socklen_t len = sizeof(b);
	struct stat st;
	int s[2], value;

	tcp_pair(s);
	a = own_address(s[0]);
	OK(getpeername(s[1], (struct sockaddr *)&b, &len));
	CHECK_EQ(a.sin_port, b.sin_port);
	CHECK_EQ(b.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	len = sizeof(value);
	OK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &value, &len));
	CHECK_EQ(value, SOCK_STREAM);
	OK(getsockopt(s[0], SOL_SOCKET, SO_ERROR, &value, &len));
	CHECK_EQ(value, 0);
	OK(fstat(s[0], &st));
	CHECK(S_ISSOCK(st.st_mode));
	value = 1;
	OK(setsockopt(s[0], IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)));
	FAILS(setsockopt(s[0], SOL_SOCKET, 12345, &value, sizeof(value)),
	    ENOPROTOOPT);
	close_pair(s);
}

TEST(non_blocking_calls_do_not_wait)
{
	int l = listener(), s[2], one = 1, avail = -1;
	char c;

	OK(fcntl(l, F_SETFL, fcntl(l, F_GETFL) | O_NONBLOCK));
	FAILS(accept(l, NULL, NULL), EAGAIN);
	s[0] = connected_to(l);
	CHECK(ready(l, POLLIN, 10000) & POLLIN);
	s[1] = OK(accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	CHECK(fcntl(s[1], F_GETFL) & O_NONBLOCK);
	CHECK_EQ(fcntl(s[1], F_GETFD), FD_CLOEXEC);
	FAILS(read(s[1], &c, 1), EAGAIN);
	OK(ioctl(s[0], FIONBIO, &one));
	FAILS(read(s[0], &c, 1), EAGAIN);
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 10000) & POLLIN);
	OK(ioctl(s[1], FIONREAD, &avail));
	CHECK_EQ(avail, 1);
	FAILS(accept4(l, NULL, NULL, 12345), EINVAL);
	close_pair(s);
	OK(close(l));
}

TEST(a_non_blocking_connect_reports_its_end)
{
	int l = listener(), s, error = -1;
	struct sockaddr_in to = own_address(l);
	socklen_t len = sizeof(error);

	s = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	if (connect(s, (struct sockaddr *)&to, sizeof(to)) == -1)
		CHECK_EQ(errno, EINPROGRESS);
	CHECK(ready(s, POLLOUT, 10000) & POLLOUT);
	OK(getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len));
	CHECK_EQ(error, 0);
	OK(close(s));
	OK(close(l));
	s = OK(socket(AF_INET, SOCK_STREAM, 0));
	FAILS(connect(s, (struct sockaddr *)&to, sizeof(to)), ECONNREFUSED);
	OK(close(s));
}

TEST(writing_to_a_closed_stream_is_a_broken_pipe)
{
	struct sigaction sa = { .sa_handler = on_sigpipe }, old;
	int s[2];

	OK(sigaction(SIGPIPE, &sa, &old));
	tcp_pair(s);
	OK(shutdown(s[0], SHUT_WR));
	FAILS(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_EQ(sigpipes, 0);
	FAILS(write(s[0], "x", 1), EPIPE);
	CHECK_EQ(sigpipes, 1);
	close_pair(s);
	OK(sigaction(SIGPIPE, &old, NULL));
}

TEST(timeouts_end_calls)
{
	int s[2], l = listener();
	char c;

	tcp_pair(s);
	set_timeout(s[0], SO_RCVTIMEO, 20);
	FAILS(read(s[0], &c, 1), EAGAIN);
	set_timeout(l, SO_RCVTIMEO, 20);
	FAILS(accept(l, NULL, NULL), EAGAIN);
	close_pair(s);
	OK(close(l));
}

static void
shut_reading(int fd)
{
	OK(shutdown(fd, SHUT_RD));
}

TEST(shutting_a_listener_ends_accept)
{
	int l = listener(), c = connected_to(l), s;
	struct later t;

	s = OK(accept(l, NULL, NULL));
	later(&t, 30, shut_reading, l);
	FAILS(accept(l, NULL, NULL), EINVAL);
	later_join(&t);
	CHECK(ready(l, POLLIN, 0) != 0);
	FAILS(accept(l, NULL, NULL), EINVAL);
	send_byte(c);		/* accepted connections continue */
	CHECK(ready(s, POLLIN, 10000) & POLLIN);
	OK(close(l));
	OK(close(c));
	OK(close(s));
}

TEST(datagrams_keep_their_bounds_and_senders)
{
	int a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
	struct sockaddr_in to = own_address(b), from;
	socklen_t len = sizeof(from);
	char buf[100];

	CHECK_EQ(sendto(a, "one", 3, 0, (struct sockaddr *)&to, sizeof(to)), 3);
	CHECK_EQ(sendto(a, "second", 6, 0, (struct sockaddr *)&to,
	    sizeof(to)), 6);
	CHECK_EQ(recvfrom(b, buf, sizeof(buf), 0, (struct sockaddr *)&from,
	    &len), 3);
	CHECK_EQ(from.sin_port, own_address(a).sin_port);
	CHECK_EQ(len, sizeof(from));
	CHECK_EQ(recv(b, buf, 2, MSG_TRUNC), 6);
	FAILS(recv(b, buf, 2, MSG_DONTWAIT), EAGAIN);
	OK(connect(a, (struct sockaddr *)&to, sizeof(to)));
	CHECK_EQ(send(a, "", 0, 0), 0);
	CHECK_EQ(recv(b, buf, sizeof(buf), 0), 0);
	OK(close(b));
	CHECK_EQ(send(a, "x", 1, 0), 1);
	CHECK(ready(a, POLLIN, 10000) & POLLERR);
	FAILS(recv(a, buf, 1, 0), ECONNREFUSED);
	OK(close(a));
}

TEST(several_messages_in_one_call)
{
	int a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
	struct sockaddr_in to = own_address(b);
	char buf[4][8] = { "", "", "", "" };
	struct iovec iov[4] = {
		{ "a", 1 }, { "bb", 2 }, { "ccc", 3 }, { "dddd", 4 }
	};
	struct mmsghdr vec[4] = { 0 };

	OK(connect(a, (struct sockaddr *)&to, sizeof(to)));
	for (int i = 0; i < 4; i++)
		vec[i].msg_hdr = (struct msghdr){
			.msg_iov = &iov[i], .msg_iovlen = 1
		};
	CHECK_EQ(sendmmsg(a, vec, 4, 0), 4);
	CHECK_EQ(vec[3].msg_len, 4);
	for (int i = 0; i < 4; i++) {
		CHECK(ready(b, POLLIN, 10000) & POLLIN);
		iov[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
	}
	CHECK_EQ(recvmmsg(b, vec, 3, 0, NULL), 3);
	CHECK_EQ(vec[2].msg_len, 3);
	CHECK(memcmp(buf[2], "ccc", 3) == 0);
	CHECK_EQ(recvmmsg(b, vec, 4, MSG_WAITFORONE, NULL), 1);
	OK(close(a));
	OK(close(b));
}

TEST(sendfile_sends_a_file)
{
	char path[] = "/tmp/stack-test-XXXXXX", buf[64];
	int fd = OK(mkstemp(path)), s[2];
	off_t at = 2;

	OK(unlink(path));
	CHECK_EQ(write(fd, "0123456789", 10), 10);
	tcp_pair(s);
	CHECK_EQ(sendfile(s[0], fd, &at, 5), 5);
	CHECK_EQ(at, 7);
	CHECK_EQ(recv(s[1], buf, 5, MSG_WAITALL), 5);
	CHECK(memcmp(buf, "23456", 5) == 0);
	CHECK_EQ(lseek(fd, 8, SEEK_SET), 8);
	CHECK_EQ(sendfile(s[0], fd, NULL, 100), 2);
	CHECK_EQ(recv(s[1], buf, 2, MSG_WAITALL), 2);
	CHECK(memcmp(buf, "89", 2) == 0);
	close_pair(s);
	OK(close(fd));
}

TEST(standard_io_works_on_a_socket)
{
	char line[32];
	FILE *in, *out;
	int s[2];

	tcp_pair(s);
	out = fdopen(s[0], "w");
	in = fdopen(s[1], "r");
	CHECK(out != NULL && in != NULL);
	CHECK(fprintf(out, "line %d\n", 1) == 7);
	CHECK(fclose(out) == 0);
	CHECK(fgets(line, sizeof(line), in) != NULL);
	CHECK_STREQ(line, "line 1\n");
	CHECK(fgets(line, sizeof(line), in) == NULL);
	CHECK(fclose(in) == 0);
	FAILS(close(s[0]), EBADF);
}

TEST(bad_calls_give_their_errors)
{
	struct sockaddr_in sin = loopback(0);
	int s = OK(socket(AF_INET, SOCK_STREAM, 0)), u = bound(SOCK_DGRAM);
	char c;

	FAILS(read(s, &c, 1), ENOTCONN);
	FAILS(listen(u, 1), EOPNOTSUPP);
	FAILS(accept(s, NULL, NULL), EINVAL);
	FAILS(bind(s, (struct sockaddr *)&sin, 4), EINVAL);
	sin.sin_addr.s_addr = htonl(0x01020304);
	FAILS(bind(s, (struct sockaddr *)&sin, sizeof(sin)), EADDRNOTAVAIL);
	FAILS(shutdown(s, SHUT_RD), ENOTCONN);
	FAILS(send(u, "x", 1, 0), EDESTADDRREQ);
	FAILS(read(9999, &c, 1), EBADF);
	OK(close(s));
	FAILS(send(s, &c, 1, 0), EBADF);
	OK(close(u));
}

#define	ALL	(1 << 20)	/* more than a request of a child carries */

static void
send_all(int fd)
{
	static char buf[ALL];

	for (size_t i = 0; i < ALL; i++)
		buf[i] = (char)bulk_byte(i);
	for (size_t done = 0; done < ALL;)
		done += (size_t)OK(send(fd, buf + done, ALL - done, 0));
}

TEST(a_large_read_waits_for_all)
{
	static unsigned char buf[ALL];
	struct later l;
	int s[2];

	tcp_pair(s);
	later(&l, 1, send_all, s[0]);
	CHECK_EQ(OK(recv(s[1], buf, ALL, MSG_WAITALL)), ALL);
	for (size_t i = 0; i < ALL; i++)
		CHECK_EQ(buf[i], bulk_byte(i));
	later_join(&l);
	close_pair(s);
}

static void
reset(int fd)
{
	const struct linger none = { .l_onoff = 1 };

	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
	OK(close(fd));
}

/* A read of all that has got a part leaves the error for the next one. */
TEST(a_reset_follows_what_a_read_of_all_got)
{
	struct later l;
	char buf[60];
	int s[2];

	tcp_pair(s);
	CHECK_EQ(send(s[0], buf, 10, 0), 10);
	later(&l, 50, reset, s[0]);
	CHECK_EQ(OK(recv(s[1], buf, sizeof(buf), MSG_WAITALL)), 10);
	FAILS(recv(s[1], buf, sizeof(buf), 0), ECONNRESET);
	later_join(&l);
	OK(close(s[1]));
}

static void
send_six(int fd)
{
	CHECK_EQ(send(fd, "defghi", 6, 0), 6);
}

TEST(a_read_waits_for_the_low_water_mark)
{
	const int mark = 6;
	char buf[16] = "";
	struct later l;
	int s[2];

	tcp_pair(s);
	OK(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	CHECK_EQ(send(s[0], "abc", 3, 0), 3);
	later(&l, 20, send_six, s[0]);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 9);
	CHECK(memcmp(buf, "abcdefghi", 9) == 0);
	later_join(&l);
	/* its end before the mark: what has come */
	CHECK_EQ(send(s[0], "abc", 3, 0), 3);
	set_timeout(s[1], SO_RCVTIMEO, 30);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 3);
	FAILS(recv(s[1], buf, sizeof(buf), 0), EAGAIN);
	CHECK_EQ(send(s[0], "abc", 3, 0), 3);
	OK(shutdown(s[0], SHUT_WR));
	set_timeout(s[1], SO_RCVTIMEO, 0);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 3);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 0);
	close_pair(s);
}

TEST(a_look_waits_for_all)
{
	char buf[16] = "";
	struct later l;
	int s[2];

	tcp_pair(s);
	CHECK_EQ(send(s[0], "abc", 3, 0), 3);
	later(&l, 20, send_six, s[0]);
	CHECK_EQ(recv(s[1], buf, 9, MSG_PEEK | MSG_WAITALL), 9);
	CHECK(memcmp(buf, "abcdefghi", 9) == 0);
	later_join(&l);
	set_timeout(s[1], SO_RCVTIMEO, 30);
	CHECK_EQ(recv(s[1], buf, 10, MSG_PEEK | MSG_WAITALL), 9);
	CHECK_EQ(recv(s[1], buf, 10, 0), 9);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
