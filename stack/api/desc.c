/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on descriptors of any kind: close, duplicate, flags, status.
 *
 * The stack's own descriptors (the device, the control socket) are hidden from
 * the program: calls on one fail with EBADF, as for an unused number.
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/remote.h"

EXPORT int
close(int fd)
{
	struct file *f;
	int r, error;

	if (!fd_known(fd))
		return (real.close(fd));
	if (!api_own_process())
		return (real.close(fd));
	if (fd_hidden(fd))
		return ((int)api_return(EBADF, 0));
	api_enter();
	r = fd_close(fd, &f);
	error = r == -1 ? errno : 0;
	if (f != NULL)
		file_close(f);
	api_leave(0);
	return ((int)api_return(error, 0));
}

/*
 * Closes first ..  last except the stack's own, and numbers that a call has
 * reserved.  A vfork()ed child closes those, too (before exec()).
 */
EXPORT int
close_range(unsigned first, unsigned last, int flags)
{
	const unsigned top = fd_limit();
	int r;

	if (!api_own_process() || flags != 0 || first > last)
		return (real.close_range(first, last, flags));
	for (unsigned fd = first; fd <= last && fd < top; fd++)
		if (fd_ours((int)fd))
			(void)close((int)fd);
	api_enter();
	r = fd_close_kernel(first, last);
	api_leave(0);
	return (r);
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
	int newfd = -1, error = EBADF;

	if (f == NULL)
		return ((int)api_return(EBADF, 0));
	api_enter();
	if (file_hold(f)) {
		newfd = fd_duplicate(fd, f, low, cloexec);
		error = newfd == -1 ? errno : 0;
		if (newfd == -1)
			file_close(f);
	}
	frele(f);
	api_leave(0);
	if (newfd != -1)
		stdio_follow(newfd);
	return ((int)api_return(error, newfd));
}

EXPORT int
dup(int fd)
{
	if (!fd_known(fd) || !api_own_process())
		return (real.dup(fd));
	return (duplicate(fd, 0, false));
}

/* dup3() if one of the two numbers is the stack's. */
static int
replace(int fd, int newfd, int flags)
{
	struct file *f, *victim = NULL;
	int r = -1, error = EBADF;

	if (fd_hidden(newfd) || (unsigned)newfd >= API_MAXFD)
		return ((int)api_return(EBADF, 0));
	f = fget(fd);
	if (f == NULL && (fd_known(fd) || real.fcntl(fd, F_GETFD) == -1))
		return ((int)api_return(EBADF, 0));
	api_enter();
	if (f == NULL || file_hold(f)) {
		r = fd_replace(fd, f, newfd, flags, &victim);
		error = r == -1 ? errno : 0;
		if (r == -1 && f != NULL)
			file_close(f);
	}
	if (f != NULL)
		frele(f);
	if (victim != NULL)
		file_close(victim);
	api_leave(0);
	if (r != -1)
		stdio_follow(newfd);
	return ((int)api_return(error, r));
}

static bool
replaces_ours(int fd, int newfd)
{
	if ((fd == newfd && !fd_hidden(fd)) ||
	    (!fd_known(fd) && !fd_known(newfd)))
		return (false);
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

int
file_number(struct file *f, unsigned long cmd, int *value)
{
	const bool buffers = cmd == FIONREAD || cmd == TIOCOUTQ ||
	    cmd == SIOCOUTQNSD;

	if (buffers && solistens(f->f_so))
		return (EINVAL);	/* tcp(7) */
	switch (cmd) {
	case FIONREAD:
		*value = soavail(f->f_so);
		return (0);
	case TIOCOUTQ:		/* SIOCOUTQ, tcp(7), udp(7), unix(7) */
		*value = sounsent(f->f_so);
		return (0);
	case SIOCOUTQNSD:
		*value = sonotsent(f->f_so);
		return (0);
	case SIOCATMARK:
		*value = soatmark(f->f_so);
		return (f->f_so->so_proto->pr_stream ? 0 : ENOTTY);
	default:
		return (ENOTTY);
	}
}

static int
find_number(struct file *f, unsigned long cmd, int *value)
{
	int error;

	api_enter();
	error = f->f_so == NULL ? remote_number(f, cmd, value) :
	    file_number(f, cmd, value);
	api_leave(0);
	return (error);
}

/*
 * Locks of fcntl(2).  Those of an open file always succeed (flock_error()).
 * Record locks would have to keep other processes out, and nothing here does:
 * to set one is an error, and none is found.
 */
static int
lock_socket(int cmd, struct flock *lock)
{
	const bool of_file = cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW ||
	    cmd == F_OFD_GETLK;
	const bool looks = cmd == F_GETLK || cmd == F_OFD_GETLK;

	if (address_bad(lock))
		return (EFAULT);
	if ((lock->l_type != F_RDLCK && lock->l_type != F_WRLCK &&
	    lock->l_type != F_UNLCK) || (lock->l_whence != SEEK_SET &&
	    lock->l_whence != SEEK_CUR && lock->l_whence != SEEK_END) ||
	    lock->l_start < 0 || (of_file && lock->l_pid != 0))
		return (EINVAL);
	if (cmd == F_GETLK && lock->l_type == F_UNLCK)
		return (EINVAL);
	if (!of_file && !looks && lock->l_type != F_UNLCK)
		return (ENOLCK);
	if (looks)
		lock->l_type = F_UNLCK;
	return (0);
}

/*
 * O_NONBLOCK belongs to the file, not the placeholder.  The placeholder is
 * always closed on exec; the socket is unless it is without FD_CLOEXEC
 * (inherit.c).
 */
static int
socket_fcntl(int fd, struct file *f, int cmd, long arg)
{
	switch (cmd) {
	case F_GETFL:
	case F_GETOWN:
	case F_SETOWN:
	case F_GETOWN_EX:
	case F_SETOWN_EX:
	case F_GETSIG:
	case F_SETSIG:
		return (owner_fcntl(f, cmd, arg));
	case F_SETFL:
		file_setflags(fd, f, O_NONBLOCK | O_ASYNC, (int)arg);
		return (0);
	case F_GETFD:
		return (fd_cloexec(fd) ? FD_CLOEXEC : 0);
	case F_SETFD:
		fd_set_cloexec(fd, (arg & FD_CLOEXEC) != 0);
		return (0);
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return (duplicate(fd, (int)arg, cmd == F_DUPFD_CLOEXEC));
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return ((int)api_return(EBADF, 0));
	case F_GETLEASE:
		return (F_UNLCK);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return ((int)api_return(lock_socket(cmd,
		    (struct flock *)arg), 0));
	default:
		return ((int)api_return(EINVAL, 0));
	}
}

static int
fcntl_arg(int fd, int cmd, void *arg)
{
	struct file *f;
	int r;

	if (!fd_known(fd) || !api_own_process())
		return (real.fcntl(fd, cmd, arg));
	if ((f = fget(fd)) == NULL)
		return ((int)api_return(EBADF, 0));
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

/* Requests without an argument, or with one of the descriptor (ioctl(2)). */
static bool
descriptor_ioctl(int fd, unsigned long cmd)
{
	if (cmd != FIOCLEX && cmd != FIONCLEX)
		return (false);
	fd_set_cloexec(fd, cmd == FIOCLEX);
	return (true);
}

/* SIOCGSTAMP: a struct timeval; SIOCGSTAMPNS: a struct timespec. */
static int
stamp_ioctl(struct file *f, bool nano, void *arg)
{
	struct timespec ts;
	int error;

	api_enter();
	error = f->f_so == NULL ? remote_stamp(f, &ts) :
	    sogetstamp(f->f_so, &ts);
	api_leave(0);
	if (error != 0)
		return (error);
	if (nano)
		*(struct timespec *)arg = ts;
	else
		*(struct timeval *)arg = (struct timeval){ ts.tv_sec,
		    ts.tv_nsec / 1000 };
	return (0);
}

static int
socket_ioctl(int fd, struct file *f, unsigned long cmd, void *arg)
{
	int value, error;

	if (address_bad(arg))
		return (EFAULT);
	error = find_number(f, cmd, &value);
	if (error == 0)
		*(int *)arg = value;
	if (error != ENOTTY)
		return (error);
	switch (cmd) {
	case FIONBIO:
		file_setflags(fd, f, O_NONBLOCK, *(int *)arg != 0 ?
		    O_NONBLOCK : 0);
		return (0);
	case FIOASYNC:
		file_setflags(fd, f, O_ASYNC, *(int *)arg != 0 ? O_ASYNC : 0);
		return (0);
	case SIOCGSTAMP:
	case SIOCGSTAMPNS:
		return (stamp_ioctl(f, cmd == SIOCGSTAMPNS, arg));
	case FIOSETOWN:
	case SIOCSPGRP:
		return (owner_fcntl(f, F_SETOWN, *(int *)arg) == 0 ? 0 : errno);
	case FIOGETOWN:
	case SIOCGPGRP:
		*(int *)arg = owner_fcntl(f, F_GETOWN, 0);
		return (0);
	default:
		return (interface_ioctl(cmd, arg));
	}
}

EXPORT int
ioctl(int fd, unsigned long cmd, ...)
{
	struct file *f;
	va_list ap;
	void *arg;
	int error = 0;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!fd_ours(fd) || (f = fget_type(fd, FT_SOCKET)) == NULL)
		return (real.ioctl(fd_kernel(fd), cmd, arg));
	if (!descriptor_ioctl(fd, cmd))
		error = socket_ioctl(fd, f, cmd, arg);
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
