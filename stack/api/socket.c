/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that create and connect sockets, and get and set their properties:
 * each checks its arguments, looks the descriptor up, and calls one so*()
 * function.
 */
#include <unistd.h>

#include "api/api.h"

/* Installs a new socket at its reserved descriptor number. */
static void
socket_install(int fd, struct socket *so, int flags)
{
	struct file *f = file_new(FT_SOCKET);

	soref(so); /* the file's reference; soclose() drops the descriptor's */
	f->f_so = so;
	atomic_store_u32(&f->f_nonblock, (flags & SOCK_NONBLOCK) != 0);
	fd_install(fd, f, (flags & SOCK_CLOEXEC) != 0);
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

/*
 * IPv4 and IPv6 sockets are always the stack's, raw sockets included: a
 * program must not use the kernel's network by accident.
 */
EXPORT int
socket(int domain, int type, int protocol)
{
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct socket *so;
	int fd, error;

	if (api_state() == API_PASSIVE)
		return (real.socket(domain, type, protocol));
	if (!domain_ours(domain))
		return (real.socket(domain, type, protocol));
	if (api_state() == API_FORKED) {
		api_explain();
		return ((int)api_return(ENETDOWN, 0));
	}
	if ((fd = fd_reserve()) == -1)
		return (-1);
	api_enter();
	error = socreate(domain, type & ~flags, protocol, &so);
	if (atomic_load_u32(&api_sockets_made) == 0)
		atomic_store_u32(&api_sockets_made, 1);
	if (error == 0)
		socket_install(fd, so, type);
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
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct socket *pair[2];
	int fds[2], error;

	if (api_state() != API_UP || !domain_ours(domain))
		return (real.socketpair(domain, type, protocol, out));
	error = reserve_two(fds);
	if (error != 0)
		return ((int)api_return(error, 0));
	api_enter();
	error = sosocketpair(domain, type & ~flags, protocol, pair);
	for (unsigned i = 0; i < 2; i++) {
		if (error == 0)
			socket_install(fds[i], pair[i], type);
		else
			fd_unreserve(fds[i]);
		out[i] = error == 0 ? fds[i] : out[i];
	}
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.bind(fd, addr, len));
	api_enter();
	error = sobind(f->f_so, addr, len);
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
		return (real.listen(fd, backlog));
	api_enter();
	error = solisten(f->f_so, backlog);
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
	struct socket *so;
	int error;

	*fd = fd_reserve();
	if (*fd == -1)
		return (errno);
	error = soaccept(f->f_so,
	    atomic_load_u32(&f->f_nonblock) ? MSG_DONTWAIT : 0, addr, len, &so);
	if (error == 0)
		socket_install(*fd, so, flags);
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
		return (real.accept4(fd, addr, len, flags));
	if ((flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0) {
		frele(f);
		return ((int)api_return(EINVAL, 0));
	}
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
		return (real.connect(fd, addr, len));
	api_enter();
	error = soconnect(f->f_so, addr, len,
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
		return (real.shutdown(fd, how));
	api_enter();
	error = soshutdown(f->f_so, how);
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
		return (real.getsockname(fd, addr, len));
	api_enter();
	error = sogetsockname(f->f_so, addr, len);
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
		return (real.getpeername(fd, addr, len));
	api_enter();
	error = sogetpeername(f->f_so, addr, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}

EXPORT int
getsockopt(int fd, int level, int name, void *restrict value,
    socklen_t *restrict len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.getsockopt(fd, level, name, value, len));
	api_enter();
	error = sogetopt(f->f_so, level, name, value, len);
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

	if (level != SOL_SOCKET || len < sizeof(*tv) ||
	    (name != SO_RCVTIMEO && name != SO_SNDTIMEO))
		return;
	bit = name == SO_RCVTIMEO ? FTIMEO_RCV : FTIMEO_SND;
	old = atomic_load_u32(&f->f_timeo) & ~bit;
	atomic_store_u32(&f->f_timeo,
	    tv->tv_sec != 0 || tv->tv_usec != 0 ? old | bit : old);
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct file *f = fget_type(fd, FT_SOCKET);
	int error;

	if (f == NULL)
		return (real.setsockopt(fd, level, name, value, len));
	api_enter();
	error = sosetopt(f->f_so, level, name, value, len);
	if (error == 0)
		note_timeout(f, level, name, value, len);
	frele(f);
	api_leave(error);
	return ((int)api_return(error, 0));
}
