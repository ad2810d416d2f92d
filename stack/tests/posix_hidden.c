/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's own descriptors do not exist for the program: each call fails as
 * on a number that is not open.  On the kernel there are none, and the calls
 * are made on such a number.
 */
#include <dirent.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <termios.h>

#include "posix_child.h"

#define	NUMBERS	1024
#define	UNUSED	60	/* select() ignores numbers over the kernel's table */

static char bytes[64];
static struct iovec iov = { bytes, 1 };

static void
sockets_fail(int fd)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNIX };
	struct sockaddr *sa = (struct sockaddr *)&ss;
	socklen_t len = sizeof(ss);
	int value = 1;

	FAILS(bind(fd, sa, sizeof(sa_family_t)), EBADF);
	FAILS(listen(fd, 1), EBADF);
	FAILS(accept(fd, NULL, NULL), EBADF);
	FAILS(connect(fd, sa, sizeof(sa_family_t)), EBADF);
	FAILS(shutdown(fd, SHUT_RDWR), EBADF);
	FAILS(getsockname(fd, sa, &len), EBADF);
	FAILS(getpeername(fd, sa, &len), EBADF);
	len = sizeof(value);
	FAILS(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len), EBADF);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, len), EBADF);
}

static void
transfers_fail(int fd)
{
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr vec = { .msg_hdr = msg };

	FAILS(read(fd, bytes, 1), EBADF);
	FAILS(readv(fd, &iov, 1), EBADF);
	FAILS(recv(fd, bytes, 1, MSG_DONTWAIT), EBADF);
	FAILS(recvmsg(fd, &msg, MSG_DONTWAIT), EBADF);
	FAILS(recvmmsg(fd, &vec, 1, MSG_DONTWAIT, NULL), EBADF);
	FAILS(write(fd, bytes, 1), EBADF);
	FAILS(writev(fd, &iov, 1), EBADF);
	FAILS(send(fd, bytes, 1, MSG_NOSIGNAL), EBADF);
	FAILS(sendmsg(fd, &msg, MSG_NOSIGNAL), EBADF);
	FAILS(sendmmsg(fd, &vec, 1, MSG_NOSIGNAL), EBADF);
	FAILS(lseek(fd, 0, SEEK_CUR), EBADF);
	FAILS(pread(fd, bytes, 1, 0), EBADF);
	FAILS(pwrite(fd, bytes, 1, 0), EBADF);
	FAILS(preadv(fd, &iov, 1, 0), EBADF);
	FAILS(pwritev(fd, &iov, 1, 0), EBADF);
	FAILS(preadv2(fd, &iov, 1, -1, 0), EBADF);
	FAILS(pwritev2(fd, &iov, 1, -1, 0), EBADF);
	FAILS(eventfd_write(fd, 1), EBADF);
	FAILS(eventfd_read(fd, (eventfd_t *)(void *)bytes), EBADF);
	FAILS(syscall(SYS_read, fd, bytes, 1), EBADF);
	FAILS(syscall(SYS_write, fd, bytes, 1), EBADF);
}

static void
copies_fail(int fd)
{
	const int file = OK(open("/bin/true", O_RDONLY | O_CLOEXEC));
	off64_t at = 0;
	int p[2], s[2];

	OK(pipe2(p, O_NONBLOCK | O_CLOEXEC));
	tcp_pair(s);
	write_pipe(p[1]);
	FAILS(sendfile(fd, file, NULL, 1), EBADF);
	FAILS(sendfile(p[1], fd, NULL, 1), EBADF);
	FAILS(sendfile(s[0], fd, NULL, 1), EBADF);
	FAILS(splice(fd, NULL, p[1], NULL, 1, 0), EBADF);
	FAILS(splice(p[0], NULL, fd, NULL, 1, 0), EBADF);
	FAILS(splice(s[0], NULL, fd, NULL, 1, 0), EBADF);
	FAILS(splice(fd, NULL, s[0], NULL, 1, 0), EBADF);
	FAILS(tee(fd, p[1], 1, 0), EBADF);
	FAILS(vmsplice(fd, &iov, 1, 0), EBADF);
	FAILS(copy_file_range(file, &at, fd, &at, 1, 0), EBADF);
	OK(close(p[0]));
	OK(close(p[1]));
	OK(close(file));
	close_pair(s);
}

static void
waits_fail(int fd)
{
	const int ep = OK(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec none = { 0 };
	fd_set set;

	FAILS(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), EBADF);
	FAILS(epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &ev), EBADF);
	FAILS(epoll_wait(fd, &ev, 1, 0), EBADF);
	OK(close(ep));
	CHECK_EQ(ready(fd, POLLIN, 0), POLLNVAL);
	CHECK_EQ(OK(ppoll(&p, 1, NULL, NULL)), 1);
	CHECK_EQ(p.revents, POLLNVAL);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	FAILS(pselect(fd + 1, &set, NULL, NULL, &none, NULL), EBADF);
}

static void
numbers_fail(int fd)
{
	int value = 0;

	FAILS(close(fd), EBADF);
	FAILS(dup(fd), EBADF);
	FAILS(dup2(fd, fd), EBADF);
	FAILS(dup2(fd, STDIN_FILENO), EBADF);
	FAILS(dup3(fd, STDIN_FILENO, O_CLOEXEC), EBADF);
	FAILS(fcntl(fd, F_GETFD), EBADF);
	FAILS(fcntl(fd, F_SETFD, 0), EBADF);
	FAILS(fcntl(fd, F_GETFL), EBADF);
	FAILS(fcntl(fd, F_DUPFD, 0), EBADF);
	FAILS(ioctl(fd, FIONREAD, &value), EBADF);
	FAILS(ioctl(fd, FIONBIO, &value), EBADF);
	FAILS(ioctl(fd, FIONCLEX), EBADF);
	CHECK(fdopen(fd, "r") == NULL);
	CHECK_EQ(errno, EBADF);
}

static void
files_fail(int fd)
{
	struct stat st;
	struct statx stx;
	struct statfs sf;
	struct statvfs sv;

	FAILS(fstat(fd, &st), EBADF);
	FAILS(fstatat(fd, "", &st, AT_EMPTY_PATH), EBADF);
	FAILS(fstatat(fd, "x", &st, 0), EBADF);
	FAILS(statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stx), EBADF);
	FAILS(fstatfs(fd, &sf), EBADF);
	FAILS(fstatvfs(fd, &sv), EBADF);
	FAILS(fchmod(fd, 0600), EBADF);
	FAILS(fchown(fd, getuid(), getgid()), EBADF);
	FAILS(futimens(fd, NULL), EBADF);
	FAILS(futimes(fd, NULL), EBADF);
	FAILS(fchdir(fd), EBADF);
	CHECK(fdopendir(fd) == NULL);
	CHECK_EQ(errno, EBADF);
	FAILS(getdents64(fd, bytes, sizeof(bytes)), EBADF);
	FAILS(fsync(fd), EBADF);
	FAILS(fdatasync(fd), EBADF);
	FAILS(syncfs(fd), EBADF);
	FAILS(ftruncate(fd, 0), EBADF);
	FAILS(fallocate(fd, 0, 0, 1), EBADF);
	CHECK_EQ(posix_fallocate(fd, 0, 1), EBADF);
	CHECK_EQ(posix_fadvise(fd, 0, 1, POSIX_FADV_NORMAL), EBADF);
	FAILS(readahead(fd, 0, 1), EBADF);
	FAILS(flock(fd, LOCK_SH), EBADF);
	FAILS(lockf(fd, F_TEST, 0), EBADF);
	FAILS(fgetxattr(fd, "user.x", bytes, 1), EBADF);
	FAILS(flistxattr(fd, bytes, 1), EBADF);
}

static void
special_files_fail(int fd)
{
	struct itimerspec value = { { 0, 0 }, { 0, 0 } };
	struct termios t;
	sigset_t none;

	sigemptyset(&none);
	FAILS(signalfd(fd, &none, 0), EBADF);
	FAILS(timerfd_settime(fd, 0, &value, NULL), EBADF);
	FAILS(timerfd_gettime(fd, &value), EBADF);
	FAILS(inotify_add_watch(fd, "/", IN_MODIFY), EBADF);
	FAILS(inotify_rm_watch(fd, 1), EBADF);
	FAILS(tcgetattr(fd, &t), EBADF);
	CHECK_EQ(ttyname_r(fd, bytes, sizeof(bytes)), EBADF);
	CHECK_EQ(isatty(fd), 0);
	CHECK_EQ(errno, EBADF);
}

static void
is_not_open(int fd)
{
	numbers_fail(fd);
	sockets_fail(fd);
	transfers_fail(fd);
	copies_fail(fd);
	waits_fail(fd);
	files_fail(fd);
	special_files_fail(fd);
}

/* Numbers that the kernel has and the program has not. */
static void
test_hidden(void)
{
	char path[64], target[64];

	for (int fd = 0; fd < NUMBERS; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target)) != -1 &&
		    fcntl(fd, F_GETFD) == -1)
			is_not_open(fd);
	}
}

/* All kinds: of a thread that waits for both, of sets, of children. */
TEST(hidden_descriptors_are_not_open)
{
	int s[2], p[2], ep;

	tcp_pair(s);
	OK(pipe(p));
	ep = epoll_of(s[0], EPOLLIN);
	CHECK_EQ(OK(poll((struct pollfd [2]){ { .fd = s[0], .events = POLLIN },
	    { .fd = p[0], .events = POLLIN } }, 2, 1)), 0);
	test_hidden();
	is_not_open(UNUSED);
	send_byte(s[1]);
	expect_byte(s[0]);
	OK(close(ep));
	OK(close(p[0]));
	OK(close(p[1]));
	close_pair(s);
}

static void
test_in_child(int fd)
{
	expect_byte(fd);	/* it has a channel now */
	test_hidden();
	send_byte(fd);
}

TEST(they_are_not_open_in_a_child)
{
	expect_answer_of(test_in_child);
}

/* A socket is no file of the other kinds, as in Linux. */
TEST(calls_of_other_kinds_on_a_socket)
{
	const int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
	struct itimerspec value = { { 0, 0 }, { 0, 0 } };
	struct statfs sf;
	sigset_t none;

	sigemptyset(&none);
	FAILS(fchdir(fd), ENOTDIR);
	CHECK(fdopendir(fd) == NULL);
	CHECK_EQ(errno, ENOTDIR);
	FAILS(getdents64(fd, bytes, sizeof(bytes)), ENOTDIR);
	OK(fchmod(fd, 0777));
	OK(fchown(fd, getuid(), getgid()));
	OK(futimens(fd, NULL));
	OK(fstatfs(fd, &sf));
	CHECK_EQ(sf.f_type, 0x534f434b);
	FAILS(vmsplice(fd, &iov, 1, 0), EBADF);
	FAILS(signalfd(fd, &none, 0), EINVAL);
	FAILS(timerfd_settime(fd, 0, &value, NULL), EINVAL);
	FAILS(timerfd_gettime(fd, &value), EINVAL);
	FAILS(inotify_add_watch(fd, "/", IN_MODIFY), EINVAL);
	FAILS(inotify_rm_watch(fd, 1), EINVAL);
	OK(close(fd));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
