/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures the stack's console output. */
#ifndef TESTS_CONSOLE_H
#define TESTS_CONSOLE_H

#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"

/*
 * Returns what fn prints, at most the capacity of a pipe; valid until the next
 * call.
 */
static inline char *
console_of(void (*fn)(void))
{
	static char text[32768];
	int pipes[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	CHECK_EQ(pipe2(pipes, O_NONBLOCK), 0);
	CHECK(dup2(pipes[1], STDERR_FILENO) >= 0);
	fn();
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	n = read(pipes[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
	close(pipes[1]);
	close(saved);
	return (text);
}

#endif /* TESTS_CONSOLE_H */
