/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of descriptors: api/ on a model of the kernel's table.  In each, one
 * thread closes a descriptor, or forks, while others use its number.  In the end
 * all sockets and numbers are free.
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

/* In a set that has a descriptor, too. */
static void
watch_it(void *fd)
{
	struct file *set = file_new(FT_EPOLL), *f;
	struct epoll_event ev = { .events = EPOLLIN };
	const int epfd = fd_reserve();

	CHECK(epfd != -1);
	set->f_ep = epset_new(epfd);
	fd_install(epfd, set, true);
	f = fget_type((int)(intptr_t)fd, FT_SOCKET);
	if (f != NULL) {
		(void)epset_ctl(set->f_ep, EPOLL_CTL_ADD, f, (int)(intptr_t)fd,
		    &ev);
		(void)epset_collect(set->f_ep, &ev, 1);
		frele(f);
	}
	CHECK_EQ(close(epfd), 0);
}

/* All at the same time, on one descriptor. */
static void
meet(void (*const what[THREADS])(void *))
{
	uint32_t start = so_count();
	const int fd = make_socket();
	struct thread *td[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		td[i] = t_thread(what[i], (void *)(intptr_t)fd);
	for (unsigned i = 0; i < THREADS; i++)
		t_join(td[i]);
	(void)close(fd);	/* unless one of them did */
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

/* As accept() does, and close() of the new socket. */
static void
accept_one(void *unused)
{
	(void)unused;
	CHECK_EQ(close(make_socket()), 0);
}

/*
 * The child has what the table has at that moment: a number and a file for each
 * descriptor, and sets that the kernel polls for it.
 */
static void
inherited(int fd, struct file *f)
{
	if (f->f_type == FT_RESERVED)
		return;
	CHECK(kernel_placed(fd));
	CHECK(kernel_program_has(f->f_handle, f));
	CHECK(f->f_ep == NULL || epset_exposed(f->f_ep));
}

/* fork() of a child that ends at once. */
static void
fork_it(void *unused)
{
	(void)unused;
	fork_prepare();
	fd_foreach(inherited);
	fork_parent();
	kernel_program_ends();
}

static void
fork_copy_scene(void)
{
	meet((void (*const [])(void *)){ fork_it, close_it, duplicate_high,
	    replace_high });
}

static void
fork_pass_scene(void)
{
	meet((void (*const [])(void *)){ fork_it, close_it, pass_it,
	    accept_one });
}

static void
fork_use_scene(void)
{
	meet((void (*const [])(void *)){ fork_it, connect_it, poll_it,
	    watch_it });
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
	uint32_t start = so_count();
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
	{ "fd-fork", "fork() with dup2(), fcntl() and close()", "", prepare,
	    fork_copy_scene },
	{ "fd-fork-pass", "fork() with accept(), sendmsg() and close()", "",
	    prepare, fork_pass_scene },
	{ "fd-fork-use", "fork() with connect(), poll() and epoll_ctl()", "",
	    prepare, fork_use_scene },
	{ "fd-reserve", "a number that accept() has reserved", "", prepare,
	    reserve_scene },
	{ 0 }
};
