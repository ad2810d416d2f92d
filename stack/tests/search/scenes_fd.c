/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of descriptors: api/ on a model of the kernel's table.  In each, one
 * thread closes a descriptor while others use its number.  In the end all
 * sockets and numbers are free.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/epoll.h"
#include "kern/file.h"
#include "tests/check.h"
#include "tests/net.h"
#include "tests/search/kernel.h"
#include "tests/search/scenes.h"

#define	THREADS	4
#define	HIGH	20	/* the target of dup2() */

static void
prepare(void)
{
	struct file none = { .f_type = FT_SOCKET };

	kernel_reset();
	fd_lock_init();
	file_init();
	epoll_forget(&none);	/* initializes the lock of sets */
}

/* A descriptor of a new socket. */
static int
make_socket(void)
{
	struct file *f = file_new(FT_SOCKET);
	int fd = fd_reserve();

	CHECK(fd != -1);
	CHECK_EQ(socreate(AF_INET, SOCK_STREAM, 0, &f->f_so), 0);
	soref(f->f_so);
	fd_install(fd, f, false);
	return (fd);
}

static void
close_it(void *fd)
{
	(void)close((int)(intptr_t)fd);
}

static void
duplicate_it(void *fd)
{
	const int copy = dup((int)(intptr_t)fd);

	if (copy != -1)
		CHECK_EQ(close(copy), 0);
}

static void
duplicate_high(void *fd)
{
	const int copy = fcntl((int)(intptr_t)fd, F_DUPFD_CLOEXEC, 8);

	if (copy != -1)
		CHECK_EQ(close(copy), 0);
}

static void
replace_high(void *fd)
{
	(void)dup2((int)(intptr_t)fd, HIGH);
}

/* As sendmsg() and recvmsg() of rights do. */
static void
pass_it(void *fd)
{
	void *file;
	int copy;

	if (api_fileops.fo_get((int)(intptr_t)fd, &file) != 0)
		return;
	copy = api_fileops.fo_install(file, true);
	api_fileops.fo_close(file);
	CHECK(copy != -1);
	CHECK_EQ(close(copy), 0);
}

static void
connect_it(void *fd)
{
	struct sockaddr_in sin = t_addr("127.0.0.1", 9);
	struct file *f = fget_type((int)(intptr_t)fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return;
	error = soconnect(f->f_so, (struct sockaddr *)&sin, sizeof(sin), 0);
	CHECK(error == EBADF || error == ECONNREFUSED ||
	    error == ECONNRESET);	/* refused, or shut down meanwhile */
	frele(f);
}

static void
poll_it(void *fd)
{
	struct file *f = fget_type((int)(intptr_t)fd, FT_SOCKET);

	if (f == NULL)
		return;
	(void)sopoll(f->f_so, 1);
	(void)soshutdown(f->f_so, SHUT_RDWR);
	frele(f);
}

static void
watch_it(void *fd)
{
	struct epset *es = epset_new(0);
	struct epoll_event ev = { .events = EPOLLIN };
	struct file *f = fget_type((int)(intptr_t)fd, FT_SOCKET);

	if (f != NULL) {
		(void)epset_ctl(es, EPOLL_CTL_ADD, f, (int)(intptr_t)fd, &ev);
		(void)epset_collect(es, &ev, 1);
		frele(f);
	}
	epset_free(es);
}

/* All at the same time, on one descriptor. */
static void
meet(void (*const what[THREADS])(void *))
{
	uint32_t start = atomic_load_u32(&sockets);
	const int fd = make_socket();
	struct thread *td[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		td[i] = t_thread(what[i], (void *)(intptr_t)fd);
	for (unsigned i = 0; i < THREADS; i++)
		t_join(td[i]);
	(void)close(HIGH);
	CHECK(t_until(scene_none_left, &start));
	CHECK_EQ(kernel_used(), 0);
}

static void
dup_scene(void)
{
	meet((void (*const [])(void *)){ close_it, duplicate_it,
	    duplicate_high, replace_high });
}

static void
replace_scene(void)
{
	meet((void (*const [])(void *)){ replace_high, replace_high,
	    close_it, replace_high });
}

static void
pass_scene(void)
{
	meet((void (*const [])(void *)){ close_it, pass_it, pass_it,
	    duplicate_it });
}

static void
use_scene(void)
{
	meet((void (*const [])(void *)){ close_it, connect_it, poll_it,
	    watch_it });
}

/* As exec() or posix_spawn() of a program that has the sockets, and ends. */
static void
execute(void *unused)
{
	char variable[INHERIT_LEN];

	(void)unused;
	CHECK_EQ(inherit_prepare(false, variable), 0);
	inherit_undo();
	kernel_program_ends();
}

static void
execute_scene(void)
{
	meet((void (*const [])(void *)){ close_it, execute, duplicate_it,
	    replace_high });
}

/* Another thread's accept() has reserved a number. */
static void
take_reserved(void *fd)
{
	errno = 0;
	CHECK_EQ(close((int)(intptr_t)fd), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(fcntl((int)(intptr_t)fd, F_GETFD), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(dup((int)(intptr_t)fd), -1);
	CHECK_EQ(errno, EBADF);
}

static void
replace_reserved(void *fd)
{
	const int file = kernel_open(7);

	CHECK_EQ(dup2(file, (int)(intptr_t)fd), -1);
	CHECK_EQ(errno, EBUSY);
	CHECK_EQ(close_range((unsigned)(intptr_t)fd, (unsigned)(intptr_t)fd,
	    0), 0);
	CHECK_EQ(kernel_file(file), 7);
	CHECK_EQ(close(file), 0);
}

static void
reserve_scene(void)
{
	uint32_t start = atomic_load_u32(&sockets);
	void *const fd = (void *)(intptr_t)fd_reserve();
	struct thread *td[2];

	td[0] = t_thread(take_reserved, fd);
	td[1] = t_thread(replace_reserved, fd);
	for (unsigned i = 0; i < 2; i++)
		t_join(td[i]);
	fd_unreserve((int)(intptr_t)fd);
	close_it((void *)(intptr_t)make_socket());
	CHECK(t_until(scene_none_left, &start));
	CHECK_EQ(kernel_used(), 0);
}

const struct scene fd_scenes[] = {
	{ "fd-dup", "dup(), fcntl(), dup2() and close() of one descriptor", "",
	    prepare, dup_scene },
	{ "fd-replace", "several dup2() to one number", "", prepare,
	    replace_scene },
	{ "fd-pass", "a descriptor is passed, duplicated and closed", "",
	    prepare, pass_scene },
	{ "fd-use", "connect(), poll(), shutdown(), epoll_ctl() and close()",
	    "", prepare, use_scene },
	{ "fd-exec", "a program is executed with a descriptor that others close",
	    "", prepare, execute_scene },
	{ "fd-reserve", "a number that accept() has reserved", "", prepare,
	    reserve_scene },
	{ 0 }
};
