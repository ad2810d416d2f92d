/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() in a handler that interrupts malloc(), of a process with one thread.
 * It has forked in no other place before, and the child uses a socket.
 */
#include "posix_child.h"

#define	FORKS	20

static int pair[2];
static volatile int forks;
static pid_t (*volatile how)(void);

static void
answer_and_leave(void)
{
	char c;

	if (read(pair[1], &c, 1) == 1)
		(void)!write(pair[1], &c, 1);
	_exit(0);
}

static void
fork_one(int sig)
{
	const pid_t pid = how();
	char c = 'x';
	int status;

	(void)sig;
	if (pid == 0)
		answer_and_leave();
	if (pid == -1 || write(pair[0], &c, 1) != 1 ||
	    read(pair[0], &c, 1) != 1 || waitpid(pid, &status, 0) != pid ||
	    status != 0)
		abort();
	forks++;
}

/* Most of the time a lock of malloc() is held: no block is in a cache. */
static void
allocate(void)
{
	void *p[64];

	for (size_t i = 0; i < 64; i++)
		p[i] = malloc(2000 + i * 911);
	for (size_t i = 0; i < 64; i++)
		free(p[i]);
}

static void
interrupt(pid_t (*fn)(void))
{
	const struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, off = { 0 };
	const struct sigaction sa = {
		.sa_handler = fork_one, .sa_flags = SA_RESTART
	};

	tcp_pair(pair);
	how = fn;
	forks = 0;
	OK(sigaction(SIGALRM, &sa, NULL));
	OK(setitimer(ITIMER_REAL, &often, NULL));
	while (forks < FORKS)
		allocate();
	OK(setitimer(ITIMER_REAL, &off, NULL));
	close_pair(pair);
}

TEST(_Fork_in_a_handler)
{
	interrupt(_Fork);
}

static volatile int prepared, returned;

static void
prepare(void)
{
	prepared++;
}

static void
parent(void)
{
	returned++;
}

static void
in_the_child(void)
{
	if (prepared != returned + 1)
		_exit(1);
}

/* Handlers of pthread_atfork() run, too. */
TEST(fork_in_a_handler)
{
	CHECK_EQ(pthread_atfork(prepare, parent, in_the_child), 0);
	interrupt(fork);
	CHECK_EQ(prepared, forks);
	CHECK_EQ(returned, forks);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
