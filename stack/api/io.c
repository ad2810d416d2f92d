/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending and receiving: every call becomes one struct msghdr and one
 * soreceive() or sosend().
 */
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "api/remote.h"
#include "api/ticket.h"

/* Transferred data takes precedence over a later error. */
static ssize_t
io_return(int error, size_t done)
{
	return (__predict_true(done > 0) ? (ssize_t)done :
	    api_return(error, 0));
}

/* tcp(7): MSG_TRUNC discards bytes, for which the buffer is not used. */
static bool
discards(struct file *f, int flags)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	if ((flags & (MSG_TRUNC | MSG_ERRQUEUE)) != MSG_TRUNC)
		return (false);
	if (f->f_so != NULL)
		return (f->f_so->so_protocol == IPPROTO_TCP);
	api_enter();
	(void)remote_getopt(f, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	api_leave(0);
	return (protocol == IPPROTO_TCP);
}

__hot static bool
buffer_bad(const struct msghdr *msg)
{
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		if (msg->msg_iov[i].iov_len > 0 &&
		    address_bad(msg->msg_iov[i].iov_base))
			return (true);
	return (false);
}

/* Whether a call must fail with EFAULT, apart from its buffer. */
__hot static bool
message_bad(const struct msghdr *msg)
{
	if (msg->msg_iovlen > 0 && address_bad(msg->msg_iov))
		return (true);
	return ((msg->msg_name != NULL && msg->msg_namelen > 0 &&
	    address_bad(msg->msg_name)) ||
	    (msg->msg_control != NULL && msg->msg_controllen > 0 &&
	    address_bad(msg->msg_control)));
}

/* Releases f. */
__hot static ssize_t
receive(struct file *f, struct msghdr *msg, int flags)
{
	const socklen_t namelen = msg->msg_namelen;
	const size_t controllen = msg->msg_controllen;
	size_t done;
	int error;
	bool restart;

	KASSERT(f->f_type == FT_SOCKET, ("receive: type %d", (int)f->f_type));
	if (message_bad(msg) || (buffer_bad(msg) && !discards(f, flags))) {
		frele(f);
		return (api_return(EFAULT, 0));
	}
	if (atomic_load_u32(&f->f_nonblock))
		flags |= MSG_DONTWAIT;
	do {
		msg->msg_namelen = namelen;
		msg->msg_controllen = controllen;
		done = 0;
		api_enter();
		error = __predict_false(f->f_so == NULL) ?
		    remote_receive(f, msg, flags, &done) :
		    soreceive(f->f_so, msg, flags, &done);
		restart = api_leave(error) && done == 0 &&
		    !(atomic_load_u32(&f->f_timeo) & FTIMEO_RCV);
	} while (__predict_false(restart));
	frele(f);
	return (io_return(error, done));
}

/* Releases f. */
__hot static ssize_t
transmit(struct file *f, const struct msghdr *msg, int flags)
{
	size_t done;
	int error;
	bool restart;

	KASSERT(f->f_type == FT_SOCKET, ("transmit: type %d", (int)f->f_type));
	if (message_bad(msg) || buffer_bad(msg)) {
		frele(f);
		return (api_return(EFAULT, 0));
	}
	if (atomic_load_u32(&f->f_nonblock))
		flags |= MSG_DONTWAIT;
	do {
		done = 0;
		api_enter();
		error = __predict_false(f->f_so == NULL) ?
		    remote_send(f, msg, flags, &done) :
		    sosend(f->f_so, msg, flags, &done);
		restart = api_leave(error) && done == 0 &&
		    !(atomic_load_u32(&f->f_timeo) & FTIMEO_SND);
	} while (__predict_false(restart));
	frele(f);
	if (__predict_false(error == EPIPE) && done == 0 &&
	    !(flags & MSG_NOSIGNAL))
		pthread_kill(pthread_self(), SIGPIPE);
	return (io_return(error, done));
}

EXPORT ssize_t
read(int fd, void *buf, size_t len)
{
	struct file *f;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!fd_ours(fd) || (f = fget_type(fd, FT_SOCKET)) == NULL)
		return (real.read(fd_kernel(fd), buf, len));
	if (len == 0) {
		frele(f);
		/* read(2) of 0 bytes returns at once; recv() may wait */
		return (0);
	}
	return (receive(f, &msg, 0));
}

/* Stores how many bytes a readv() or writev() is for; an errno value. */
static int
vector_length(const struct iovec *iov, int count, size_t *len)
{
	*len = 0;
	if (count < 0 || count > IOV_MAX)
		return (EINVAL);
	if (count > 0 && address_bad(iov))
		return (EFAULT);
	for (int i = 0; i < count; i++)
		*len += iov[i].iov_len;
	return (0);
}

/* Like read() of 0 bytes, it returns at once if there is no room. */
EXPORT ssize_t
readv(int fd, const struct iovec *iov, int count)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	size_t len;
	int error;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)count
	};

	if (f == NULL)
		return (real.readv(fd_kernel(fd), iov, count));
	error = vector_length(iov, count, &len);
	if (error != 0 || len == 0) {
		frele(f);
		return (api_return(error, 0));
	}
	return (receive(f, &msg, 0));
}

__hot EXPORT ssize_t
recvfrom(int fd, void *restrict buf, size_t len, int flags,
    struct sockaddr *restrict addr, socklen_t *restrict addrlen)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (f == NULL)
		return (real.recvfrom(fd_kernel(fd), buf, len, flags, addr,
		    addrlen));
	if (addr != NULL && addrlen != NULL) {
		if (address_bad(addrlen) || *addrlen > INT_MAX) {
			frele(f);
			return (api_return(address_bad(addrlen) ? EFAULT :
			    EINVAL, 0));
		}
		msg.msg_name = addr;
		msg.msg_namelen = *addrlen;
	}
	n = receive(f, &msg, flags);
	if (n >= 0 && addr != NULL && addrlen != NULL)
		*addrlen = msg.msg_namelen;
	return (n);
}

__hot EXPORT ssize_t
recv(int fd, void *buf, size_t len, int flags)
{
	return (recvfrom(fd, buf, len, flags, NULL, NULL));
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	struct msghdr result;
	ssize_t len;

	if (f == NULL) {
		len = real.recvmsg(fd_kernel(fd), msg, flags);
		if (len >= 0)
			ticket_received(msg, flags);
		return (len);
	}
	if (address_bad(msg) || msg->msg_iovlen > IOV_MAX) {
		frele(f);
		return (api_return(address_bad(msg) ? EFAULT : EMSGSIZE, 0));
	}
	result = *msg;
	/* an error leaves the message as it was, as in Linux */
	result.msg_flags = 0;
	len = receive(f, &result, flags);
	if (len >= 0)
		*msg = result;
	return (len);
}

/*
 * As in Linux, the timeout is tested only between messages, and an error after
 * the first message is returned by the next call.
 */
EXPORT int
recvmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags,
    struct timespec *timeout)
{
	nsec_t deadline;
	unsigned i = 0;
	ssize_t len = 0;

	if (!fd_ours(fd)) {
		const int received = real.recvmmsg(fd_kernel(fd), vec, n,
		    flags, timeout);

		for (int k = 0; k < received; k++)
			ticket_received(&vec[k].msg_hdr, flags);
		return (received);
	}
	if (n > 0 && address_bad(vec))
		return ((int)api_return(EFAULT, 0));
	if (deadline_ts(timeout, &deadline) != 0)
		return ((int)api_return(EINVAL, 0));
	while (i < n && (i == 0 || time_left(deadline) > 0)) {
		len = recvmsg(fd, &vec[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (len < 0)
			break;
		vec[i++].msg_len = (unsigned)len;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	return (i == 0 && len < 0 ? -1 : (int)i);
}

EXPORT ssize_t
write(int fd, const void *buf, size_t len)
{
	struct file *f;
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)buf, .iov_len = len
	};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!fd_ours(fd) || (f = fget_type(fd, FT_SOCKET)) == NULL)
		return (real.write(fd_kernel(fd), buf, len));
	return (transmit(f, &msg, 0));
}

/* Without a byte it sends no datagram, as in Linux; write() sends one. */
EXPORT ssize_t
writev(int fd, const struct iovec *iov, int count)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	size_t len;
	int error;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)count
	};

	if (f == NULL)
		return (real.writev(fd_kernel(fd), iov, count));
	error = vector_length(iov, count, &len);
	if (error != 0 || len == 0) {
		frele(f);
		return (api_return(error, 0));
	}
	return (transmit(f, &msg, 0));
}

__hot EXPORT ssize_t
sendto(int fd, const void *buf, size_t len, int flags,
    const struct sockaddr *addr, socklen_t addrlen)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)buf, .iov_len = len
	};
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)addr,
		.msg_namelen = addrlen,
		.msg_iov = &iov,
		.msg_iovlen = 1
	};

	if (f == NULL)
		return (real.sendto(fd_kernel(fd), buf, len, flags, addr,
		    addrlen));
	return (transmit(f, &msg, flags));
}

__hot EXPORT ssize_t
send(int fd, const void *buf, size_t len, int flags)
{
	return (sendto(fd, buf, len, flags, NULL, 0));
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct file *f = fget_type(fd, FT_SOCKET);

	if (f == NULL)
		return (ticket_needed(msg) ? ticket_sendmsg(fd, msg, flags) :
		    real.sendmsg(fd_kernel(fd), msg, flags));
	if (address_bad(msg) || msg->msg_iovlen > IOV_MAX) {
		frele(f);
		return (api_return(address_bad(msg) ? EFAULT : EMSGSIZE, 0));
	}
	return (transmit(f, msg, flags));
}

static bool
any_needs_tickets(const struct mmsghdr *vec, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (ticket_needed(&vec[i].msg_hdr))
			return (true);
	return (false);
}

EXPORT int
sendmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags)
{
	unsigned i;
	ssize_t len = 0;

	if (n > 0 && address_bad(vec))
		return ((int)api_return(EFAULT, 0));
	if (!fd_ours(fd) && !any_needs_tickets(vec, n))
		return (real.sendmmsg(fd_kernel(fd), vec, n, flags));
	for (i = 0; i < n; i++) {
		len = sendmsg(fd, &vec[i].msg_hdr, flags);
		if (len < 0)
			break;
		vec[i].msg_len = (unsigned)len;
	}
	return (i == 0 && len < 0 ? -1 : (int)i);
}

/* Programs compiled with _FORTIFY_SOURCE call these. */
NORETURN void __chk_fail(void);
EXPORT ssize_t __read_chk(int, void *, size_t, size_t);
EXPORT ssize_t __recv_chk(int, void *, size_t, size_t, int);
EXPORT ssize_t __recvfrom_chk(int, void *, size_t, size_t, int,
    struct sockaddr *, socklen_t *);

EXPORT ssize_t
__read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return (read(fd, buf, len));
}

EXPORT ssize_t
__recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		__chk_fail();
	return (recv(fd, buf, len, flags));
}

EXPORT ssize_t
__recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
    struct sockaddr *addr, socklen_t *addrlen)
{
	if (len > room)
		__chk_fail();
	return (recvfrom(fd, buf, len, flags, addr, addrlen));
}
