/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests whose children use sockets. */
#ifndef TESTS_POSIX_CHILD_H
#define TESTS_POSIX_CHILD_H

#include "posix.h"

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

/* Runs fn(arg) in a child, which then exits with status 0. */
static inline pid_t
child(void (*fn)(int), int arg)
{
	const pid_t pid = OK(fork());

	if (pid != 0)
		return (pid);
	is_child = true;
	alarm(60);
	fn(arg);
	exit(0);
}

static inline int
status_of(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return (status);
}

static inline void
ends_well(pid_t pid)
{
	CHECK_EQ(status_of(pid), 0);
}

static inline void
expect_end(int fd)
{
	char c;

	CHECK_EQ(OK(read(fd, &c, 1)), 0);
}

static inline void
expect_byte(int fd)
{
	char c = 0;

	CHECK_EQ(OK(read(fd, &c, 1)), 1);
	CHECK_EQ(c, 'x');
}

static inline void
answer_one(int fd)
{
	expect_byte(fd);
	send_byte(fd);
}

/* A child answers on the connection, and ends, which closes it. */
static inline void
expect_answer(int fd, pid_t pid)
{
	send_byte(fd);
	expect_byte(fd);
	ends_well(pid);
	expect_end(fd);
	OK(close(fd));
}

/* The same of a child that runs fn() with its end of a new connection. */
static inline void
expect_answer_of(void (*fn)(int))
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = child(fn, s[1]);
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

#endif /* TESTS_POSIX_CHILD_H */
