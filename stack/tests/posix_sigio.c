/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals of a socket to its owner (fcntl(2), O_ASYNC; socket(7)): which
 * events, to whom, and what is known about them.
 */
#include <sys/syscall.h>

#include "posix_child.h"

#define	QUEUED	(SIGRTMIN + 1)		/* the F_SETSIG of these tests */

/* What the handler has seen. */
static atomic_int signals;
static siginfo_t last, last_of[POLL_HUP + 1];	/* by si_code */
static atomic_int seen[POLL_HUP + 1];
static atomic_int thread;

static void
on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	last = *info;
	atomic_store(&thread, (int)gettid());
	if (info->si_code > 0 && info->si_code <= POLL_HUP) {
		last_of[info->si_code] = *info;
		atomic_fetch_add(&seen[info->si_code], 1);
	}
	atomic_fetch_add(&signals, 1);
}

static void
catch(int sig)
{
	struct sigaction sa = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART
	};

	OK(sigaction(sig, &sa, NULL));
	atomic_store(&signals, 0);
	for (int i = 0; i <= POLL_HUP; i++)
		atomic_store(&seen[i], 0);
}

/* Waits until there were n signals since catch(), and no more. */
static void
expect_signals(int n)
{
	for (int i = 0; i < 5000 && atomic_load(&signals) < n; i++)
		nap(1);
	CHECK_EQ(atomic_load(&signals), n);
}

static void
set_async(int fd, bool on)
{
	const int flags = OK(fcntl(fd, F_GETFL));

	OK(fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC));
}

/* Signals of the socket's events go to this process, with information. */
static void
queue_signals(int fd)
{
	catch(QUEUED);
	OK(fcntl(fd, F_SETOWN, getpid()));
	OK(fcntl(fd, F_SETSIG, QUEUED));
	set_async(fd, true);
}

static void
expect_info(const siginfo_t *info, int fd, int code, long band)
{
	CHECK_EQ(info->si_signo, QUEUED);
	CHECK_EQ(info->si_code, code);
	CHECK_EQ(info->si_fd, fd);
	CHECK_EQ(info->si_band, band);
}

static void
expect_queued(int n, int fd, int code, long band)
{
	expect_signals(n);
	expect_info(&last, fd, code, band);
}

/* A signal of this kind; Linux sends some several times, or others, too. */
static void
expect_some(int fd, int code, long band)
{
	for (int i = 0; i < 5000 && atomic_load(&seen[code]) == 0; i++)
		nap(1);
	CHECK(atomic_load(&seen[code]) > 0);
	expect_info(&last_of[code], fd, code, band);
}

#define	BAND_IN		(POLLIN | POLLRDNORM)
#define	BAND_OUT	(POLLOUT | POLLWRNORM | POLLWRBAND)

TEST(sigio_tells_of_data)
{
	int s[2];

	udp_pair(s);
	catch(SIGIO);
	OK(fcntl(s[1], F_SETOWN, getpid()));
	send_byte(s[0]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	expect_signals(0);			/* O_ASYNC is not set */
	set_async(s[1], true);
	expect_signals(0);			/* it was there before */
	send_byte(s[0]);
	expect_signals(1);
	CHECK_EQ(last.si_code, SI_KERNEL);
	set_async(s[1], false);
	send_byte(s[0]);
	drain(s[1]);
	drain(s[1]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	expect_signals(1);
	close_pair(s);
}

TEST(the_flag_is_kept)
{
	int s = bound(SOCK_DGRAM), on = 1;

	set_async(s, true);
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR | O_ASYNC);
	OK(fcntl(s, F_SETFL, O_NONBLOCK));
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR | O_NONBLOCK);
	OK(ioctl(s, FIOASYNC, &on));
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR | O_NONBLOCK | O_ASYNC);
	on = 0;
	OK(ioctl(s, FIONBIO, &on));
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR | O_ASYNC);
	OK(ioctl(s, FIOASYNC, &on));
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR);
	OK(close(s));
}

TEST(a_socket_without_an_owner_signals_nobody)
{
	int s[2];

	udp_pair(s);
	catch(SIGIO);
	set_async(s[1], true);
	send_byte(s[0]);
	CHECK_EQ(ready(s[1], POLLIN, 5000), POLLIN);
	expect_signals(0);
	close_pair(s);
}

TEST(each_datagram_is_queued)
{
	int s[2];

	udp_pair(s);
	queue_signals(s[1]);
	send_byte(s[0]);
	expect_queued(1, s[1], POLL_IN, BAND_IN);
	send_byte(s[0]);
	expect_queued(2, s[1], POLL_IN, BAND_IN);
	OK(fcntl(s[1], F_SETSIG, 0));		/* SIGIO again */
	catch(SIGIO);
	send_byte(s[0]);
	expect_signals(1);
	CHECK_EQ(last.si_signo, SIGIO);
	CHECK_EQ(last.si_code, SI_KERNEL);
	close_pair(s);
}

/* SIGIO itself has information if F_SETSIG names it. */
TEST(sigio_may_be_the_queued_signal)
{
	int s[2];

	udp_pair(s);
	queue_signals(s[1]);
	catch(SIGIO);
	OK(fcntl(s[1], F_SETSIG, SIGIO));
	send_byte(s[0]);
	expect_signals(1);
	CHECK_EQ(last.si_code, POLL_IN);
	CHECK_EQ(last.si_fd, s[1]);
	close_pair(s);
}

TEST(the_descriptor_is_that_which_set_the_flag)
{
	int s[2], d;

	udp_pair(s);
	d = OK(dup(s[1]));
	queue_signals(s[1]);
	OK(close(s[1]));
	send_byte(s[0]);
	expect_queued(1, s[1], POLL_IN, BAND_IN);
	OK(close(d));
	send_byte(s[0]);
	nap(20);
	expect_signals(1);		/* the last one closed the socket */
	OK(close(s[0]));
}

static void
wait_for_signals(const sigset_t *set, siginfo_t *info)
{
	struct timespec ts = { .tv_sec = 5 };

	CHECK_EQ(sigtimedwait(set, info, &ts), QUEUED);
}

TEST(a_program_may_wait_for_them)
{
	sigset_t set, old;
	siginfo_t info;
	int s[2];

	udp_pair(s);
	queue_signals(s[1]);
	sigemptyset(&set);
	sigaddset(&set, QUEUED);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
	for (int i = 0; i < 3; i++)
		send_byte(s[0]);
	wait_for_signals(&set, &info);
	CHECK_EQ(info.si_code, POLL_IN);
	CHECK_EQ(info.si_fd, s[1]);
	CHECK_EQ(info.si_band, BAND_IN);
	CHECK_EQ(sigwaitinfo(&set, &info), QUEUED);
	CHECK_EQ(info.si_code, POLL_IN);
	wait_for_signals(&set, NULL);
	FAILS(sigtimedwait(&set, &info, &(struct timespec){ 0 }), EAGAIN);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	close_pair(s);
}

TEST(a_listener_tells_of_connections)
{
	int l = listener(), c;

	queue_signals(l);
	c = connected_to(l);
	expect_queued(1, l, POLL_IN, BAND_IN);
	OK(close(c));
	OK(close(l));
}

/* A socket that connects, without waiting, to address. */
static int
connecting_to(struct sockaddr_in sin)
{
	int s = OK(socket(AF_INET, SOCK_STREAM, 0));

	queue_signals(s);
	OK(fcntl(s, F_SETFL, O_NONBLOCK | O_ASYNC));
	FAILS(connect(s, (struct sockaddr *)&sin, sizeof(sin)), EINPROGRESS);
	return (s);
}

TEST(a_connection_tells_of_its_beginning)
{
	int l = listener(), s = connecting_to(own_address(l));

	expect_queued(1, s, POLL_OUT, BAND_OUT);
	OK(close(s));
	OK(close(l));
}

TEST(a_connection_tells_of_a_refusal)
{
	int closed = bound(SOCK_STREAM), s = connecting_to(own_address(closed));

	expect_queued(1, s, POLL_ERR, POLLERR);
	OK(close(s));
	OK(close(closed));
}

TEST(a_connection_tells_of_data_and_its_end)
{
	int s[2];

	tcp_pair(s);
	queue_signals(s[1]);
	send_byte(s[0]);
	expect_queued(1, s[1], POLL_IN, BAND_IN);
	catch(QUEUED);
	OK(shutdown(s[0], SHUT_WR));
	expect_some(s[1], POLL_IN, BAND_IN);
	close_pair(s);
}

TEST(a_connection_tells_of_the_end_of_both_directions)
{
	int s[2];

	tcp_pair(s);
	queue_signals(s[1]);
	OK(shutdown(s[1], SHUT_WR));
	expect_end(s[0]);
	expect_signals(0);
	OK(shutdown(s[0], SHUT_WR));
	expect_some(s[1], POLL_HUP, POLLHUP | POLLERR);
	close_pair(s);
}

TEST(a_connection_tells_of_a_reset)
{
	struct linger hard = { .l_onoff = 1 };
	int s[2];

	tcp_pair(s);
	queue_signals(s[1]);
	OK(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	OK(close(s[0]));
	expect_queued(1, s[1], POLL_ERR, POLLERR);
	OK(close(s[1]));
}

/* Fills the send buffer, and reads all of it at the other end. */
static void
fill_and_drain(int from, int to)
{
	static char buf[1 << 16];
	ssize_t n, sent = 0;

	while ((n = send(from, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		sent += n;
	CHECK_EQ(errno, EAGAIN);
	for (; sent > 0; sent -= n)
		n = OK(read(to, buf, sizeof(buf)));
}

TEST(space_is_told_of_after_it_was_missed)
{
	int s[2];

	tcp_pair(s);
	queue_signals(s[0]);
	send_byte(s[0]);
	expect_byte(s[1]);
	nap(20);
	expect_signals(0);		/* there was space before */
	fill_and_drain(s[0], s[1]);
	expect_some(s[0], POLL_OUT, BAND_OUT);
	close_pair(s);
}

/* A reader that waits is woken and gets no signal, except in a child. */
TEST(a_reader_that_waits_gets_no_signal)
{
	struct later l;
	int s[2];

	if (getenv("POSIX_CHILD") != NULL)
		return;
	tcp_pair(s);
	queue_signals(s[1]);
	later(&l, 50, send_byte, s[0]);
	expect_byte(s[1]);
	later_join(&l);
	expect_signals(0);
	close_pair(s);
}

TEST(urgent_data_has_a_signal_of_its_own)
{
	int s[2];

	tcp_pair(s);
	catch(SIGURG);
	OK(fcntl(s[1], F_SETOWN, getpid()));
	CHECK_EQ(send(s[0], "!", 1, MSG_OOB), 1);
	expect_signals(1);
	CHECK_EQ(last.si_signo, SIGURG);
	CHECK_EQ(last.si_code, SI_KERNEL);
	close_pair(s);
}

TEST(urgent_data_is_queued_too)
{
	sigset_t set, old;
	siginfo_t info;
	int s[2];

	tcp_pair(s);
	catch(SIGURG);
	queue_signals(s[1]);
	sigemptyset(&set);
	sigaddset(&set, QUEUED);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
	CHECK_EQ(send(s[0], "!", 1, MSG_OOB), 1);
	wait_for_signals(&set, &info);
	CHECK_EQ(info.si_code, POLL_PRI);
	CHECK_EQ(info.si_band, POLLPRI | POLLRDBAND);
	wait_for_signals(&set, &info);
	CHECK_EQ(info.si_code, POLL_IN);
	expect_signals(1);			/* SIGURG */
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	close_pair(s);
}

TEST(unix_sockets_tell_of_data_and_the_end)
{
	int s[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	queue_signals(s[1]);
	send_byte(s[0]);
	expect_queued(1, s[1], POLL_IN, BAND_IN);
	OK(shutdown(s[0], SHUT_WR));
	expect_queued(2, s[1], POLL_IN, BAND_IN);
	OK(close(s[0]));
	expect_queued(3, s[1], POLL_HUP, POLLHUP | POLLERR);
	OK(close(s[1]));
}

TEST(owners_are_processes_groups_and_threads)
{
	const pid_t none = 0x3ffffff;		/* no process has this number */
	struct f_owner_ex ex;
	int s = bound(SOCK_DGRAM), owner;

	CHECK_EQ(fcntl(s, F_GETOWN), 0);
	FAILS(fcntl(s, F_SETOWN, none), ESRCH);
	OK(fcntl(s, F_SETOWN, -getpgrp()));
	OK(ioctl(s, FIOGETOWN, &owner));
	CHECK_EQ(owner, -getpgrp());
	OK(fcntl(s, F_GETOWN_EX, &ex));
	CHECK_EQ(ex.type, F_OWNER_PGRP);
	CHECK_EQ(ex.pid, getpgrp());
	ex = (struct f_owner_ex){ .type = F_OWNER_TID, .pid = gettid() };
	OK(fcntl(s, F_SETOWN_EX, &ex));
	OK(fcntl(s, F_GETOWN_EX, &ex));
	CHECK_EQ(ex.type, F_OWNER_TID);
	CHECK_EQ(ex.pid, gettid());
	CHECK_EQ(fcntl(s, F_GETOWN), gettid());
	ex = (struct f_owner_ex){ .type = F_OWNER_PID, .pid = none };
	FAILS(fcntl(s, F_SETOWN_EX, &ex), ESRCH);
	ex = (struct f_owner_ex){ .type = 99, .pid = getpid() };
	FAILS(fcntl(s, F_SETOWN_EX, &ex), EINVAL);
	FAILS(fcntl(s, F_SETOWN_EX, NULL), EFAULT);
	FAILS(fcntl(s, F_GETOWN_EX, NULL), EFAULT);
	owner = none;
	FAILS(ioctl(s, FIOSETOWN, &owner), ESRCH);
	owner = getpid();
	OK(ioctl(s, SIOCSPGRP, &owner));
	CHECK_EQ(fcntl(s, F_GETOWN), owner);
	OK(fcntl(s, F_SETOWN, 0));
	CHECK_EQ(fcntl(s, F_GETOWN), 0);
	OK(fcntl(s, F_GETOWN_EX, &ex));
	CHECK_EQ(ex.pid, 0);
	OK(close(s));
}

TEST(signal_numbers_are_verified)
{
	int s = bound(SOCK_DGRAM);

	CHECK_EQ(fcntl(s, F_GETSIG), 0);
	FAILS(fcntl(s, F_SETSIG, -1), EINVAL);
	FAILS(fcntl(s, F_SETSIG, 65), EINVAL);
	OK(fcntl(s, F_SETSIG, 64));
	CHECK_EQ(fcntl(s, F_GETSIG), 64);
	OK(close(s));
}

static void *
owns(void *arg)
{
	const int fd = *(int *)arg;
	struct f_owner_ex ex = { .type = F_OWNER_TID, .pid = gettid() };

	OK(fcntl(fd, F_SETOWN_EX, &ex));
	expect_signals(1);
	CHECK_EQ(atomic_load(&thread), gettid());
	return (NULL);
}

TEST(a_thread_may_be_the_owner)
{
	pthread_t t;
	int s[2];

	udp_pair(s);
	queue_signals(s[1]);
	OK(fcntl(s[1], F_SETOWN, 0));
	CHECK_EQ(pthread_create(&t, NULL, owns, &s[1]), 0);
	while (fcntl(s[1], F_GETOWN) == 0)
		nap(1);
	send_byte(s[0]);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close_pair(s);
}

/* The parent sends when the child is the owner. */
static void
own_in_a_child(int fd)
{
	queue_signals(fd);
	send_byte(fd);
	expect_queued(1, fd, POLL_IN, BAND_IN);
}

TEST(a_child_may_be_the_owner)
{
	pid_t pid;
	int s[2];

	tcp_pair(s);
	pid = child(own_in_a_child, s[1]);
	expect_byte(s[0]);
	CHECK_EQ(fcntl(s[1], F_GETOWN), pid);
	send_byte(s[0]);
	ends_well(pid);
	CHECK_EQ(fcntl(s[1], F_GETOWN), 0);	/* it has ended */
	close_pair(s);
}

static void
expect_to_be_told(int fd)
{
	catch(SIGIO);
	send_byte(fd);
	expect_signals(1);
}

/* The parent makes the child the owner of a socket that only it has. */
TEST(another_process_may_be_the_owner)
{
	int s[2], c[2];
	pid_t pid;

	udp_pair(s);
	tcp_pair(c);
	pid = child(expect_to_be_told, c[1]);
	expect_byte(c[0]);
	OK(fcntl(s[1], F_SETOWN, pid));
	set_async(s[1], true);
	send_byte(s[0]);
	ends_well(pid);
	close_pair(s);
	close_pair(c);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
