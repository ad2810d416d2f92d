/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that a kernel refuses, and with which error. */
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>

#include "posix.h"

/* Addresses that no object has: a kernel finds them when it copies. */
static void *volatile const bad_addresses[] = { (void *)8, (void *)-4096 };

static void
refuse_address(int fd, void *bad)
{
	socklen_t len = sizeof(struct sockaddr_in);
	struct iovec iov = { bad, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[8];

	FAILS(bind(fd, bad, len), EFAULT);
	FAILS(connect(fd, bad, len), EFAULT);
	FAILS(getsockname(fd, bad, &len), EFAULT);
	FAILS(getsockname(fd, (struct sockaddr *)buf, bad), EFAULT);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, bad, 4), EFAULT);
	len = 4;
	FAILS(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, bad, &len), EFAULT);
	FAILS(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, buf, bad), EFAULT);
	FAILS(ioctl(fd, FIONREAD, bad), EFAULT);
	FAILS(write(fd, bad, 5), EFAULT);
	FAILS(writev(fd, &iov, 1), EFAULT);
	FAILS(sendmsg(fd, &msg, 0), EFAULT);
	FAILS(sendmsg(fd, bad, 0), EFAULT);
	FAILS(recvmsg(fd, bad, 0), EFAULT);
	FAILS(poll(bad, 1, 0), EFAULT);
	FAILS(recvmmsg(fd, bad, 1, 0, NULL), EFAULT);
}

TEST(bad_addresses_are_refused)
{
	int s[2];
	char buf[8];

	tcp_pair(s);
	send_byte(s[0]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	for (unsigned i = 0; i < 2; i++) {
		refuse_address(s[1], bad_addresses[i]);
		FAILS(read(s[1], bad_addresses[i], 5), EFAULT);
		FAILS(select(s[1] + 1, bad_addresses[i], NULL, NULL, NULL),
		    EFAULT);
	}
	CHECK_EQ(OK(read(s[1], buf, sizeof(buf))), 1);
	close_pair(s);
}

static const volatile int bad_counts[] = { INT_MAX, 0, -1 };

TEST(bad_lengths_are_refused)
{
	struct sockaddr_in sin;
	struct epoll_event ev;
	socklen_t len = (socklen_t)-1;
	int s[2], ep;

	tcp_pair(s);
	FAILS(getsockname(s[0], (struct sockaddr *)&sin, &len), EINVAL);
	FAILS(getpeername(s[0], (struct sockaddr *)&sin, &len), EINVAL);
	ep = epoll_of(s[0], EPOLLIN);
	for (unsigned i = 0; i < 3; i++)
		FAILS(epoll_wait(ep, &ev, bad_counts[i], 0), EINVAL);
	CHECK_EQ(OK(writev(s[0], NULL, 0)), 0);
	OK(close(ep));
	close_pair(s);
}

TEST(types_that_do_not_exist_are_refused)
{
	FAILS(socket(AF_INET, 77, 0), EINVAL);
	FAILS(socket(AF_INET, SOCK_STREAM | 0x100000, 0), EINVAL);
	FAILS(socket(AF_INET, SOCK_STREAM, -1), EINVAL);
	FAILS(socket(AF_INET, SOCK_STREAM, 300), EINVAL);
	FAILS(socket(AF_INET, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT);
	FAILS(socket(AF_INET, SOCK_RDM, 0), ESOCKTNOSUPPORT);
	FAILS(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
}

TEST(an_error_of_a_datagram_is_no_data)
{
	int s[2];

	udp_pair(s);
	OK(close(s[1]));
	CHECK_EQ(OK(send(s[0], "x", 1, 0)), 1);
	CHECK_EQ(ready(s[0], POLLIN, 5000), POLLERR);
	OK(close(s[0]));
}

static void
refuse_program(void *bad)
{
	char *const argv[] = { (char *)(uintptr_t)"true", NULL };
	char *const bad_list[] = { bad, NULL };

	FAILS(execve(bad, argv, environ), EFAULT);
	FAILS(execve("/bin/true", bad, environ), EFAULT);
	FAILS(execve("/bin/true", argv, bad), EFAULT);
	FAILS(execve("/bin/true", bad_list, environ), EFAULT);
	FAILS(execve("/bin/true", argv, bad_list), EFAULT);
	FAILS(execveat(AT_FDCWD, bad, argv, environ, 0), EFAULT);
	FAILS(execveat(STDIN_FILENO, bad, argv, environ, 0), EFAULT);
	FAILS(syscall(SYS_clone3, bad, 64), EFAULT);
}

/* Also where the program would run as a child, because a socket is open. */
TEST(programs_at_bad_addresses_are_refused)
{
	int fd;

	refuse_program((void *)-1);
	refuse_program((void *)8);
	FAILS(syscall(SYS_execve, NULL, NULL, NULL), EFAULT);
	FAILS(syscall(SYS_execveat, AT_FDCWD, NULL, NULL, NULL, 0), EFAULT);
	FAILS(syscall(SYS_clone3, NULL, 64), EFAULT);
	FAILS(syscall(SYS_clone3, NULL, 0), EINVAL);
	fd = OK(socket(AF_INET, SOCK_STREAM, 0));
	refuse_program((void *)-1);
	OK(close(fd));
}

static void *volatile const no_buffer;

/* tcp(7): only a TCP stream discards what MSG_TRUNC is for. */
TEST(a_buffer_that_must_be_filled_is_needed)
{
	struct iovec iov = { no_buffer, 100 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int s[2], t[2];
	char c;

	udp_pair(s);
	send_byte(s[0]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	FAILS(recv(s[1], no_buffer, 100, MSG_PEEK | MSG_TRUNC), EFAULT);
	CHECK_EQ(OK(recv(s[1], &c, 1, 0)), 1);
	tcp_pair(t);
	send_byte(t[0]);
	CHECK_EQ(OK(recv(t[1], no_buffer, 100, MSG_PEEK | MSG_TRUNC)), 1);
	CHECK_EQ(OK(recvmsg(t[1], &msg, MSG_TRUNC)), 1);
	FAILS(recv(t[1], &c, 1, MSG_DONTWAIT), EAGAIN);
	close_pair(t);
	OK(close(s[1]));
	OK(setsockopt(s[0], IPPROTO_IP, IP_RECVERR, &(int){ 1 }, sizeof(int)));
	send_byte(s[0]);
	CHECK_EQ(ready(s[0], POLLIN, 5000), POLLERR);
	FAILS(recvmsg(s[0], &msg, MSG_ERRQUEUE | MSG_TRUNC), EFAULT);
	OK(close(s[0]));
}

/* As in Linux, a vector of no byte reads and sends no datagram. */
TEST(vectors_of_nothing_do_nothing)
{
	char c;
	struct iovec none[2] = { { &c, 0 }, { &c, 0 } };
	int s[2];

	udp_pair(s);
	CHECK_EQ(OK(readv(s[1], none, 0)), 0);
	CHECK_EQ(OK(readv(s[1], none, 2)), 0);
	CHECK_EQ(OK(writev(s[0], none, 2)), 0);
	send_byte(s[0]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	CHECK_EQ(OK(readv(s[1], none, 2)), 0);
	CHECK_EQ(OK(recv(s[1], &c, 1, 0)), 1);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
