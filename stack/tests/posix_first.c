/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first calls of a program that has no stack, by many threads at the same
 * time: the program runs itself so often that a function which is called
 * before it has been found would be noticed.
 */
#include <spawn.h>

#include "posix.h"

#define	PROGRAMS	100
#define	FIRST		"first"

static pthread_barrier_t together;

static void *
first_call(void *arg)
{
	struct epoll_event event;
	char c;

	pthread_barrier_wait(&together);
	switch ((uintptr_t)arg) {
	case 0:
		FAILS(socket(-1, 0, 0), EAFNOSUPPORT);
		break;
	case 1:
		FAILS(recv(-1, &c, 1, 0), EBADF);
		break;
	case 2:
		FAILS(epoll_wait(-1, &event, 1, 0), EBADF);
		break;
	default:
		FAILS(fcntl(-1, F_GETFD), EBADF);
		break;
	}
	return (NULL);
}

static void
first_calls(void)
{
	pthread_t t[4];

	CHECK_EQ(pthread_barrier_init(&together, NULL, 4), 0);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, first_call, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

TEST(many_threads_make_the_first_call)
{
	extern char **environ;
	char self[] = "/proc/self/exe", first[] = FIRST;
	char *argv[] = { self, first, NULL };

	for (int i = 0; i < PROGRAMS; i++) {
		pid_t pid;
		int status;

		CHECK_EQ(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], FIRST) == 0) {
		first_calls();
		return (0);
	}
	return (posix_main(argc, argv));
}
