/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on descriptors of any kind: close, duplicate, flags, status.
 *
 * The stack's own descriptors (the device, the control socket) are hidden from
 * the program: closing or replacing one fails with EBADF, as for an unused
 * number.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/api.h"

/* The slot is cleared first, because the number may be reused at once. */
EXPORT int
close(int fd)
{
	struct file *f;
	int r;

	if (!fd_ours(fd) && !fd_hidden(fd))
		return (real.close(fd));
	if (!api_own_process()) {
		fd_forget(fd);
		return (real.close(fd));
	}
	if (fd_hidden(fd) || (f = fd_take(fd)) == NULL)
		return ((int)api_return(EBADF, 0));
	r = real.close(fd);
	api_enter();
	file_close(f);
	api_leave(0);
	return (r);
}

/*
 * Closes first ..  last except the stack's own.  A child closes those, too
 * (subprocesses do so before exec()).
 */
EXPORT int
close_range(unsigned first, unsigned last, int flags)
{
	unsigned from = first, top;

	top = fd_limit();
	for (unsigned fd = first; flags == 0 && fd <= last && fd < top; fd++)
		fd_forget((int)fd);
	if (!api_own_process() || flags != 0 || first > last)
		return (real.close_range(first, last, flags));
	for (unsigned fd = first; fd <= last && fd < top; fd++) {
		if (fd_ours((int)fd))
			(void)close((int)fd);
		if (!fd_hidden((int)fd))
			continue;
		if (from < fd)
			(void)real.close_range(from, fd - 1, 0);
		from = fd + 1;
	}
	return (from <= last ? real.close_range(from, last, 0) : 0);
}

EXPORT void
closefrom(int low)
{
	(void)close_range((unsigned)(low > 0 ? low : 0), ~0U, 0);
}

static int
duplicate(int fd, int low, bool cloexec)
{
	struct file *f = fget(fd);
	int newfd;

	if (f == NULL)
		return ((int)api_return(EBADF, 0));
	newfd = real.fcntl(fd, cloexec || f->f_type == FT_SOCKET ?
	    F_DUPFD_CLOEXEC : F_DUPFD, low);
	if (newfd >= API_MAXFD) {
		real.close(newfd);
		newfd = (int)api_return(EMFILE, 0);
	}
	if (newfd != -1)
		fd_install(newfd, f, cloexec);
	frele(f);
	return (newfd);
}

EXPORT int
dup(int fd)
{
	if (!fd_ours(fd) || !api_own_process())
		return (real.dup(fd));
	return (duplicate(fd, 0, false));
}

/* dup3() if one of the two numbers is the stack's. */
static int
replace(int fd, int newfd, int flags)
{
	struct file *f, *victim;
	int r;

	if (fd_hidden(newfd) || (unsigned)newfd >= API_MAXFD)
		return ((int)api_return(EBADF, 0));
	f = fget(fd);
	if (f == NULL && real.fcntl(fd, F_GETFD) == -1)
		return (-1);
	victim = fd_take(newfd);
	r = real.dup3(fd, newfd, f != NULL && f->f_type == FT_SOCKET ?
	    O_CLOEXEC : flags);
	if (r != -1 && f != NULL)
		fd_install(newfd, f, (flags & O_CLOEXEC) != 0);
	api_enter();
	if (f != NULL)
		frele(f);
	if (victim != NULL)
		file_close(victim);
	api_leave(0);
	return (r);
}

static bool
replaces_ours(int fd, int newfd)
{
	if (fd == newfd || (!fd_ours(fd) && !fd_ours(newfd) &&
	    !fd_hidden(newfd)))
		return (false);
	fd_forget(newfd);
	return (api_own_process());
}

EXPORT int
dup3(int fd, int newfd, int flags)
{
	if ((flags & ~O_CLOEXEC) != 0 || !replaces_ours(fd, newfd))
		return (real.dup3(fd, newfd, flags));
	return (replace(fd, newfd, flags));
}

EXPORT int
dup2(int fd, int newfd)
{
	if (!replaces_ours(fd, newfd))
		return (real.dup2(fd, newfd));
	return (replace(fd, newfd, 0));
}

static pid_t
get_owner(struct file *f)
{
	pid_t owner;

	api_enter();
	owner = sogetowner(f->f_so);
	api_leave(0);
	return (owner);
}

/*
 * O_NONBLOCK belongs to the file, not the placeholder.  A socket is always
 * closed on exec, because the stack does not survive it, regardless of
 * F_GETFD.
 */
static int
socket_fcntl(int fd, struct file *f, int cmd, long arg)
{
	switch (cmd) {
	case F_GETFL:
		return (O_RDWR |
		    (atomic_load_u32(&f->f_nonblock) ? O_NONBLOCK : 0));
	case F_SETFL:
		atomic_store_u32(&f->f_nonblock, (arg & O_NONBLOCK) != 0);
		return (0);
	case F_GETFD:
		return (fd_cloexec(fd) ? FD_CLOEXEC : 0);
	case F_SETFD:
		fd_set_cloexec(fd, (arg & FD_CLOEXEC) != 0);
		return (0);
	case F_SETOWN:
		api_enter();
		sosetowner(f->f_so, (pid_t)arg);
		api_leave(0);
		return (0);
	case F_GETOWN:
		return ((int)get_owner(f));
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return (duplicate(fd, (int)arg, cmd == F_DUPFD_CLOEXEC));
	default:
		return ((int)api_return(EINVAL, 0));
	}
}

static int
fcntl_arg(int fd, int cmd, void *arg)
{
	struct file *f;
	int r;

	if (!fd_ours(fd) || !api_own_process() || (f = fget(fd)) == NULL)
		return (real.fcntl(fd, cmd, arg));
	if (f->f_type == FT_SOCKET)
		r = socket_fcntl(fd, f, cmd, (long)(intptr_t)arg);
	else if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		r = duplicate(fd, (int)(intptr_t)arg, cmd == F_DUPFD_CLOEXEC);
	else
		r = real.fcntl(fd, cmd, arg);
	frele(f);
	return (r);
}

EXPORT int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return (fcntl_arg(fd, cmd, arg));
}

EXPORT int
fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return (fcntl_arg(fd, cmd, arg));
}

static int
socket_ioctl(struct file *f, unsigned long cmd, void *arg)
{
	int error = 0;

	if (arg == NULL)
		return (EFAULT);
	switch (cmd) {
	case FIONREAD:
		api_enter();
		*(int *)arg = soavail(f->f_so);
		api_leave(0);
		break;
	case TIOCOUTQ:		/* SIOCOUTQ, tcp(7), udp(7), unix(7) */
		api_enter();
		*(int *)arg = sounsent(f->f_so);
		api_leave(0);
		break;
	case FIONBIO:
		atomic_store_u32(&f->f_nonblock, *(int *)arg != 0);
		break;
	case SIOCATMARK:
		api_enter();
		*(int *)arg = soatmark(f->f_so);
		api_leave(0);
		break;
	case FIOSETOWN:
	case SIOCSPGRP:
		return (socket_fcntl(-1, f, F_SETOWN, *(int *)arg));
	case FIOGETOWN:
	case SIOCGPGRP:
		*(int *)arg = get_owner(f);
		break;
	default:
		error = interface_ioctl(cmd, arg);
		break;
	}
	return (error);
}

EXPORT int
ioctl(int fd, unsigned long cmd, ...)
{
	struct file *f;
	va_list ap;
	void *arg;
	int error;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!fd_ours(fd) || (f = fget_type(fd, FT_SOCKET)) == NULL)
		return (real.ioctl(fd, cmd, arg));
	error = socket_ioctl(f, cmd, arg);
	frele(f);
	return ((int)api_return(error, 0));
}

/* The C library's version would call the kernel. */
EXPORT int
sockatmark(int fd)
{
	int at;

	return (ioctl(fd, SIOCATMARK, &at) == 0 ? at : -1);
}

/* Programs test S_ISSOCK(); the placeholder would be a character device. */
EXPORT int
fstat(int fd, struct stat *st)
{
	struct file *f = fget_type(fd, FT_SOCKET);

	if (f == NULL)
		return (real.fstat(fd, st));
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFSOCK | 0777;
	st->st_nlink = 1;
	st->st_blksize = 4096;
	frele(f);
	return (0);
}

EXPORT int
fstat64(int fd, struct stat64 *st)
{
	_Static_assert(sizeof(struct stat) == sizeof(struct stat64),
	    "one struct stat");

	return (fstat(fd, (struct stat *)(void *)st));
}

/* Standard I/O on a socket: the C library would use the number directly. */
static ssize_t
stream_read(void *cookie, char *buf, size_t len)
{
	return (read((int)(intptr_t)cookie, buf, len));
}

static ssize_t
stream_write(void *cookie, const char *buf, size_t len)
{
	return (write((int)(intptr_t)cookie, buf, len));
}

static int
stream_close(void *cookie)
{
	return (close((int)(intptr_t)cookie));
}

EXPORT FILE *
fdopen(int fd, const char *mode)
{
	const cookie_io_functions_t calls = {
		.read = stream_read,
		.write = stream_write,
		.close = stream_close
	};
	struct file *f = fget_type(fd, FT_SOCKET);

	if (f == NULL)
		return (real.fdopen(fd, mode));
	frele(f);
	return (fopencookie((void *)(intptr_t)fd, mode, calls));
}
