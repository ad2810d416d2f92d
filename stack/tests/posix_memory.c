/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that POSIX lists as async-signal-safe (2.4.3): a handler may make them
 * although it interrupted malloc(), so they may not call it.  This program's
 * malloc() counts.
 */
#include <stddef.h>

#include "posix_child.h"

#define	DATAGRAMS	200
#define	MANY		40	/* more than poll() keeps on its stack */

static _Thread_local bool counting;
static _Thread_local unsigned counted;
static bool forbidden;
static void *volatile block;	/* the compiler must not omit a call */

/* The library finds this program's ones only if they are exported. */
#define	EXPORTED	__attribute__((visibility("default")))

void	*__libc_malloc(size_t);
void	*__libc_calloc(size_t, size_t);
void	*__libc_realloc(void *, size_t);
void	*__libc_memalign(size_t, size_t);

static void
count(void)
{
	counted += counting;
	if (forbidden)
		abort();
}

EXPORTED void *
malloc(size_t size)
{
	count();
	return (__libc_malloc(size));
}

EXPORTED void *
calloc(size_t n, size_t size)
{
	count();
	return (__libc_calloc(n, size));
}

EXPORTED void *
realloc(void *p, size_t size)
{
	count();
	return (__libc_realloc(p, size));
}

EXPORTED void *
aligned_alloc(size_t align, size_t size)
{
	count();
	return (__libc_memalign(align, size));
}

static void
exchange(void)
{
	static char buf[1 << 16];
	struct pollfd p[MANY];
	struct sockaddr_in sin;
	int s[2], u = bound(SOCK_DGRAM);

	sin = own_address(u);
	for (int i = 0; i < DATAGRAMS; i++)
		(void)sendto(u, buf, 600 + (size_t)i, MSG_DONTWAIT,
		    (struct sockaddr *)&sin, sizeof(sin));
	while (recv(u, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		continue;
	tcp_pair(s);
	while (send(s[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		continue;
	for (int i = 0; i < MANY; i++)
		p[i] = (struct pollfd){ .fd = s[1], .events = POLLIN };
	/* the first may be tested before the data arrive */
	CHECK(OK(poll(p, MANY, 10000)) > 0);
	CHECK(read(s[1], buf, sizeof(buf)) > 0);
	OK(close(OK(dup(u))));
	OK(dup2(u, s[0]));
	close_pair(s);
	OK(close(u));
}

TEST(safe_calls_do_not_allocate_by_malloc)
{
	exchange();	/* the thread's own memory, and that of tables */
	counted = 0;
	counting = true;
	block = malloc(1);
	free(block);
	exchange();
	counting = false;
	CHECK_EQ(counted, 1);
}

static void
become(int fd)
{
	char *const argv[] = { (char *)(uintptr_t)"posix_memory",
	    (char *)(uintptr_t)"answer", NULL };

	OK(dup2(fd, STDIN_FILENO));
	forbidden = true;
	(void)execve("/nonexistent", argv, environ);
	(void)execve("/proc/self/exe", argv, environ);
	_exit(1);
}

TEST(a_program_is_executed_without_malloc)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = child(become, s[1]);
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "answer") == 0) {
		answer_one(STDIN_FILENO);
		return (0);
	}
	return (posix_main(argc, argv));
}
