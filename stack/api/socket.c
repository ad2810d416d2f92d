/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that create and connect sockets, and get and set their properties:
 * each checks its arguments, looks the descriptor up, and calls one so*()
 * function.
 */
#include <limits.h>
#include <netinet/in.h>
#include <unistd.h>

#include "api/remote.h"

static const int new_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;

/* The file of a new socket. */
static struct file *
socket_file(struct socket *so, int flags)
{
	struct file *f = file_new(FT_SOCKET);

	soref(so); /* the file's reference; soclose() drops the descriptor's */
	f->f_so = so;
	atomic_store_u32(&f->f_nonblock, (flags & SOCK_NONBLOCK) != 0);
	return (f);
}

int
file_socket(int domain, int type, int protocol, struct file **f)
{
	struct socket *so;
	int error = socreate(domain, type & ~new_flags, protocol, &so);

	if (error == 0)
		*f = socket_file(so, type);
	return (error);
}

int
file_socketpair(int domain, int type, int protocol, struct file *f[2])
{
	struct socket *pair[2];
	int error = sosocketpair(domain, type & ~new_flags, protocol, pair);

	for (unsigned i = 0; i < 2 && error == 0; i++)
		f[i] = socket_file(pair[i], type);
	return (error);
}

int
file_accept(struct file *f, int msgflags, struct sockaddr *addr,
    socklen_t *len, int flags, struct file **new)
{
	struct socket *so;
	int error;

	if (atomic_load_u32(&f->f_nonblock))
		msgflags |= MSG_DONTWAIT;
	error = soaccept(f->f_so, msgflags, addr, len, &so);
	if (error == 0)
		*new = socket_file(so, flags);
	return (error);
}

static bool
domain_ours(int domain)
{
	switch (domain) {
	case AF_INET:
		return (true);
	case AF_INET6:
		return (atomic_load_u32(&api_inet6_kernel) == 0);
	case AF_UNIX:
		return (atomic_load_u32(&api_unix_sockets) == UNIX_STACK);
	default:
		return (false);
	}
}

/* Arguments that no domain has: an errno value. */
static int
check_type(int type, int protocol)
{
	type &= ~new_flags;
	if (type < 0 || type > SOCK_PACKET || protocol < 0 ||
	    protocol >= IPPROTO_MAX)
		return (EINVAL);
	return (type > SOCK_SEQPACKET ? ESOCKTNOSUPPORT : 0);
}

/*
 * IPv4 and IPv6 sockets are always the stack's, raw sockets included: a
 * program must not use the kernel's network by accident.
 */
EXPORT int
socket(int domain, int type, int protocol)
{
	struct file *f;
	int fd, error;

	if (api_state() == API_PASSIVE || !domain_ours(domain))
		return (real.socket(domain, type, protocol));
	error = check_type(type, protocol);
	if (error != 0)
		return ((int)api_return(error, 0));
	if ((fd = fd_reserve()) == -1)
		return (-1);
	api_enter();
	error = api_state() == API_CLIENT ?
	    remote_socket(domain, type, protocol, &f) :
	    file_socket(domain, type, protocol, &f);
	if (error == 0)
		fd_install(fd, f, (type & SOCK_CLOEXEC) != 0);
	else
		fd_unreserve(fd);
	api_leave(error);
	return ((int)api_return(error, fd));
}

/* Reserves two numbers for a pair of sockets; returns an errno value. */
static int
reserve_two(int fds[2])
{
	fds[0] = fd_reserve();
	if (fds[0] == -1)
		return (errno);
	fds[1] = fd_reserve();
	if (fds[1] != -1)
		return (0);
	fd_unreserve(fds[0]);
	return (EMFILE);
}

EXPORT int
socketpair(int domain, int type, int protocol, int out[2])
{
	struct file *pair[2];
	int fds[2], error;

	if (api_state() == API_PASSIVE || !domain_ours(domain))
		return (real.socketpair(domain, type, protocol, out));
	error = reserve_two(fds);
	if (error != 0)
		return ((int)api_return(error, 0));
	api_enter();
	error = api_state() == API_CLIENT ?
	    remote_socketpair(domain, type, protocol, pair) :
	    file_socketpair(domain, type, protocol, pair);
	for (unsigned i = 0; i < 2; i++) {
		if (error == 0)
			fd_install(fds[i], pair[i],
			    (type & SOCK_CLOEXEC) != 0);
		else
			fd_unreserve(fds[i]);
		out[i] = error == 0 ? fds[i] : out[i];
	}
	api_leave(error);
	return ((int)api_return(error, 0));
}

/*
 * Arguments of calls that store at most *len bytes: an errno value.  none: a
 * NULL value stores nothing.
 */
static int
check_result(const void *value, const socklen_t *len, bool none)
{
	if (none && value == NULL)
		return (0);
	if (address_bad(len))
		return (EFAULT);
	if (*len > INT_MAX)
		return (EINVAL);
	return (*len > 0 && address_bad(value) ? EFAULT : 0);
}

/* The file of a call with such arguments, or with an address or a value. */
static int
refuse(struct file *f, int error)
{
	frele(f);
	return ((int)api_return(error, 0));
}

EXPORT int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.bind(fd_kernel(fd), addr, len));
	if (len > 0 && len <= sizeof(struct sockaddr_storage) &&
	    address_bad(addr))
		return (refuse(f, EFAULT));
	api_enter();
	error = f->f_so == NULL ? remote_bind(f, addr, len) :
	    sobind(f->f_so, addr, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
listen(int fd, int backlog)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.listen(fd_kernel(fd), backlog));
	api_enter();
	error = f->f_so == NULL ? remote_listen(f, backlog) :
	    solisten(f->f_so, backlog);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

/*
 * The number is reserved first, because a connection must not be lost for want
 * of one.  A handler that jumps out of a restarted call leaves none reserved.
 */
static int
accept_once(struct file *f, int *fd, struct sockaddr *addr, socklen_t *len,
    int flags)
{
	struct file *new;
	int error;

	*fd = fd_reserve();
	if (*fd == -1)
		return (errno);
	error = f->f_so == NULL ? remote_accept(f, addr, len, flags, &new) :
	    file_accept(f, 0, addr, len, flags, &new);
	if (error == 0)
		fd_install(*fd, new, (flags & SOCK_CLOEXEC) != 0);
	else
		fd_unreserve(*fd);
	return (error);
}

EXPORT int
accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int newfd, error;
	bool restart;

	if (f == NULL)
		return (real.accept4(fd_kernel(fd), addr, len, flags));
	if ((flags & ~new_flags) != 0)
		return (refuse(f, EINVAL));
	error = check_result(addr, len, true);
	if (error != 0)
		return (refuse(f, error));
	do {
		api_enter();
		error = accept_once(f, &newfd, addr, len, flags);
		restart = api_leave(error) &&
		    !(atomic_load_u32(&f->f_timeo) & FTIMEO_RCV);
	} while (restart);
	frele(f);
	return ((int)api_return(error, newfd));
}

EXPORT int
accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return (accept4(fd, addr, len, 0));
}

/*
 * An interrupted connect() continues in the background (POSIX), so it is never
 * restarted: EINTR, then poll for writability and SO_ERROR.
 */
EXPORT int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.connect(fd_kernel(fd), addr, len));
	if (len > 0 && len <= sizeof(struct sockaddr_storage) &&
	    address_bad(addr))
		return (refuse(f, EFAULT));
	api_enter();
	error = f->f_so == NULL ? remote_connect(f, addr, len) :
	    soconnect(f->f_so, addr, len,
	    atomic_load_u32(&f->f_nonblock) ? MSG_DONTWAIT : 0);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
shutdown(int fd, int how)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.shutdown(fd_kernel(fd), how));
	api_enter();
	error = f->f_so == NULL ? remote_shutdown(f, how) :
	    soshutdown(f->f_so, how);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.getsockname(fd_kernel(fd), addr, len));
	error = check_result(addr, len, false);
	if (error != 0)
		return (refuse(f, error));
	api_enter();
	error = f->f_so == NULL ? remote_sockname(f, addr, len) :
	    sogetsockname(f->f_so, addr, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.getpeername(fd_kernel(fd), addr, len));
	error = check_result(addr, len, false);
	if (error != 0)
		return (refuse(f, error));
	api_enter();
	error = f->f_so == NULL ? remote_peername(f, addr, len) :
	    sogetpeername(f->f_so, addr, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

/*
 * NULL for an address that cannot be read or written: its EFAULT comes after the
 * errors of level and name.
 */
static void *
option_address(const void *p)
{
	return (address_bad(p) ? NULL : (void *)(uintptr_t)p);
}

EXPORT int
getsockopt(int fd, int level, int name, void *restrict value,
    socklen_t *restrict len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.getsockopt(fd_kernel(fd), level, name, value,
		    len));
	value = option_address(value);
	len = option_address(len);
	api_enter();
	error = f->f_so == NULL ? remote_getopt(f, level, name, value, len) :
	    sogetopt(f->f_so, level, name, value, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

/* Records whether calls have a timeout, because those are not restarted. */
static void
note_timeout(struct file *f, int level, int name, const void *value,
    socklen_t len)
{
	const struct timeval *tv = value;
	uint32_t bit, old;

	if (level != SOL_SOCKET || value == NULL || len < sizeof(*tv) ||
	    (name != SO_RCVTIMEO && name != SO_SNDTIMEO))
		return;
	bit = name == SO_RCVTIMEO ? FTIMEO_RCV : FTIMEO_SND;
	old = atomic_load_u32(&f->f_timeo) & ~bit;
	atomic_store_u32(&f->f_timeo,
	    tv->tv_sec != 0 || tv->tv_usec != 0 ? old | bit : old);
}

int
file_setopt(struct file *f, int level, int name, const void *value,
    socklen_t len)
{
	int error = sosetopt(f->f_so, level, name, value, len);

	if (error == 0)
		note_timeout(f, level, name, value, len);
	return (error);
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.setsockopt(fd_kernel(fd), level, name, value,
		    len));
	if (len > INT_MAX)
		return (refuse(f, EINVAL));
	value = option_address(value);
	api_enter();
	error = f->f_so == NULL ? remote_setopt(f, level, name, value, len) :
	    file_setopt(f, level, name, value, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}
