/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors: numbers, duplicates, limits, closing in the middle of a
 * call, and what is left of them in a child.
 */
#include <sys/resource.h>

#include "posix.h"

#define	RACERS	4

static void
close_fd(int fd)
{
	OK(close(fd));
}

TEST(numbers_are_the_lowest_free_ones)
{
	int a = OK(open("/dev/null", O_RDONLY)), b;

	OK(close(a));
	b = OK(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_EQ(a, b);
	OK(close(b));
	CHECK_EQ(OK(open("/dev/null", O_RDONLY)), a);
	OK(close(a));
}

TEST(duplicates_are_one_file)
{
	int s[2], d, e;
	char c;

	tcp_pair(s);
	d = OK(dup(s[0]));
	e = OK(fcntl(d, F_DUPFD_CLOEXEC, 100));
	CHECK(e >= 100);
	OK(fcntl(d, F_SETFL, O_NONBLOCK));
	CHECK(fcntl(s[0], F_GETFL) & O_NONBLOCK);
	OK(close(s[0]));
	send_byte(d);
	OK(close(d));
	send_byte(e);
	CHECK_EQ(read(s[1], &c, 1), 1);
	CHECK_EQ(read(s[1], &c, 1), 1);
	OK(close(e));
	CHECK_EQ(read(s[1], &c, 1), 0);	/* only now is it closed */
	OK(close(s[1]));
}

TEST(flags_of_descriptors_and_of_files)
{
	int s = OK(socket(AF_INET, SOCK_STREAM, 0)), d;

	CHECK_EQ(fcntl(s, F_GETFD), 0);
	OK(fcntl(s, F_SETFD, FD_CLOEXEC));
	CHECK_EQ(fcntl(s, F_GETFD), FD_CLOEXEC);
	d = OK(dup(s));
	CHECK_EQ(fcntl(d, F_GETFD), 0);		/* a duplicate has its own */
	CHECK_EQ(OK(dup3(s, d, O_CLOEXEC)), d);
	CHECK_EQ(fcntl(d, F_GETFD), FD_CLOEXEC);
	OK(close(d));
	d = OK(fcntl(s, F_DUPFD, 0));
	CHECK_EQ(fcntl(d, F_GETFD), 0);
	CHECK_EQ(fcntl(s, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
	OK(fcntl(s, F_SETFL, O_NONBLOCK));
	CHECK(fcntl(d, F_GETFL) & O_NONBLOCK);	/* but not of the file's */
	OK(fcntl(s, F_SETOWN, getpid()));
	CHECK_EQ(fcntl(d, F_GETOWN), getpid());
	FAILS(fcntl(s, F_DUPFD, -1), EINVAL);
	FAILS(fcntl(s, 12345), EINVAL);
	OK(close(s));
	OK(close(d));
	FAILS(fcntl(s, F_GETFD), EBADF);
}

TEST(dup2_replaces_in_every_direction)
{
	int s[2], p[2], null = OK(open("/dev/null", O_RDWR));
	char c;

	tcp_pair(s);
	OK(pipe(p));
	CHECK_EQ(OK(dup2(s[0], p[0])), p[0]);	/* socket over pipe */
	send_byte(p[0]);
	CHECK_EQ(read(s[1], &c, 1), 1);
	OK(close(p[0]));
	CHECK_EQ(OK(dup2(null, s[0])), s[0]);	/* file over socket: closes */
	CHECK_EQ(read(s[1], &c, 1), 0);
	CHECK_EQ(write(s[0], "x", 1), 1);
	CHECK_EQ(OK(dup2(s[1], s[1])), s[1]);
	FAILS(dup2(9999, s[1]), EBADF);
	FAILS(dup3(s[1], s[1], 0), EINVAL);
	FAILS(read(p[0], &c, 1), EBADF);
	OK(close(p[1]));
	OK(close(null));
	close_pair(s);
}

TEST(the_descriptor_limit_holds)
{
	struct rlimit old, few;
	int fds[64], n = 0;

	OK(getrlimit(RLIMIT_NOFILE, &old));
	few = old;
	few.rlim_cur = 40;
	OK(setrlimit(RLIMIT_NOFILE, &few));
	while (n < 64 && (fds[n] = socket(AF_INET, SOCK_DGRAM, 0)) != -1)
		n++;
	CHECK(n > 0 && n < 64);
	CHECK_EQ(errno, EMFILE);
	while (n > 0)
		OK(close(fds[--n]));
	OK(setrlimit(RLIMIT_NOFILE, &old));
}

TEST(ranges_are_closed)
{
	int a = OK(socket(AF_INET, SOCK_DGRAM, 0));
	int b = OK(fcntl(a, F_DUPFD, 50)), c = OK(dup(0));

	OK(close_range(40, ~0U, 0));
	FAILS(fcntl(b, F_GETFD), EBADF);
	OK(fcntl(a, F_GETFD));
	OK(close(c));
	OK(close(a));
	a = bound(SOCK_DGRAM);	/* the network is still there */
	OK(close(a));
}

/* Linux leaves the reader asleep; the stack wakes it. */
TEST(closing_elsewhere_never_hangs_a_later_user)
{
	struct later l;
	int s[2];
	char c;

	tcp_pair(s);
	set_timeout(s[0], SO_RCVTIMEO, 300);
	later(&l, 30, close_fd, s[0]);
	CHECK_EQ(read(s[0], &c, 1), -1);
	later_join(&l);
	FAILS(read(s[0], &c, 1), EBADF);
	CHECK_EQ(read(s[1], &c, 1), 0);
	OK(close(s[1]));
}

static atomic_int stop_racing;

static void *
race(void *arg)
{
	const int fd = *(int *)arg;
	char buf[16];

	while (!stop_racing) {
		(void)!recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		(void)!send(fd, "race", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)ready(fd, POLLIN | POLLOUT, 0);
	}
	return (NULL);
}

/* Threads use numbers that another one opens, duplicates and closes. */
TEST(races_of_use_and_close_are_harmless)
{
	pthread_t t[RACERS];
	int s[2], n;

	tcp_pair(s);
	n = OK(fcntl(s[0], F_DUPFD, 200));
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, race, &n), 0);
	for (int i = 0; i < 2000; i++) {
		OK(dup2(s[i % 2], n));
		if (i % 3 == 0)
			OK(close(n));
		if (i % 100 == 0) {
			close_pair(s);
			tcp_pair(s);
		}
	}
	stop_racing = 1;
	for (int i = 0; i < RACERS; i++)
		pthread_join(t[i], NULL);
	(void)close(n);
	close_pair(s);
}

static int
child_status(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return (WEXITSTATUS(status));
}

/* A child's use of its parent's sockets fails, or works; never neither. */
/*
 * LeakSanitizer calls this function.  In a child it does not find threads of
 * the parent, and may report their memory as leaks.
 */
static bool is_child;

int	__lsan_is_turned_off(void) __attribute__((visibility("default")));

int
__lsan_is_turned_off(void)
{
	return (is_child);
}

TEST(a_forked_child_cannot_damage_its_parent)
{
	int s[2], ep = OK(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN };
	pid_t pid;
	char c;

	tcp_pair(s);
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[1], &ev));
	if ((pid = fork()) == 0) {
		is_child = true;
		(void)epoll_wait(ep, &ev, 1, 0);
		if (write(s[0], "c", 1) == -1 && errno != EBADF)
			_exit(1);
		if (socket(AF_INET, SOCK_STREAM, 0) == -1 && errno != ENETDOWN)
			_exit(2);
		if (close(s[0]) != 0 || close(s[1]) != 0 || close(ep) != 0)
			_exit(3);
		exit(0);
	}
	CHECK_EQ(child_status(pid), 0);
	OK(epoll_ctl(ep, EPOLL_CTL_DEL, s[1], NULL));
	send_byte(s[0]);
	CHECK_EQ(read(s[1], &c, 1), 1);
	OK(close(ep));
	close_pair(s);
}

TEST(an_executed_program_is_an_ordinary_one)
{
	CHECK_EQ(system("test -z \"$STACK_CONF\" && "
	    "case $LD_PRELOAD in *libstack*) exit 1;; esac"), 0);
}

TEST(a_vforked_child_closes_its_own_copies_only)
{
	int s[2];
	pid_t pid;
	char c;

	tcp_pair(s);
	if ((pid = vfork()) == 0) {
		close(s[0]);
		close(s[1]);
		_exit(0);
	}
	CHECK_EQ(child_status(pid), 0);
	send_byte(s[0]);
	CHECK_EQ(read(s[1], &c, 1), 1);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
