/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of api/ that the C library would make, on the model of kernel.h;
 * and what of api/ needs a process: signals, and the program's own state.
 */
#include "tests/search/kernel.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "api/server.h"
#include "kern/lock.h"
#include "tests/check.h"

#define	FREE		0
#define	PLACEHOLDER	1	/* file id is stored as id + 1 */
#define	HIDDEN_FD	(KERNEL_FDS + 1)	/* outside the model */
#define	NAMED		99	/* id of a file in memory */

/* One word for each number, so that a call is one step, as in a kernel. */
static atomic_u32 numbers[KERNEL_FDS];

void
kernel_reset(void)
{
	for (unsigned i = 0; i < KERNEL_FDS; i++)
		atomic_store_u32(&numbers[i], FREE);
}

static int
take_lowest(int low, uint32_t what)
{
	for (int fd = low; fd < KERNEL_FDS; fd++) {
		uint32_t was = FREE;

		if (atomic_cmpset_u32(&numbers[fd], &was, what))
			return (fd);
	}
	errno = EMFILE;
	return (-1);
}

int
kernel_open(uint32_t id)
{
	return (take_lowest(0, id + 1));
}

uint32_t
kernel_file(int fd)
{
	const uint32_t what = atomic_load_acq_u32(&numbers[fd]);

	return (what > PLACEHOLDER ? what - 1 : 0);
}

bool
kernel_placed(int fd)
{
	return (atomic_load_acq_u32(&numbers[fd]) == PLACEHOLDER);
}

unsigned
kernel_used(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KERNEL_FDS; i++)
		n += atomic_load_acq_u32(&numbers[i]) != FREE;
	return (n);
}

static bool
number_valid(int fd)
{
	if (fd >= 0 && fd < KERNEL_FDS)
		return (true);
	errno = EBADF;
	return (false);
}

static int
kernel_close(int fd)
{
	if (number_valid(fd) &&
	    atomic_swap_u32(&numbers[fd], FREE) != FREE)
		return (0);
	errno = EBADF;
	return (-1);
}

static int
kernel_dup3(int fd, int newfd, int flags)
{
	uint32_t what = PLACEHOLDER;

	(void)flags;
	if ((fd != HIDDEN_FD && !number_valid(fd)) || !number_valid(newfd) ||
	    (fd != HIDDEN_FD &&
	    (what = atomic_load_acq_u32(&numbers[fd])) == FREE)) {
		errno = EBADF;
		return (-1);
	}
	(void)atomic_swap_u32(&numbers[newfd], what);
	return (newfd);
}

/* Placeholders are duplicates of a descriptor outside the model. */
static int
kernel_fcntl(int fd, int cmd, ...)
{
	uint32_t what = PLACEHOLDER;
	va_list ap;
	int arg;

	va_start(ap, cmd);
	arg = va_arg(ap, int);
	va_end(ap);
	if (fd >= 0 && fd < KERNEL_FDS)
		what = atomic_load_acq_u32(&numbers[fd]);
	if (what == FREE) {
		errno = EBADF;
		return (-1);
	}
	return (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ?
	    take_lowest(arg, what) : 0);
}

static int
kernel_dup(int fd)
{
	return (kernel_fcntl(fd, F_DUPFD, 0));
}

static int
kernel_dup2(int fd, int newfd)
{
	return (kernel_dup3(fd, newfd, 0));
}

static int
kernel_close_range(unsigned first, unsigned last, int flags)
{
	(void)flags;
	for (unsigned fd = first; fd <= last && fd < KERNEL_FDS; fd++)
		(void)kernel_close((int)fd);
	return (0);
}

/* A descriptor outside the model, which the stack hides. */
int
open(const char *path, int flags, ...)
{
	(void)path;
	(void)flags;
	return (HIDDEN_FD);
}

int
eventfd(unsigned count, int flags)
{
	(void)count;
	(void)flags;
	return (HIDDEN_FD);
}

int
memfd_create(const char *name, unsigned flags)
{
	(void)name, (void)flags;
	return (kernel_open(NAMED));
}

static int
kernel_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	(void)epfd;
	(void)op;
	(void)fd;
	(void)event;
	return (0);
}

static ssize_t
kernel_write(int fd, const void *buf, size_t len)
{
	(void)fd;
	(void)buf;
	return ((ssize_t)len);
}

static ssize_t
kernel_read(int fd, void *buf, size_t len)
{
	(void)fd;
	memset(buf, 0, len);
	return ((ssize_t)len);
}

struct real_calls real_calls = {
	.socket = socket, .close = kernel_close, .dup = kernel_dup,
	.dup2 = kernel_dup2, .dup3 = kernel_dup3,
	.close_range = kernel_close_range,
	.fcntl = kernel_fcntl, .epoll_ctl = kernel_epoll_ctl,
	.write = kernel_write, .read = kernel_read,
};

void
real_resolve(void)
{
}

enum api_state
api_state(void)
{
	return (API_UP);
}

bool
api_own_process(void)
{
	return (true);
}

void
api_enter(void)
{
}

bool
api_leave(int error)
{
	(void)error;
	return (false);
}

pid_t api_owner;
atomic_u32 api_inet6_kernel, api_unix_sockets;

void
each_descriptor(void (*fn)(int fd, void *), void *arg)
{
	(void)fn, (void)arg;
}

/* The client of one program that is executed, for kernel_program_ends(). */
static struct client {
	struct file	*files[KERNEL_FDS];
	unsigned	 n;
} program;

struct client *
server_client(int root, struct file *const *files, unsigned n)
{
	(void)root;
	CHECK(n <= KERNEL_FDS);
	memcpy(program.files, files, n * sizeof(*files));
	program.n = n;
	return (&program);
}

void
server_add(struct client *cl)
{
	(void)cl;
}

void
kernel_program_ends(void)
{
	for (unsigned i = 0; i < program.n; i++)
		file_close(program.files[i]);
	program.n = 0;
}

bool
kernel_program_has(uint32_t handle, const struct file *f)
{
	return (handle - 1 < program.n && program.files[handle - 1] == f);
}

void
remote_root_pair(int *ours, int *theirs)
{
	*ours = *theirs = HIDDEN_FD;
}

/* The memory of the simulator is never forked. */
void
mach_alloc_fork(void)
{
}

void
mach_alloc_fork_parent(void)
{
}

void
mach_alloc_forked(void)
{
}

void
signals_forked(void)
{
}

void
wait_forked(void)
{
}

void
api_become_client(void)
{
}

void
threads_alone(void)
{
}

/* A process of the simulator has the stack: it is never a client. */
bool
remote_fork(int root, const uint32_t *handles, unsigned n)
{
	(void)root, (void)handles, (void)n;
	return (false);
}

void
remote_keep(const uint32_t *handles, unsigned n)
{
	(void)handles, (void)n;
}

void
remote_start(int root)
{
	(void)root;
}

void
remote_close(struct file *f)
{
	(void)f;
}

int
remote_fcntl(struct file *f, int cmd, const int32_t arg[FCNTL_ARGS],
    int64_t *value)
{
	(void)f, (void)cmd, (void)arg, (void)value;
	return (EBADF);
}

int
remote_stamp(struct file *f, struct timespec *ts)
{
	(void)f, (void)ts;
	return (ENOENT);
}

bool
rights_remote(void)
{
	return (false);
}

int
right_get(int number, void **file)
{
	(void)number, (void)file;
	return (EBADF);
}

int
right_put(void *file)
{
	(void)file;
	return (-1);
}

int
remote_number(struct file *f, unsigned long cmd, int *value)
{
	(void)f, (void)cmd, (void)value;
	return (ENOTTY);
}

void
stdio_follow(int fd)
{
	(void)fd;
}

int
interface_ioctl(unsigned long cmd, void *arg)
{
	(void)cmd;
	(void)arg;
	return (ENOTTY);
}
