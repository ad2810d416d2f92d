/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data transfer between descriptors: sendfile(2) and splice(2); and calls with
 * a position, which sockets do not support.
 */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "api/api.h"

#define	CHUNK	65536		/* capacity of an empty pipe (pipe(7)) */

/* Reads bytes of a kernel file at *offset, or at the file's own position. */
static ssize_t
file_read(int fd, char *buf, size_t len, off_t *offset)
{
	ssize_t n;

	if (offset == NULL)
		return (real.read(fd, buf, len));
	n = real.pread(fd, buf, len, *offset);
	if (n > 0)
		*offset += n;
	return (n);
}

/* sendfile(2): the input must be a file with a position. */
static int
sendfile_error(int in, const off_t *offset)
{
	if (fd_ours(in) || fd_hidden(in))
		return (fd_hidden(in) ? EBADF : EINVAL);
	if (real.lseek(in, 0, SEEK_CUR) != -1)
		return (0);
	return (errno == ESPIPE && offset == NULL ? EINVAL : errno);
}

/* Reverts the part of file_read() that could not be sent. */
static void
file_unread(int fd, off_t *offset, ssize_t n)
{
	if (offset != NULL)
		*offset -= n;
	else
		(void)real.lseek(fd, -(off_t)n, SEEK_CUR);
}

EXPORT ssize_t
sendfile(int out, int in, off_t *offset, size_t len)
{
	char buf[CHUNK];
	size_t total = 0;
	ssize_t n = 0, sent;
	int error;

	if (!fd_ours(out) && !fd_ours(in))
		return (real.sendfile(fd_kernel(out), fd_kernel(in), offset,
		    len));
	error = sendfile_error(in, offset);
	if (error != 0)
		return (api_return(error, 0));
	while (total < len) {
		size_t want = len - total;

		n = file_read(in, buf, want < sizeof(buf) ? want : sizeof(buf),
		    offset);
		if (n <= 0)
			break;
		sent = write(out, buf, (size_t)n);
		if (sent < n)
			file_unread(in, offset, n - (sent > 0 ? sent : 0));
		total += (size_t)(sent > 0 ? sent : 0);
		if (sent < n) {
			n = sent;
			break;
		}
	}
	return (total == 0 && n < 0 ? -1 : (ssize_t)total);
}

EXPORT ssize_t
sendfile64(int out, int in, off64_t *offset, size_t len)
{
	return (sendfile(out, in, offset, len));
}

/*
 * The kernel decides how much a pipe accepts or contains, and when to wait.
 * The data therefore passes a private pipe, which is spliced with the
 * program's.
 */
static int
private_pipe(int fds[2])
{
	return (pipe2(fds, O_CLOEXEC | O_NONBLOCK));
}

static void
close_private(int fds[2], int error)
{
	real.close(fds[0]);
	real.close(fds[1]);
	errno = error;
}

/* Only what the pipe accepted is removed from the socket. */
static ssize_t
socket_to_pipe(int in, int out, size_t len, unsigned flags)
{
	char buf[CHUNK];
	int fds[2];
	ssize_t n;

	/* as in Linux: ends before urgent data */
	if (sockatmark(in) == 1)
		return (0);
	n = recv(in, buf, len, MSG_PEEK);
	if (n <= 0 || private_pipe(fds) != 0)
		return (n <= 0 ? n : -1);
	n = real.write(fds[1], buf, (size_t)n);
	if (n > 0)
		n = real.splice(fds[0], NULL, out, NULL, (size_t)n, flags);
	close_private(fds, errno);
	if (n > 0)
		(void)recv(in, buf, (size_t)n, MSG_DONTWAIT);
	return (n);
}

/* Only what the socket accepted is removed from the pipe. */
static ssize_t
pipe_to_socket(int in, int out, size_t len, unsigned flags)
{
	char buf[CHUNK];
	int fds[2];
	ssize_t n;

	if (private_pipe(fds) != 0)
		return (-1);
	n = real.tee(in, fds[1], len, flags & SPLICE_F_NONBLOCK);
	if (n > 0)
		n = real.read(fds[0], buf, (size_t)n);
	close_private(fds, errno);
	if (n > 0)
		n = send(out, buf, (size_t)n,
		    flags & SPLICE_F_MORE ? MSG_MORE : 0);
	if (n > 0)
		(void)real.read(in, buf, (size_t)n);
	return (n);
}

/* The other end must be a pipe, and neither may have a position. */
static int
splice_error(int pipe_end, const off64_t *sockoff, const off64_t *pipeoff)
{
	if (fd_hidden(pipe_end) || real.fcntl(pipe_end, F_GETFD) == -1)
		return (EBADF);
	if (real.fcntl(pipe_end, F_GETPIPE_SZ) == -1 || sockoff != NULL)
		return (EINVAL);
	return (pipeoff != NULL ? ESPIPE : 0);
}

EXPORT ssize_t
splice(int in, off64_t *inoff, int out, off64_t *outoff, size_t len,
    unsigned flags)
{
	int error;

	if (!fd_ours(in) && !fd_ours(out))
		return (real.splice(fd_kernel(in), inoff, fd_kernel(out),
		    outoff, len, flags));
	if (fd_ours(in) && fd_ours(out))
		return (api_return(EINVAL, 0));
	error = fd_ours(in) ? splice_error(out, inoff, outoff) :
	    splice_error(in, outoff, inoff);
	if (error != 0)
		return (api_return(error, 0));
	if (len > CHUNK)
		len = CHUNK;
	if (len == 0)
		return (0);
	if (fd_ours(in))
		return (socket_to_pipe(in, out, len, flags));
	return (pipe_to_socket(in, out, len, flags));
}

/* For calls with a position, the 64-bit names are the same functions. */
#define	POSITIONED(ret, name, params, args)				\
EXPORT ret name params;							\
EXPORT ret								\
name params								\
{									\
	if (fd_known(fd))						\
		return ((ret)api_return(fd_hidden(fd) ? EBADF : ESPIPE,	\
		    0));						\
	return (real.name args);					\
}									\
EXPORT ret name##64 params __attribute__((alias(#name)));

POSITIONED(off_t, lseek, (int fd, off_t offset, int whence),
    (fd, offset, whence))
POSITIONED(ssize_t, pread, (int fd, void *buf, size_t len, off_t offset),
    (fd, buf, len, offset))
POSITIONED(ssize_t, pwrite, (int fd, const void *buf, size_t len,
    off_t offset), (fd, buf, len, offset))
POSITIONED(ssize_t, preadv, (int fd, const struct iovec *iov, int n,
    off_t offset), (fd, iov, n, offset))
POSITIONED(ssize_t, pwritev, (int fd, const struct iovec *iov, int n,
    off_t offset), (fd, iov, n, offset))

/*
 * Position -1 means the file's own, which permits sockets (preadv2(2)).  Of
 * the flags only RWF_NOWAIT concerns them.
 */
static int
flags2(off_t offset, int flags, int *msgflags)
{
	if (offset != -1)
		return (ESPIPE);
	if ((flags & ~(RWF_NOWAIT | RWF_HIPRI)) != 0)
		return (EOPNOTSUPP);
	*msgflags = flags & RWF_NOWAIT ? MSG_DONTWAIT : 0;
	return (0);
}

EXPORT ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
	    .msg_iovlen = (size_t)n };
	int error, msgflags;

	if (!fd_ours(fd))
		return (real.preadv2(fd_kernel(fd), iov, n, offset, flags));
	if ((error = flags2(offset, flags, &msgflags)) != 0)
		return (api_return(error, 0));
	return (msgflags == 0 ? readv(fd, iov, n) :
	    recvmsg(fd, &msg, msgflags));
}

EXPORT ssize_t
pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	const struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
	    .msg_iovlen = (size_t)n };
	int error, msgflags;

	if (!fd_ours(fd))
		return (real.pwritev2(fd_kernel(fd), iov, n, offset, flags));
	if ((error = flags2(offset, flags, &msgflags)) != 0)
		return (api_return(error, 0));
	return (msgflags == 0 ? writev(fd, iov, n) :
	    sendmsg(fd, &msg, msgflags));
}

EXPORT ssize_t preadv64v2(int, const struct iovec *, int, off_t, int)
    __attribute__((alias("preadv2")));
EXPORT ssize_t pwritev64v2(int, const struct iovec *, int, off_t, int)
    __attribute__((alias("pwritev2")));
