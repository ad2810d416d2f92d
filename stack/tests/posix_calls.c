/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that do not go through the C library's function of that name:
 * syscall(2), positioned calls with position -1, sendfile() from a pipe, and
 * requests of ioctl(2).
 */
#include <linux/sockios.h>
#include <sys/syscall.h>

#include "posix.h"

/* The peer sees the end, and the number may be a file's afterwards. */
TEST(a_raw_close_ends_the_connection)
{
	char name[] = "/tmp/posix_calls.XXXXXX", c;
	struct stat st;
	int s[2], file, fd;

	tcp_pair(s);
	OK(syscall(SYS_close, s[1]));
	CHECK_EQ(read(s[0], &c, 1), 0);
	file = OK(mkstemp(name));
	fd = OK(fcntl(file, F_DUPFD, s[1]));
	CHECK_EQ(fd, s[1]);
	CHECK_EQ(write(fd, "file", 4), 4);
	OK(stat(name, &st));
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(recv(s[0], &c, 1, MSG_DONTWAIT), 0);
	OK(unlink(name));
	OK(close(file));
	OK(close(fd));
	OK(close(s[0]));
}

TEST(raw_calls_use_the_same_sockets)
{
	struct sockaddr_in sin = loopback(0);
	socklen_t len = sizeof(sin);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = 7 };
	int l = OK(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	int c, s, d, ep, type;
	char buf[8];

	OK(syscall(SYS_bind, l, &sin, sizeof(sin)));
	OK(syscall(SYS_listen, l, 5));
	OK(syscall(SYS_getsockname, l, &sin, &len));
	CHECK_EQ(own_address(l).sin_port, sin.sin_port);
	c = OK(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	OK(syscall(SYS_connect, c, &sin, sizeof(sin)));
	s = OK(syscall(SYS_accept4, l, NULL, NULL, 0));
	d = OK(syscall(SYS_dup, s));
	OK(syscall(SYS_close, s));
	CHECK_EQ(syscall(SYS_write, c, "abc", 3), 3);
	CHECK_EQ(syscall(SYS_read, d, buf, 8), 3);
	CHECK_EQ(syscall(SYS_sendto, d, "de", 2, 0, NULL, 0), 2);
	ep = OK(syscall(SYS_epoll_create1, 0));
	OK(syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, c, &ev));
	CHECK_EQ(syscall(SYS_epoll_pwait, ep, &ev, 1, 10000, NULL, 8), 1);
	CHECK_EQ(ev.data.fd, 7);
	CHECK_EQ(syscall(SYS_recvfrom, c, buf, 8, 0, NULL, NULL), 2);
	s = OK(syscall(SYS_dup3, d, 100, O_CLOEXEC));
	CHECK_EQ(s, 100);
	OK(syscall(SYS_fcntl, s, F_SETFL, O_NONBLOCK));
	FAILS(read(d, buf, 1), EAGAIN);
	len = sizeof(type);
	OK(syscall(SYS_getsockopt, s, SOL_SOCKET, SO_TYPE, &type, &len));
	CHECK_EQ(type, SOCK_STREAM);
	OK(close(l));
	OK(close(c));
	OK(close(s));
	OK(close(d));
	OK(close(ep));
	FAILS(syscall(SYS_close, d), EBADF);
}

TEST(position_minus_one_is_none)
{
	char buf[8];
	struct iovec out = { .iov_base = buf, .iov_len = 3 };
	struct iovec in = { .iov_base = buf, .iov_len = sizeof(buf) };
	int s[2];

	memcpy(buf, "abc", 3);
	tcp_pair(s);
	CHECK_EQ(pwritev2(s[0], &out, 1, -1, 0), 3);
	CHECK_EQ(preadv2(s[1], &in, 1, -1, 0), 3);
	FAILS(preadv2(s[1], &in, 1, -1, RWF_NOWAIT), EAGAIN);
	FAILS(preadv2(s[1], &in, 1, 0, 0), ESPIPE);
	FAILS(pwritev2(s[1], &out, 1, 5, 0), ESPIPE);
	close_pair(s);
}

/* sendfile(2): the input must be a file; nothing is taken from a pipe. */
TEST(sendfile_leaves_a_pipe_alone)
{
	int s[2], p[2], left;
	off_t at = 0;

	tcp_pair(s);
	OK(pipe(p));
	CHECK_EQ(write(p[1], "0123456789", 10), 10);
	FAILS(sendfile(s[0], p[0], NULL, 10), EINVAL);
	FAILS(sendfile(s[0], p[0], &at, 10), ESPIPE);
	FAILS(sendfile(s[0], s[1], NULL, 10), EINVAL);
	FAILS(sendfile(s[0], -1, NULL, 10), EBADF);
	OK(ioctl(p[0], FIONREAD, &left));
	CHECK_EQ(left, 10);
	close_pair(s);
	close_pair(p);
}

/* A request writes its own argument only. */
static void
request(int fd, unsigned long cmd, int error)
{
	struct {
		int		 value;
		unsigned char	 guard[60];
	} arg = { .value = 1 };

	memset(arg.guard, 0xa5, sizeof(arg.guard));
	if (error == 0)
		OK(ioctl(fd, cmd, &arg.value));
	else
		FAILS(ioctl(fd, cmd, &arg.value), error);
	for (unsigned i = 0; i < sizeof(arg.guard); i++)
		CHECK_EQ(arg.guard[i], 0xa5);
}

TEST(requests_write_their_argument_only)
{
	int s[2];

	tcp_pair(s);
	request(s[0], FIOASYNC, 0);
	request(s[0], SIOCOUTQ, 0);
	request(s[0], SIOCOUTQNSD, 0);
	request(s[0], FIONREAD, 0);
	request(s[0], TIOCGWINSZ, ENOTTY);
	request(s[0], TIOCGPGRP, ENOTTY);
	request(s[0], 0x12345678, ENOTTY);
	OK(ioctl(s[0], FIOCLEX, NULL));
	CHECK_EQ(fcntl(s[0], F_GETFD), FD_CLOEXEC);
	OK(ioctl(s[0], FIONCLEX, NULL));
	CHECK_EQ(fcntl(s[0], F_GETFD), 0);
	close_pair(s);
}

TEST(sockets_have_a_type_and_an_inode)
{
	struct stat a, b, c;
	struct statx x;
	int s[2], d;

	tcp_pair(s);
	d = OK(dup(s[0]));
	OK(fstat(s[0], &a));
	OK(fstat(s[1], &b));
	OK(fstat(d, &c));
	CHECK(S_ISSOCK(a.st_mode));
	CHECK(a.st_ino != b.st_ino);
	CHECK_EQ(a.st_ino, c.st_ino);
	CHECK_EQ(a.st_uid, geteuid());
	OK(fstatat(s[0], "", &c, AT_EMPTY_PATH));
	CHECK(S_ISSOCK(c.st_mode));
	OK(statx(s[0], "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x));
	CHECK(S_ISSOCK(x.stx_mode));
	CHECK_EQ(x.stx_ino, a.st_ino);
	FAILS(fstatat(s[0], "name", &c, 0), ENOTDIR);
	close_pair(s);
	OK(close(d));
	FAILS(fstat(d, &a), EBADF);
}

TEST(streams_know_their_number)
{
	int s[2];
	char buf[32];
	FILE *f;

	tcp_pair(s);
	CHECK((f = fdopen(s[0], "r+")) != NULL);
	CHECK_EQ(fileno(f), s[0]);
	CHECK_EQ(dprintf(s[1], "line %d\n", 5), 7);
	CHECK(fgets(buf, sizeof(buf), f) != NULL);
	CHECK_STREQ(buf, "line 5\n");
	CHECK_EQ(fclose(f), 0);
	CHECK_EQ(read(s[1], buf, 1), 0);
	OK(close(s[1]));
}

/* As a server that inetd(8) started. */
TEST(a_socket_may_be_the_standard_output)
{
	int s[2], keep_in, keep_out;
	char buf[32];
	bool flushed;
	int n, got;

	tcp_pair(s);
	fflush(stdout);
	keep_in = OK(dup(STDIN_FILENO));
	keep_out = OK(dup(STDOUT_FILENO));
	OK(dup2(s[0], STDIN_FILENO));
	OK(dup2(s[0], STDOUT_FILENO));
	n = printf("hello %d", 7);
	flushed = fflush(stdout) == 0;
	CHECK_EQ(write(s[1], "in\n", 3), 3);
	got = getchar();
	OK(dup2(keep_in, STDIN_FILENO));
	OK(dup2(keep_out, STDOUT_FILENO));
	CHECK_EQ(n, 7);
	CHECK(flushed);
	CHECK_EQ(got, 'i');
	CHECK_EQ(read(s[1], buf, sizeof(buf)), 7);
	CHECK_EQ(memcmp(buf, "hello 7", 7), 0);
	close_pair(s);
	OK(close(keep_in));
	OK(close(keep_out));
}

static bool
earlier(const struct timespec *a, const struct timespec *b)
{
	return (a->tv_sec < b->tv_sec ||
	    (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec));
}

/*
 * Receives a byte 20 ms after it came; true if its stamp is from between
 * sending and the arrival's event.
 */
static bool
stamped_at_arrival(int s[2], struct timespec *stamp)
{
	struct timespec before, after;
	struct timeval tv;
	char c;

	OK(clock_gettime(CLOCK_REALTIME_COARSE, &before));
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 5000) & POLLIN);
	OK(clock_gettime(CLOCK_REALTIME, &after));
	nap(20);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	OK(ioctl(s[1], SIOCGSTAMPNS, stamp));
	OK(ioctl(s[1], SIOCGSTAMP, &tv));
	CHECK_EQ(tv.tv_sec, stamp->tv_sec);
	CHECK_EQ(tv.tv_usec, stamp->tv_nsec / 1000);
	CHECK(!earlier(stamp, &before));
	return (!earlier(&after, stamp));
}

/*
 * SIOCGSTAMP: the time of the datagram that was read last (socket(7)).  A
 * kernel notes times of arrival from a moment after the first request on
 * (net_enable_timestamp()), and answers with the present time until then.
 */
TEST(the_last_arrival_can_be_requested)
{
	int s[2], u[2], t = OK(socket(AF_INET, SOCK_STREAM, 0)), tries = 0;
	struct timespec stamp, again;
	struct timeval tv;

	udp_pair(s);
	FAILS(ioctl(t, SIOCGSTAMP, &tv), ENOENT);
	FAILS(ioctl(s[1], SIOCGSTAMPNS, &stamp), ENOENT);
	send_byte(s[0]);
	CHECK(ready(s[1], POLLIN, 5000) & POLLIN);
	FAILS(ioctl(s[1], SIOCGSTAMP, &tv), ENOENT);	/* not read yet */
	drain(s[1]);
	while (!stamped_at_arrival(s, &stamp))
		CHECK(++tries < 100);
	OK(ioctl(s[1], SIOCGSTAMPNS, &again));
	CHECK_EQ(memcmp(&again, &stamp, sizeof(stamp)), 0);
	OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, u));
	FAILS(ioctl(u[0], SIOCGSTAMP, &tv), ENOTTY);
	close_pair(u);
	close_pair(s);
	OK(close(t));
}

/* A datagram that was read before the first request: the time of that. */
TEST(an_unknown_arrival_is_now)
{
	struct timespec stamp, again;
	int s[2];
	char c;

	udp_pair(s);
	send_byte(s[0]);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	OK(ioctl(s[1], SIOCGSTAMPNS, &stamp));
	nap(20);
	OK(ioctl(s[1], SIOCGSTAMPNS, &again));
	CHECK_EQ(memcmp(&again, &stamp, sizeof(stamp)), 0);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
