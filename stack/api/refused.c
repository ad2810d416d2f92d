/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that act on files, terminals or pipes only, with the errors that Linux
 * gives for a socket.  The placeholder's EBADF would say that it is closed.
 */
#include <fcntl.h>
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

/* The result of a call on fd: fail(error) if it is a socket. */
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

REFUSED(int, fsync, (int fd), (fd), EINVAL, BY_ERRNO)
REFUSED(int, fdatasync, (int fd), (fd), EINVAL, BY_ERRNO)
REFUSED(int, ftruncate, (int fd, off_t len), (fd, len), EINVAL, BY_ERRNO)
REFUSED(int, fallocate, (int fd, int mode, off_t offset, off_t len),
    (fd, mode, offset, len), ENODEV, BY_ERRNO)
REFUSED(int, posix_fallocate, (int fd, off_t offset, off_t len),
    (fd, offset, len), ENODEV, BY_VALUE)
REFUSED(int, posix_fadvise, (int fd, off_t offset, off_t len, int advice),
    (fd, offset, len, advice), 0, BY_VALUE)
REFUSED(int, sync_file_range, (int fd, off64_t offset, off64_t len,
    unsigned flags), (fd, offset, len, flags), ESPIPE, BY_ERRNO)
REFUSED(ssize_t, readahead, (int fd, off64_t offset, size_t len),
    (fd, offset, len), EINVAL, BY_ERRNO)
REFUSED(int, isatty, (int fd), (fd), ENOTTY, no_terminal)
REFUSED(pid_t, tcgetpgrp, (int fd), (fd), ENOTTY, BY_ERRNO)
REFUSED(int, tcsetpgrp, (int fd, pid_t group), (fd, group), ENOTTY, BY_ERRNO)

/* The 64-bit names are the same functions. */
EXPORT int ftruncate64(int, off64_t) __attribute__((alias("ftruncate")));
EXPORT int fallocate64(int, int, off64_t, off64_t)
    __attribute__((alias("fallocate")));
EXPORT int posix_fadvise64(int, off64_t, off64_t, int)
    __attribute__((alias("posix_fadvise")));
EXPORT int posix_fallocate64(int, off64_t, off64_t)
    __attribute__((alias("posix_fallocate")));

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
