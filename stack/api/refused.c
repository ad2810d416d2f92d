/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that act on files, terminals or pipes only, with the result that Linux
 * gives for a socket.  The placeholder's EBADF would say that it is closed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

#include "api/api.h"

/* Whether the descriptor is a socket; EBADF if it is hidden from the program. */
static bool
is_refused(int fd, int *error)
{
	struct file *f;

	if (!fd_known(fd) || !api_own_process())
		return (false);
	if (fd_hidden(fd)) {
		*error = EBADF;
		return (true);
	}
	f = fget_type(fd, FT_SOCKET);
	if (f == NULL)
		return (false);
	frele(f);
	return (true);
}

/* The result of a call on fd: fail(error) if it is a socket; 0: success. */
#define	REFUSED(ret, name, params, args, err, fail)			\
EXPORT ret								\
name params								\
{									\
	int error = (err);						\
									\
	return (is_refused(fd, &error) ? (ret)fail(error) :		\
	    real.name args);						\
}
#define	BY_ERRNO(error)	api_return(error, 0)
#define	BY_VALUE(error)	(error)	/* the posix_ functions return the error */

static int
no_terminal(int error)
{
	errno = error;
	return (0);
}

static void *
no_object(int error)
{
	errno = error;
	return (NULL);
}

static int
advise_error(off_t len, int advice)
{
	return (len < 0 || advice < POSIX_FADV_NORMAL ||
	    advice > POSIX_FADV_NOREUSE ? EINVAL : 0);
}

static int
allocate_error(int mode, off_t offset, off_t len)
{
	const unsigned modes = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE |
	    FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_ZERO_RANGE |
	    FALLOC_FL_INSERT_RANGE | FALLOC_FL_UNSHARE_RANGE;

	if (offset < 0 || len <= 0)
		return (EINVAL);
	return (((unsigned)mode & ~modes) != 0 ? EOPNOTSUPP : ENODEV);
}

static int
sync_error(off64_t offset, off64_t len, unsigned flags)
{
	const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE |
	    SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	return ((flags & ~all) != 0 || offset < 0 || len < 0 ||
	    len > INT64_MAX - offset ? EINVAL : ESPIPE);
}

/*
 * flock(2) and locks of an open file (F_OFD_SETLK) keep other open files out.
 * A socket is one open file, however many processes have it, so that such a
 * lock always succeeds.
 */
static int
flock_error(int operation)
{
	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
	case LOCK_EX:
	case LOCK_UN:
		return (0);
	default:
		return (operation & LOCK_MAND ? 0 : EINVAL);
	}
}

/*
 * lockf(3) by record locks, which nothing here keeps (lock_socket()): none is
 * held, and none can be set.
 */
static int
lockf_error(int cmd)
{
	switch (cmd) {
	case F_ULOCK:
	case F_TEST:
		return (0);
	case F_LOCK:
	case F_TLOCK:
		return (ENOLCK);
	default:
		return (EINVAL);
	}
}

/* xattr(7): only files have attributes of users. */
static int
attribute_error(const char *name, int users)
{
	if (address_bad(name))
		return (EFAULT);
	return (strncmp(name, "user.", 5) == 0 ||
	    strncmp(name, "trusted.", 8) == 0 ? users : EOPNOTSUPP);
}

REFUSED(int, fsync, (int fd), (fd), EINVAL, BY_ERRNO)
REFUSED(int, fdatasync, (int fd), (fd), EINVAL, BY_ERRNO)
REFUSED(int, syncfs, (int fd), (fd), 0, BY_ERRNO)
REFUSED(int, ftruncate, (int fd, off_t len), (fd, len), EINVAL, BY_ERRNO)
REFUSED(int, fallocate, (int fd, int mode, off_t offset, off_t len),
    (fd, mode, offset, len), allocate_error(mode, offset, len), BY_ERRNO)
REFUSED(int, posix_fallocate, (int fd, off_t offset, off_t len),
    (fd, offset, len), allocate_error(0, offset, len), BY_VALUE)
REFUSED(int, posix_fadvise, (int fd, off_t offset, off_t len, int advice),
    (fd, offset, len, advice), advise_error(len, advice), BY_VALUE)
REFUSED(int, sync_file_range, (int fd, off64_t offset, off64_t len,
    unsigned flags), (fd, offset, len, flags), sync_error(offset, len, flags),
    BY_ERRNO)
REFUSED(ssize_t, readahead, (int fd, off64_t offset, size_t len),
    (fd, offset, len), EINVAL, BY_ERRNO)
REFUSED(int, flock, (int fd, int operation), (fd, operation),
    flock_error(operation), BY_ERRNO)
REFUSED(int, lockf, (int fd, int cmd, off_t len), (fd, cmd, len),
    lockf_error(cmd), BY_ERRNO)
REFUSED(ssize_t, fgetxattr, (int fd, const char *name, void *value,
    size_t size), (fd, name, value, size), attribute_error(name, ENODATA),
    BY_ERRNO)
REFUSED(int, fsetxattr, (int fd, const char *name, const void *value,
    size_t size, int flags), (fd, name, value, size, flags),
    attribute_error(name, EPERM), BY_ERRNO)
REFUSED(int, fremovexattr, (int fd, const char *name), (fd, name),
    attribute_error(name, EPERM), BY_ERRNO)
REFUSED(int, isatty, (int fd), (fd), ENOTTY, no_terminal)
REFUSED(pid_t, tcgetpgrp, (int fd), (fd), ENOTTY, BY_ERRNO)
REFUSED(int, tcsetpgrp, (int fd, pid_t group), (fd, group), ENOTTY, BY_ERRNO)
REFUSED(pid_t, tcgetsid, (int fd), (fd), ENOTTY, BY_ERRNO)
REFUSED(int, tcgetattr, (int fd, struct termios *t), (fd, t), ENOTTY, BY_ERRNO)
REFUSED(int, tcsetattr, (int fd, int when, const struct termios *t),
    (fd, when, t), ENOTTY, BY_ERRNO)
REFUSED(int, tcdrain, (int fd), (fd), ENOTTY, BY_ERRNO)
REFUSED(int, tcflow, (int fd, int action), (fd, action), ENOTTY, BY_ERRNO)
REFUSED(int, tcflush, (int fd, int queue), (fd, queue), ENOTTY, BY_ERRNO)
REFUSED(int, tcsendbreak, (int fd, int duration), (fd, duration), ENOTTY,
    BY_ERRNO)
REFUSED(ssize_t, vmsplice, (int fd, const struct iovec *iov, size_t n,
    unsigned flags), (fd, iov, n, flags), EBADF, BY_ERRNO)
REFUSED(ssize_t, getdents64, (int fd, void *buf, size_t len), (fd, buf, len),
    ENOTDIR, BY_ERRNO)
REFUSED(int, fchdir, (int fd), (fd), ENOTDIR, BY_ERRNO)
REFUSED(DIR *, fdopendir, (int fd), (fd), ENOTDIR, no_object)
REFUSED(int, fchmod, (int fd, mode_t mode), (fd, mode), 0, BY_ERRNO)
REFUSED(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), 0,
    BY_ERRNO)
REFUSED(int, futimens, (int fd, const struct timespec ts[2]), (fd, ts), 0,
    BY_ERRNO)
REFUSED(int, futimes, (int fd, const struct timeval tv[2]), (fd, tv), 0,
    BY_ERRNO)
REFUSED(ssize_t, flistxattr, (int fd, char *list, size_t size),
    (fd, list, size), 0, BY_ERRNO)
REFUSED(int, signalfd, (int fd, const sigset_t *mask, int flags),
    (fd, mask, flags), EINVAL, BY_ERRNO)
REFUSED(int, timerfd_settime, (int fd, int flags,
    const struct itimerspec *value, struct itimerspec *old),
    (fd, flags, value, old), EINVAL, BY_ERRNO)
REFUSED(int, timerfd_gettime, (int fd, struct itimerspec *value), (fd, value),
    EINVAL, BY_ERRNO)
REFUSED(int, inotify_add_watch, (int fd, const char *path, uint32_t mask),
    (fd, path, mask), EINVAL, BY_ERRNO)
REFUSED(int, inotify_rm_watch, (int fd, int watch), (fd, watch), EINVAL,
    BY_ERRNO)
REFUSED(char *, ttyname, (int fd), (fd), ENOTTY, no_object)
REFUSED(int, ttyname_r, (int fd, char *name, size_t size), (fd, name, size),
    ENOTTY, BY_VALUE)

/* The C library's versions would call the kernel. */
EXPORT int
eventfd_read(int fd, eventfd_t *value)
{
	return (read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1);
}

EXPORT int
eventfd_write(int fd, eventfd_t value)
{
	return (write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1);
}

/* As Linux's sockfs. */
EXPORT int
fstatfs(int fd, struct statfs *st)
{
	int error = 0;

	if (!is_refused(fd, &error))
		return (real.fstatfs(fd, st));
	if (error == 0)
		*st = (struct statfs){
			.f_type = SOCKFS_MAGIC, .f_bsize = 4096,
			.f_frsize = 4096, .f_namelen = NAME_MAX
		};
	return ((int)api_return(error, 0));
}

EXPORT int
fstatvfs(int fd, struct statvfs *st)
{
	int error = 0;

	if (!is_refused(fd, &error))
		return (real.fstatvfs(fd, st));
	if (error == 0)
		*st = (struct statvfs){
			.f_bsize = 4096, .f_frsize = 4096,
			.f_namemax = NAME_MAX
		};
	return ((int)api_return(error, 0));
}

_Static_assert(sizeof(struct statfs) == sizeof(struct statfs64) &&
    sizeof(struct statvfs) == sizeof(struct statvfs64), "one structure");
EXPORT int fstatfs64(int, struct statfs64 *);
EXPORT int fstatvfs64(int, struct statvfs64 *);

EXPORT int
fstatfs64(int fd, struct statfs64 *st)
{
	return (fstatfs(fd, (struct statfs *)(void *)st));
}

EXPORT int
fstatvfs64(int fd, struct statvfs64 *st)
{
	return (fstatvfs(fd, (struct statvfs *)(void *)st));
}

/* The 64-bit names are the same functions. */
EXPORT int ftruncate64(int, off64_t) __attribute__((alias("ftruncate")));
EXPORT int fallocate64(int, int, off64_t, off64_t)
    __attribute__((alias("fallocate")));
EXPORT int posix_fadvise64(int, off64_t, off64_t, int)
    __attribute__((alias("posix_fadvise")));
EXPORT int posix_fallocate64(int, off64_t, off64_t)
    __attribute__((alias("posix_fallocate")));
EXPORT int lockf64(int, int, off64_t) __attribute__((alias("lockf")));

/* Of two descriptors one may be a socket. */
EXPORT ssize_t
tee(int in, int out, size_t len, unsigned flags)
{
	int error = EINVAL;

	return (is_refused(in, &error) || is_refused(out, &error) ?
	    api_return(error, 0) : real.tee(in, out, len, flags));
}

EXPORT ssize_t
copy_file_range(int in, off64_t *inoff, int out, off64_t *outoff, size_t len,
    unsigned flags)
{
	int error = EINVAL;

	return (is_refused(in, &error) || is_refused(out, &error) ?
	    api_return(error, 0) :
	    real.copy_file_range(in, inoff, out, outoff, len, flags));
}
