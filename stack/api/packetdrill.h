/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of packetdrill for a network stack in a shared object
 * (--so_filename).  packetdrill calls packetdrill_interface_init() with the
 * text of --so_flags and this table to fill.  Each function gets userdata
 * first and is otherwise the POSIX or Linux call of its name.  Order and types
 * are packetdrill's.
 */
#ifndef API_PACKETDRILL_H
#define API_PACKETDRILL_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

struct packetdrill_interface {
	void	*userdata;
	void	(*free)(void *);
	int	(*socket)(void *, int, int, int);
	int	(*bind)(void *, int, const struct sockaddr *, socklen_t);
	int	(*listen)(void *, int, int);
	int	(*accept)(void *, int, struct sockaddr *, socklen_t *);
	int	(*connect)(void *, int, const struct sockaddr *, socklen_t);
	ssize_t	(*read)(void *, int, void *, size_t);
	ssize_t	(*readv)(void *, int, const struct iovec *, int);
	ssize_t	(*recv)(void *, int, void *, size_t, int);
	ssize_t	(*recvfrom)(void *, int, void *, size_t, int,
		    struct sockaddr *, socklen_t *);
	ssize_t	(*recvmsg)(void *, int, struct msghdr *, int);
	ssize_t	(*write)(void *, int, const void *, size_t);
	ssize_t	(*writev)(void *, int, const struct iovec *, int);
	ssize_t	(*send)(void *, int, const void *, size_t, int);
	ssize_t	(*sendto)(void *, int, const void *, size_t, int,
		    const struct sockaddr *, socklen_t);
	ssize_t	(*sendmsg)(void *, int, const struct msghdr *, int);
	int	(*fcntl)(void *, int, int, ...);
	int	(*ioctl)(void *, int, unsigned long, ...);
	int	(*close)(void *, int);
	int	(*shutdown)(void *, int, int);
	int	(*getsockopt)(void *, int, int, int, void *, socklen_t *);
	int	(*setsockopt)(void *, int, int, int, const void *, socklen_t);
	int	(*poll)(void *, struct pollfd *, nfds_t, int);
	/* Receives an IP packet. */
	int	(*netdev_send)(void *, const void *, size_t);
	/*
	 * Returns the next sent packet, its length (0: none) and its time in
	 * usec.
	 */
	int	(*netdev_receive)(void *, void *, size_t *, long long *);
	int	(*usleep)(void *, useconds_t);
	int	(*gettimeofday)(void *, struct timeval *, struct timezone *);
	int	(*epoll_create)(void *, int);
	int	(*epoll_ctl)(void *, int, int, int, struct epoll_event *);
	int	(*epoll_wait)(void *, int, struct epoll_event *, int, int);
	int	(*pipe)(void *, int[2]);
	int	(*splice)(void *, int, off_t *, int, off_t *, size_t, unsigned);
};

void	 packetdrill_interface_init(const char *flags,
	    struct packetdrill_interface *);
/* Sets how long netdev_receive waits; packetdrill does not know this one. */
void	 packetdrill_interface_patience(long long usecs);

#endif /* API_PACKETDRILL_H */
