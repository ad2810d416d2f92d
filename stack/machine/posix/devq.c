/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues: the common part, and queues of a Linux TAP device
 * (Documentation/networking/tuntap.rst).  The device was created for this user
 * beforehand, or the caller may create it.
 */
#include "machine/posix/devq.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "machine/posix/host.h"

int
devq_create(size_t size, const struct devq_ops *ops, int fd,
    struct mach_devq **qp)
{
	struct mach_devq *q = NULL;

	if (fd < 0)
		return (errno);
	q = calloc(1, size);
	if (q == NULL) {
		host_close(fd);
		return (ENOMEM);
	}
	q->fd = fd;
	q->ops = ops;
	q->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (q->wakefd < 0) {
		int error = errno;

		mach_devq_close(q);
		return (error);
	}
	*qp = q;
	return (0);
}

int
devq_option(const struct mach_devq *q, int level, int name, const void *value,
    size_t len)
{
	return (host_call(SYS_setsockopt, q->fd, level, name, value, len) != 0 ?
	    errno : 0);
}

int
devq_ifindex(const char *ifname, int *index)
{
	struct ifreq ifr;
	int fd, error = 0;

	memset(&ifr, 0, sizeof(ifr));
	if (strlen(ifname) >= sizeof(ifr.ifr_name))
		return (ENAMETOOLONG);
	strcpy(ifr.ifr_name, ifname);
	/* Not every socket supports this request; UNIX-domain sockets do. */
	fd = (int)host_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || host_call(SYS_ioctl, fd, SIOCGIFINDEX, &ifr) != 0)
		error = errno;
	if (fd >= 0)
		host_close(fd);
	*index = ifr.ifr_ifindex;
	return (error);
}

void *
devq_map(size_t len, int fd, uint64_t offset)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_POPULATE |
	    (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd,
	    (off_t)offset);

	return (p == MAP_FAILED ? NULL : p);
}

static int
tap_setup(int fd, const char *ifname, bool multiqueue, unsigned offloads)
{
	struct ifreq ifr;
	int hdrlen = sizeof(struct virtio_net_hdr);

	memset(&ifr, 0, sizeof(ifr));
	if (strlen(ifname) >= sizeof(ifr.ifr_name))
		return (ENAMETOOLONG);
	strcpy(ifr.ifr_name, ifname);
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (multiqueue)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	if (host_call(SYS_ioctl, fd, TUNSETIFF, &ifr) != 0 ||
	    host_call(SYS_ioctl, fd, TUNSETVNETHDRSZ, &hdrlen) != 0 ||
	    host_call(SYS_ioctl, fd, TUNSETOFFLOAD, (unsigned long)offloads) != 0)
		return (errno);
	return (0);
}

/* A TAP device accepts one frame with each call. */
static int
tap_send(struct mach_devq *q, const struct mach_frame *frames, unsigned n)
{
	ssize_t len = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		len = host_writev(q->fd, frames[i].mf_iov,
		    (int)frames[i].mf_niov);
		if (len < 0)
			break;
	}
	return (i > 0 ? (int)i : (int)len);
}

static const struct devq_ops tap_ops = { .send = tap_send };

/*
 * A device created with several queues must be opened with that flag, and any
 * other without it; the kernel returns EINVAL otherwise.  For one queue both
 * are tried.
 */
int
mach_devq_open_tap(const char *ifname, bool multiqueue, unsigned offloads,
    struct mach_devq **qp)
{
	struct mach_devq *q = NULL;
	int error = devq_create(sizeof(*q), &tap_ops, open("/dev/net/tun",
	    O_RDWR | O_NONBLOCK | O_CLOEXEC), &q);

	if (error != 0)
		return (error);
	error = tap_setup(q->fd, ifname, true, offloads);
	if (error == EINVAL && !multiqueue)
		error = tap_setup(q->fd, ifname, false, offloads);
	if (error != 0)
		mach_devq_close(q);
	else
		*qp = q;
	return (error);
}

void
mach_devq_close(struct mach_devq *q)
{
	if (q->ops->close != NULL)
		q->ops->close(q);
	host_close(q->fd);
	if (q->wakefd >= 0)
		host_close(q->wakefd);
	free(q);
}

ssize_t
mach_devq_readv(struct mach_devq *q, const struct iovec *iov, int n)
{
	return (host_readv(q->fd, iov, n));
}

int
mach_devq_send(struct mach_devq *q, const struct mach_frame *frames,
    unsigned n)
{
	return (q->ops->send(q, frames, n));
}

int
mach_devq_peek(struct mach_devq *q, struct mach_slot *slot)
{
	return (q->ops->peek(q, slot));
}

void
mach_devq_release(struct mach_devq *q)
{
	q->ops->release(q);
}

void
mach_devq_prefetch(struct mach_devq *q)
{
	q->ops->prefetch(q);
}

int
mach_devq_wait(struct mach_devq *q, nsec_t deadline)
{
	struct pollfd fds[2] = {
		{ .fd = q->fd, .events = POLLIN },
		{ .fd = q->wakefd, .events = POLLIN },
	};
	struct timespec ts, *tsp = NULL;

	if (q->ops->before_wait != NULL)
		q->ops->before_wait(q);
	if (deadline != NSEC_FOREVER) {
		nsec_t now = mach_uptime();
		nsec_t left = deadline > now ? deadline - now : 0;

		ts.tv_sec = (time_t)(left / NSEC_PER_SEC);
		ts.tv_nsec = (long)(left % NSEC_PER_SEC);
		tsp = &ts;
	}
	switch (host_poll(fds, 2, tsp)) {
	case -1:
		return (EINTR);
	case 0:
		return (ETIMEDOUT);
	default:
		return (fds[1].revents != 0 ? EINTR : 0);
	}
}

/* Stays readable: every later wait returns at once. */
void
mach_devq_wake(struct mach_devq *q)
{
	uint64_t one = 1;

	/* May fail on a full counter, which is readable, too. */
	host_writev(q->wakefd, &(struct iovec){ &one, sizeof(one) }, 1);
}
