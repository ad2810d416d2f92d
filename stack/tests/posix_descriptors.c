/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors: numbers, duplicates, limits, closing in the middle of a
 * call, and what is left of them in a child.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include "posix.h"

#define	RACERS	4
#define	CLOSED_SOCKETS	2000

static atomic_bool racers_over;

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
	CHECK_EQ(read(s[1], &c, 1), 0);	/* the last duplicate closes it */
	OK(close(s[1]));
}

TEST(flags_of_descriptors_and_of_files)
{
	int s = OK(socket(AF_INET, SOCK_STREAM, 0)), d;

	CHECK_EQ(fcntl(s, F_GETFD), 0);
	OK(fcntl(s, F_SETFD, FD_CLOEXEC));
	CHECK_EQ(fcntl(s, F_GETFD), FD_CLOEXEC);
	d = OK(dup(s));
	/* a duplicate has its own flag */
	CHECK_EQ(fcntl(d, F_GETFD), 0);
	CHECK_EQ(OK(dup3(s, d, O_CLOEXEC)), d);
	CHECK_EQ(fcntl(d, F_GETFD), FD_CLOEXEC);
	OK(close(d));
	d = OK(fcntl(s, F_DUPFD, 0));
	CHECK_EQ(fcntl(d, F_GETFD), 0);
	CHECK_EQ(fcntl(s, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
	OK(fcntl(s, F_SETFL, O_NONBLOCK));
	/* but the file's status flags are shared */
	CHECK(fcntl(d, F_GETFL) & O_NONBLOCK);
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
	/* a file duplicated onto a socket closes it */
	CHECK_EQ(OK(dup2(null, s[0])), s[0]);
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
	a = bound(SOCK_DGRAM);	/* the network still works */
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

/* A call of a child on its parent's socket fails or works; it never hangs. */
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

/* accept(2) reserves its number before it waits. */
static atomic_int accepted;

static void *
accept_one(void *arg)
{
	accepted = OK(accept((int)(intptr_t)arg, NULL, NULL));
	return (NULL);
}

/* The number that accept() reserves, once it does: dup2() reports it. */
static int
reserved_number(int l)
{
	for (int n = l + 1; ; n = n < l + 4 ? n + 1 : l + 1) {
		if (dup2(l, n) == -1) {
			CHECK_EQ(errno, EBUSY);
			return (n);
		}
		OK(close(n));
	}
}

TEST(a_reserved_number_is_neither_open_nor_free)
{
	int l = listener(), number, file, c;
	struct stat st;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, accept_one, (void *)(intptr_t)l), 0);
	number = reserved_number(l);
	file = OK(open("/dev/null", O_RDONLY));
	CHECK(file != number);
	FAILS(close(number), EBADF);
	FAILS(dup(number), EBADF);
	FAILS(fcntl(number, F_GETFD), EBADF);
	FAILS(fstat(number, &st), EBADF);
	FAILS(read(number, &st, 1), EBADF);
	FAILS(dup2(file, number), EBUSY);
	OK(close_range((unsigned)number, (unsigned)number, 0));
	CHECK(ready(number, POLLIN, 0) == POLLNVAL);
	c = connected_to(l);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(accepted, number);
	send_byte(number);
	OK(close(number));
	OK(close(file));
	OK(close(c));
	OK(close(l));
}

/* Threads use the number of a socket that another closes. */
static atomic_int target;

static void
duplicate_target(void)
{
	int d = dup(target);

	if (d != -1)
		close(d);
}

static void
duplicate_target_high(void)
{
	int d = fcntl(target, F_DUPFD, 100);

	if (d != -1)
		close(d);
}

static void
replace_by_target(void)
{
	dup2(target, 200);
}

static void
connect_target(void)
{
	struct sockaddr_in sin = loopback(9);
	int fd = target;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)connect(fd, (struct sockaddr *)&sin, sizeof(sin));
	(void)shutdown(fd, SHUT_RDWR);
}

static void
watch_target(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd p = { .fd = target, .events = POLLIN };
	int ep = OK(epoll_create1(0));

	(void)epoll_ctl(ep, EPOLL_CTL_ADD, target, &ev);
	(void)epoll_wait(ep, &ev, 1, 0);
	(void)poll(&p, 1, 0);
	OK(close(ep));
}

static void *
use_target(void *arg)
{
	static void (*const uses[])(void) = { duplicate_target,
	    duplicate_target_high, replace_by_target, connect_target,
	    watch_target };

	for (unsigned i = (unsigned)(uintptr_t)arg; !atomic_load(&racers_over);
	    i++)
		uses[i % 5]();
	return (NULL);
}

/* A number is open for all calls or for none: the stack's own are not open. */
static bool
calls_agree(int fd)
{
	struct stat st;
	bool open = fcntl(fd, F_GETFD) != -1;
	int copy = dup(fd);

	if ((copy != -1) != open || (fstat(fd, &st) == 0) != open)
		return (false);
	if (copy != -1)
		(void)close(copy);
	return ((close(fd) == 0) == open);
}

TEST(a_number_is_open_for_all_calls_or_for_none)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	if ((pid = fork()) == 0) {
		for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
			if (!calls_agree(fd))
				_exit(1);
		_exit(0);
	}
	CHECK_EQ(child_status(pid), 0);
	close_pair(s);
}

TEST(a_socket_is_closed_once)
{
	pthread_t t[RACERS];

	target = -1;
	racers_over = false;
	for (uintptr_t i = 0; i < RACERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, use_target, (void *)i), 0);
	for (int i = 0; i < CLOSED_SOCKETS; i++) {
		int s = OK(socket(AF_INET, SOCK_STREAM, 0));

		target = s;
		for (int spin = 0; spin < i * 37 % 3000; spin++)
			__asm__ volatile("");
		OK(close(s));
	}
	racers_over = true;
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	(void)close(200);
}

/* fork(3) without handlers. */
TEST(a_bare_forked_child_has_the_network)
{
	int s[2];
	pid_t pid;
	char c;

	tcp_pair(s);
	if ((pid = _Fork()) == 0) {
		alarm(30);
		if (recv(s[0], &c, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN)
			_exit(1);
		_exit(0);
	}
	CHECK_EQ(child_status(pid), 0);
	close_pair(s);
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
		if (epoll_wait(ep, &ev, 1, 0) != 0)
			_exit(1);
		if (socket(AF_INET, SOCK_STREAM, 0) == -1)
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

static void *
duplicate(void *arg)
{
	while (!atomic_load(&racers_over))
		OK(close(OK(dup((int)(intptr_t)arg))));
	return (NULL);
}

/* Threads of the parent wait for the descriptor table at the fork. */
TEST(a_child_does_not_wait_for_threads_of_its_parent)
{
	pthread_t t[RACERS];
	int fd = bound(SOCK_DGRAM);
	pid_t pid;

	racers_over = false;
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, duplicate,
		    (void *)(intptr_t)fd), 0);
	for (int i = 0; i < 60; i++) {
		if ((pid = fork()) == 0) {
			alarm(30);
			(void)own_address(fd);
			_exit(0);
		}
		CHECK_EQ(child_status(pid), 0);
	}
	racers_over = true;
	for (int i = 0; i < RACERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	OK(close(fd));
}

static void *
answer_in_thread(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	char c;

	CHECK_EQ(OK(read(fd, &c, 1)), 1);
	send_byte(fd);
	return (NULL);
}

static void
answer_in_threads(int fd)
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, answer_in_thread,
		    (void *)(intptr_t)fd), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

TEST(threads_of_a_child_share_a_connection)
{
	int s[2];
	pid_t pid;
	char c;

	tcp_pair(s);
	if ((pid = fork()) == 0) {
		is_child = true;
		answer_in_threads(s[1]);
		exit(0);
	}
	for (int i = 0; i < 3; i++) {
		send_byte(s[0]);
		CHECK_EQ(OK(read(s[0], &c, 1)), 1);
	}
	CHECK_EQ(child_status(pid), 0);
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
	return (posix_main(argc, argv));
}
