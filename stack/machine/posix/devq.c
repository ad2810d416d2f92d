/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues: queues of a Linux TAP device (Documentation/networking/
 * tuntap.rst), which was made for this user beforehand, or which the caller
 * may make; and packet sockets (packet(7)).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

struct mach_devq {
	int	 fd;
	int	 wakefd;	/* eventfd that interrupts a waiter */
};

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
	if (syscall(SYS_ioctl, fd, TUNSETIFF, &ifr) != 0 ||
	    syscall(SYS_ioctl, fd, TUNSETVNETHDRSZ, &hdrlen) != 0 ||
	    syscall(SYS_ioctl, fd, TUNSETOFFLOAD, (unsigned long)offloads) != 0)
		return (errno);
	return (0);
}

/*
 * A device made with several queues must be opened so, and one made
 * without must not: the kernel says EINVAL, so both are tried for one queue.
 */
int
mach_devq_open_tap(const char *ifname, bool multiqueue, unsigned offloads,
    struct mach_devq **qp)
{
	struct mach_devq *q = calloc(1, sizeof(*q));
	int error = 0;

	if (q == NULL)
		return (ENOMEM);
	q->wakefd = -1;
	q->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (q->fd >= 0)
		error = tap_setup(q->fd, ifname, true, offloads);
	if (q->fd >= 0 && error == EINVAL && !multiqueue)
		error = tap_setup(q->fd, ifname, false, offloads);
	if (q->fd >= 0 && error == 0)
		q->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (error == 0 && (q->fd < 0 || q->wakefd < 0))
		error = errno;
	if (error != 0) {
		mach_devq_close(q);
		return (error);
	}
	*qp = q;
	return (0);
}

/* packet(7); the interface receives whatever address frames are for. */
static int
packet_setup(int fd, const char *ifname, unsigned group)
{
	int on = 1, fanout = (int)(group | PACKET_FANOUT_HASH << 16);
	struct packet_mreq mreq = { .mr_type = PACKET_MR_PROMISC };
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	strcpy(ifr.ifr_name, ifname);
	if (syscall(SYS_ioctl, fd, SIOCGIFINDEX, &ifr) != 0)
		return (errno);
	sll.sll_ifindex = mreq.mr_ifindex = ifr.ifr_ifindex;
	if (syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_VNET_HDR, &on,
	    sizeof(on)) != 0 ||
	    syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_IGNORE_OUTGOING,
	    &on, sizeof(on)) != 0 ||
	    syscall(SYS_bind, fd, &sll, sizeof(sll)) != 0 ||
	    syscall(SYS_setsockopt, fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP,
	    &mreq, sizeof(mreq)) != 0)
		return (errno);
	if (group != 0 && syscall(SYS_setsockopt, fd, SOL_PACKET,
	    PACKET_FANOUT, &fanout, sizeof(fanout)) != 0)
		return (errno);
	return (0);
}

int
mach_devq_open_packet(const char *ifname, unsigned group,
    struct mach_devq **qp)
{
	struct mach_devq *q = calloc(1, sizeof(*q));
	int error = 0;

	if (q == NULL)
		return (ENOMEM);
	q->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	q->fd = (int)syscall(SYS_socket, AF_PACKET,
	    SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (q->fd < 0 || q->wakefd < 0)
		error = errno;
	else
		error = packet_setup(q->fd, ifname, group);
	if (error != 0) {
		mach_devq_close(q);
		return (error);
	}
	*qp = q;
	return (0);
}

void
mach_devq_close(struct mach_devq *q)
{
	if (q->fd >= 0)
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

ssize_t
mach_devq_writev(struct mach_devq *q, const struct iovec *iov, int n)
{
	return (host_writev(q->fd, iov, n));
}

int
mach_devq_wait(struct mach_devq *q, nsec_t deadline)
{
	struct pollfd fds[2] = {
		{ .fd = q->fd, .events = POLLIN },
		{ .fd = q->wakefd, .events = POLLIN },
	};
	struct timespec ts, *tsp = NULL;

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

	/* May fail on a full counter, which is as loud. */
	host_writev(q->wakefd, &(struct iovec){ &one, sizeof(one) }, 1);
}
