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

struct mach_ctl {
	int	 fd;
	int	 wakefd;
	char	 path[108];
};

/* True if a server answers: the file is not stale. */
static bool
in_use(const struct sockaddr_un *sun)
{
	long fd = host_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool used;

	if (fd < 0)
		return (false);
	used = host_call(SYS_connect, fd, sun, sizeof(*sun)) == 0;
	host_close((int)fd);
	return (used);
}

/* Removes only the socket of a stack that has ended. */
static int
remove_leftover(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return (errno == ENOENT ? 0 : errno);
	if (!S_ISSOCK(st.st_mode))
		return (ENOTSOCK);
	return (unlink(path) == 0 ? 0 : errno);
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
	error = remove_leftover(path);
	if (error != 0)
		return (error);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return (ENOMEM);
	strcpy(c->path, path);
	c->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->fd = (int)host_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mask = umask(0177);
	if (c->fd < 0 || c->wakefd < 0 ||
	    host_call(SYS_bind, c->fd, &sun, sizeof(sun)) != 0 ||
	    host_call(SYS_listen, c->fd, 8) != 0)
		error = errno;
	umask(mask);
	if (error != 0)
		mach_ctl_close(c);
	else
		*cp = c;
	return (error);
}

/*
 * Returns 0 when the client is readable or writable, ETIMEDOUT at the
 * deadline.
 */
static int
wait_until(int fd, short events, nsec_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	nsec_t now;
	int n;

	do {
		struct timespec ts;

		now = mach_uptime();
		if (now >= deadline)
			return (ETIMEDOUT);
		ts.tv_sec = (time_t)((deadline - now) / NSEC_PER_SEC);
		ts.tv_nsec = (long)((deadline - now) % NSEC_PER_SEC);
		n = host_poll(&pfd, 1, &ts);
	} while (n < 0 && errno == EINTR);
	return (n > 0 ? 0 : ETIMEDOUT);
}

int
mach_ctl_accept(struct mach_ctl *c)
{
	struct pollfd fds[2] = {
		{ .fd = c->fd, .events = POLLIN },
		{ .fd = c->wakefd, .events = POLLIN },
	};
	long fd;

	while (host_poll(fds, 2, NULL) < 0 && errno == EINTR)
		continue;
	if (fds[1].revents != 0)
		return (-ECANCELED);
	fd = host_call(SYS_accept4, c->fd, NULL, NULL, SOCK_CLOEXEC);
	return (fd >= 0 ? (int)fd : -errno);
}

ssize_t
mach_ctl_read(int handle, void *buf, size_t len, nsec_t deadline)
{
	int error = wait_until(handle, POLLIN, deadline);
	long n;

	if (error != 0)
		return (-error);
	n = host_call(SYS_read, handle, buf, len);
	return (n >= 0 ? n : -errno);
}

/* MSG_NOSIGNAL: a closed connection must not kill the program. */
ssize_t
mach_ctl_write(int handle, const void *buf, size_t len, nsec_t deadline)
{
	int error = wait_until(handle, POLLOUT, deadline);
	long n;

	if (error != 0)
		return (-error);
	n = host_call(SYS_sendto, handle, buf, len,
	    MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0L);
	return (n >= 0 ? n : -errno);
}

/* A child of fork() may have a copy, so closing alone does not end it. */
void
mach_ctl_hangup(int handle)
{
	(void)host_call(SYS_shutdown, handle, SHUT_RDWR);
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
