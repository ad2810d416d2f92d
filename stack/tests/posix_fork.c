/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets in the children of fork(): each call on a socket that parent and
 * child share, and what remains of a child that has ended.
 */
#include "posix_child.h"

#define	WORKERS		2
#define	CONNECTIONS	20

TEST(a_child_answers_on_the_parents_connection)
{
	expect_answer_of(answer_one);
}

static void
close_it(int fd)
{
	OK(close(fd));
}

TEST(what_a_child_closes_stays_open_in_the_parent)
{
	int s[2];

	tcp_pair(s);
	ends_well(child(close_it, s[1]));
	send_byte(s[1]);
	expect_byte(s[0]);
	close_pair(s);
}

static void
shut_down(int fd)
{
	OK(shutdown(fd, SHUT_WR));
}

TEST(a_child_shuts_the_connection_down_for_both)
{
	int s[2];

	tcp_pair(s);
	ends_well(child(shut_down, s[1]));
	expect_end(s[0]);
	FAILS(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	close_pair(s);
}

static void
wait_for_ever(int fd)
{
	send_byte(fd);
	for (;;)
		pause();
}

TEST(a_killed_child_leaves_no_connection)
{
	int s[2], l = listener(), a;
	pid_t pid;

	tcp_pair(s);
	pid = child(wait_for_ever, s[1]);
	OK(close(s[1]));
	expect_byte(s[0]);
	OK(kill(pid, SIGKILL));
	CHECK_EQ(status_of(pid), SIGKILL);
	expect_end(s[0]);
	OK(close(s[0]));
	s[0] = connected_to(l);
	a = OK(accept(l, NULL, NULL));
	send_byte(s[0]);
	expect_byte(a);
	OK(close(a));
	OK(close(s[0]));
	OK(close(l));
}

static void
block_in_read(int fd)
{
	char c;

	send_byte(fd);
	(void)!read(fd, &c, 1);
}

TEST(a_child_killed_while_it_reads_leaves_no_connection)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = child(block_in_read, s[1]);
	OK(close(s[1]));
	expect_byte(s[0]);
	nap(10);
	OK(kill(pid, SIGKILL));
	CHECK_EQ(status_of(pid), SIGKILL);
	expect_end(s[0]);
	OK(close(s[0]));
}

/* Serves until a connection brings no byte. */
static void
worker(int l)
{
	char c;
	int fd;

	for (;;) {
		fd = OK(accept(l, NULL, NULL));
		if (OK(read(fd, &c, 1)) == 0)
			return;
		send_byte(fd);
		OK(close(fd));
	}
}

TEST(workers_accept_from_one_listener)
{
	pid_t pids[WORKERS];
	int l = listener(), fd;

	for (int i = 0; i < WORKERS; i++)
		pids[i] = child(worker, l);
	for (int i = 0; i < CONNECTIONS; i++) {
		fd = connected_to(l);
		send_byte(fd);
		expect_byte(fd);
		expect_end(fd);
		OK(close(fd));
	}
	for (int i = 0; i < WORKERS; i++) {
		fd = connected_to(l);
		OK(shutdown(fd, SHUT_WR));
		expect_end(fd);
		OK(close(fd));
	}
	for (int i = 0; i < WORKERS; i++)
		ends_well(pids[i]);
	OK(close(l));
}

TEST(a_listener_ends_with_its_last_process)
{
	int l = listener(), s = OK(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in sin = own_address(l);
	pid_t pid = child(worker, l);
	int fd = connected_to(l);

	OK(close(l));
	send_byte(fd);
	expect_byte(fd);
	OK(close(fd));
	OK(kill(pid, SIGTERM));
	CHECK_EQ(status_of(pid), SIGTERM);
	/* a connection of the last moment is reset */
	for (int i = 0; i < 1000 && (connect(s, (struct sockaddr *)&sin,
	    sizeof(sin)) == 0 || errno == ECONNRESET); i++) {
		OK(close(s));
		nap(1);
		s = OK(socket(AF_INET, SOCK_STREAM, 0));
		errno = 0;
	}
	CHECK_EQ(errno, ECONNREFUSED);
	OK(close(s));
}

static void
connect_back(int l)
{
	int fd = connected_to(l), own = listener(), peer;

	send_byte(fd);
	expect_byte(fd);
	OK(close(fd));
	fd = connected_to(own);
	peer = OK(accept(own, NULL, NULL));
	send_byte(fd);
	expect_byte(peer);
	OK(close(peer));
	expect_end(fd);
	OK(close(fd));
	OK(close(own));
}

TEST(a_child_makes_connections)
{
	int l = listener(), fd;
	pid_t pid = child(connect_back, l);

	fd = OK(accept(l, NULL, NULL));
	answer_one(fd);
	ends_well(pid);
	OK(close(fd));
	OK(close(l));
}

static void
fork_again(int fd)
{
	pid_t pid;

	answer_one(fd);
	pid = child(answer_one, fd);
	ends_well(pid);
	answer_one(fd);
}

TEST(a_grandchild_shares_the_connection)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = child(fork_again, s[1]);
	OK(close(s[1]));
	for (int i = 0; i < 3; i++) {
		send_byte(s[0]);
		expect_byte(s[0]);
	}
	expect_end(s[0]);
	ends_well(pid);
	OK(close(s[0]));
}

static void
leave_it_to_a_grandchild(int fd)
{
	(void)child(answer_one, fd);
	_exit(0);
}

TEST(a_grandchild_outlives_the_child)
{
	int s[2];

	tcp_pair(s);
	ends_well(child(leave_it_to_a_grandchild, s[1]));
	OK(close(s[1]));
	send_byte(s[0]);
	expect_byte(s[0]);
	expect_end(s[0]);
	OK(close(s[0]));
}

static void
set_nonblocking(int fd)
{
	CHECK_EQ(OK(fcntl(fd, F_GETFL)) & O_NONBLOCK, 0);
	OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_EQ(OK(fcntl(fd, F_GETFL)) & O_NONBLOCK, O_NONBLOCK);
}

/* fcntl(2): status flags belong to what parent and child share. */
TEST(status_flags_are_shared)
{
	int s[2];
	char c;

	tcp_pair(s);
	ends_well(child(set_nonblocking, s[1]));
	CHECK_EQ(OK(fcntl(s[1], F_GETFL)) & O_NONBLOCK, O_NONBLOCK);
	FAILS(read(s[1], &c, 1), EAGAIN);
	close_pair(s);
}

static int shared_epoll;

static void
wait_in_set(int fd)
{
	struct epoll_event ev;

	CHECK_EQ(OK(epoll_wait(shared_epoll, &ev, 1, 30000)), 1);
	CHECK_EQ(ev.data.fd, fd);
	CHECK_EQ(ev.events, EPOLLIN);
	answer_one(fd);
	CHECK_EQ(OK(epoll_wait(shared_epoll, &ev, 1, 0)), 0);
	OK(epoll_ctl(shared_epoll, EPOLL_CTL_DEL, fd, NULL));
}

/* epoll(7): the set itself is shared. */
TEST(an_epoll_set_is_shared)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int s[2];
	pid_t pid;

	tcp_pair(s);
	shared_epoll = OK(epoll_create1(0));
	ev.data.fd = s[1];
	OK(epoll_ctl(shared_epoll, EPOLL_CTL_ADD, s[1], &ev));
	pid = child(wait_in_set, s[1]);
	nap(10);
	send_byte(s[0]);
	expect_byte(s[0]);
	ends_well(pid);
	FAILS(epoll_ctl(shared_epoll, EPOLL_CTL_DEL, s[1], NULL), ENOENT);
	OK(close(shared_epoll));
	close_pair(s);
}

static atomic_bool busy_over;

/* Resets leave no ports in TIME-WAIT: a slow build would use all. */
static void *
keep_busy(void *arg)
{
	const struct linger reset = { .l_onoff = 1 };
	int s[2], fd;

	(void)arg;
	while (!busy_over) {
		tcp_pair(s);
		send_byte(s[0]);
		expect_byte(s[1]);
		OK(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &reset,
		    sizeof(reset)));
		fd = OK(dup(s[0]));
		close_pair(s);
		OK(close(fd));
	}
	return (NULL);
}

TEST(fork_while_other_threads_use_sockets)
{
	pthread_t t[2];
	int s[2];
	pid_t pid;

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, keep_busy, NULL), 0);
	for (int i = 0; i < 30; i++) {
		tcp_pair(s);
		pid = child(answer_one, s[1]);
		OK(close(s[1]));
		send_byte(s[0]);
		expect_byte(s[0]);
		expect_end(s[0]);
		ends_well(pid);
		OK(close(s[0]));
	}
	busy_over = true;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void
leave_at_once(int fd)
{
	(void)fd;
	_exit(0);
}

TEST(many_children_leave_nothing_behind)
{
	int s[2], before, after;

	ends_well(child(leave_at_once, 0));
	tcp_pair(s);
	for (int i = 0; i < 20; i++)
		ends_well(child(leave_at_once, 0));
	before = OK(dup(0));
	OK(close(before));
	after = OK(dup(0));
	OK(close(after));
	CHECK_EQ(before, after);
	OK(close(s[1]));
	expect_end(s[0]);
	OK(close(s[0]));
}

static void
use_a_copy(int fd)
{
	OK(dup2(fd, STDIN_FILENO));
	OK(close(fd));
	expect_byte(STDIN_FILENO);
	CHECK_EQ(OK(write(STDIN_FILENO, "x", 1)), 1);
	OK(close(STDIN_FILENO));
}

TEST(a_child_moves_its_descriptor)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = child(use_a_copy, s[1]);
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
