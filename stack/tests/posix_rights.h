/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors in messages of UNIX-domain sockets (SCM_RIGHTS). */
#ifndef TESTS_POSIX_RIGHTS_H
#define TESTS_POSIX_RIGHTS_H

#include "posix.h"

#define	FDS_MAX	253		/* in one message, unix(7) */

union control {
	char		 buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr	 align;
};

/* Puts n descriptors into a message. */
static inline void
put_fds(struct msghdr *msg, union control *control, const int *fds, unsigned n)
{
	struct cmsghdr *cm;

	msg->msg_control = control->buf;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	cm = CMSG_FIRSTHDR(msg);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cm), fds, n * sizeof(int));
}

/* Sends one byte with n descriptors; returns sendmsg()'s result. */
static inline ssize_t
send_fds(int to, const int *fds, unsigned n, int flags)
{
	struct iovec iov = { "x", 1 };
	union control control = { .buf = "" };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	put_fds(&msg, &control, fds, n);
	return (sendmsg(to, &msg, flags | MSG_NOSIGNAL));
}

/*
 * Receives up to len bytes and room descriptors; returns the number of
 * descriptors.
 */
static inline unsigned
receive_fds(int from, int *fds, unsigned room, int flags, int *got)
{
	char buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	union control control = { .buf = "" };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = room > 0 ? CMSG_LEN(room * sizeof(int)) : 0
	};
	struct cmsghdr *cm;
	unsigned n;

	CHECK(OK(recvmsg(from, &msg, flags)) > 0);
	*got = msg.msg_flags;
	cm = CMSG_FIRSTHDR(&msg);
	if (cm == NULL)
		return (0);
	CHECK_EQ(cm->cmsg_level, SOL_SOCKET);
	CHECK_EQ(cm->cmsg_type, SCM_RIGHTS);
	n = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	CHECK(n <= room);
	memcpy(fds, CMSG_DATA(cm), n * sizeof(int));
	return (n);
}

static inline int
receive_fd(int from)
{
	int fd = -1, flags;

	CHECK_EQ(receive_fds(from, &fd, 1, 0, &flags), 1);
	CHECK_EQ(flags & MSG_CTRUNC, 0);
	return (fd);
}

#endif /* TESTS_POSIX_RIGHTS_H */
