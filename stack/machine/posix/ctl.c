/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket's transport: a UNIX stream socket, mode 0600.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

#define	CLIENT_TIMEOUT_MS	2000	/* a silent client blocks nobody long */

struct mach_ctl {
	int	 fd;
	int	 wakefd;
	char	 path[108];
};

/* True if somebody answers there: the file is not a left-over. */
static bool
in_use(const struct sockaddr_un *sun)
{
	long fd = syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool used;

	if (fd < 0)
		return (false);
	used = syscall(SYS_connect, fd, sun, sizeof(*sun)) == 0;
	host_close((int)fd);
	return (used);
}

int
mach_ctl_listen(const char *path, struct mach_ctl **cp)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct mach_ctl *c;
	mode_t mask;
	int error = 0;

	if (strlen(path) >= sizeof(sun.sun_path))
		return (ENAMETOOLONG);
	strcpy(sun.sun_path, path);
	if (in_use(&sun))
		return (EADDRINUSE);
	unlink(path);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return (ENOMEM);
	strcpy(c->path, path);
	c->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mask = umask(0177);
	if (c->fd < 0 || c->wakefd < 0 ||
	    syscall(SYS_bind, c->fd, &sun, sizeof(sun)) != 0 ||
	    syscall(SYS_listen, c->fd, 8) != 0)
		error = errno;
	umask(mask);
	if (error != 0)
		mach_ctl_close(c);
	else
		*cp = c;
	return (error);
}

static int
wait_readable(int fd, int other, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = POLLIN }, { .fd = other, .events = POLLIN },
	};
	struct timespec ts = { .tv_sec = timeout_ms / 1000,
	    .tv_nsec = timeout_ms % 1000 * 1000000L };
	int n;

	do
		n = host_poll(fds, other >= 0 ? 2 : 1,
		    timeout_ms < 0 ? NULL : &ts);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return (ETIMEDOUT);
	return (fds[1].revents != 0 ? ECANCELED : 0);
}

int
mach_ctl_accept(struct mach_ctl *c)
{
	long fd;

	if (wait_readable(c->fd, c->wakefd, -1) == ECANCELED)
		return (-ECANCELED);
	fd = syscall(SYS_accept4, c->fd, NULL, NULL, SOCK_CLOEXEC);
	return (fd >= 0 ? (int)fd : -errno);
}

ssize_t
mach_ctl_read(int handle, void *buf, size_t len)
{
	long n;

	if (wait_readable(handle, -1, CLIENT_TIMEOUT_MS) != 0)
		return (-ETIMEDOUT);
	n = syscall(SYS_read, handle, buf, len);
	return (n >= 0 ? n : -errno);
}

/* MSG_NOSIGNAL: a client that left must not kill the program. */
ssize_t
mach_ctl_write(int handle, const void *buf, size_t len)
{
	long n = syscall(SYS_sendto, handle, buf, len, MSG_NOSIGNAL, NULL, 0L);

	return (n >= 0 ? n : -errno);
}

void
mach_ctl_hangup(int handle)
{
	host_close(handle);
}

void
mach_ctl_wake(struct mach_ctl *c)
{
	uint64_t one = 1;

	host_writev(c->wakefd, &(struct iovec){ &one, sizeof(one) }, 1);
}

void
mach_ctl_close(struct mach_ctl *c)
{
	if (c->fd >= 0) {
		host_close(c->fd);
		unlink(c->path);
	}
	if (c->wakefd >= 0)
		host_close(c->wakefd);
	free(c);
}
