/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of the stack in messages of the kernel's UNIX-domain sockets
 * (SCM_RIGHTS).
 *
 * The kernel cannot pass a file of the stack.  The message gets a ticket
 * instead: one end of a pair of kernel sockets.  The other end is the root of a
 * client that has this file only (server.h), so that the file stays open until
 * the message has been received or discarded.  The receiver, which may be
 * another process of the program, finds the ticket's number in the name of the
 * other end, and exchanges the ticket for the file.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/server.h"
#include "api/ticket.h"
#include "kern/file.h"

/* An abstract name, unix(7). */
static socklen_t
ticket_name(struct sockaddr_un *un, uint32_t number)
{
	int n;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
	    "libstack.%d.%u", (int)api_owner, number);
	return ((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	    (size_t)n));
}

int
ticket_bind(int fd, uint32_t number)
{
	struct sockaddr_un un;
	const socklen_t len = ticket_name(&un, number);

	return (real.bind(fd, (struct sockaddr *)&un, len) == 0 ? 0 : errno);
}

/* 0: it is no ticket of this stack. */
static uint32_t
ticket_number(int fd)
{
	struct sockaddr_un un, wanted;
	socklen_t len = sizeof(un);
	const char *dot;
	uint32_t number;

	memset(&un, 0, sizeof(un));
	if (real.getpeername(fd, (struct sockaddr *)&un, &len) != 0 ||
	    un.sun_family != AF_UNIX || len >= sizeof(un) ||
	    len <= offsetof(struct sockaddr_un, sun_path) + 1)
		return (0);
	dot = strrchr(un.sun_path + 1, '.');
	number = dot != NULL ? (uint32_t)strtoul(dot + 1, NULL, 10) : 0;
	return (ticket_name(&wanted, number) == len &&
	    memcmp(&un, &wanted, len) == 0 ? number : 0);
}

/* Stores a hidden descriptor, the ticket; returns an errno value. */
static int
ticket_make(struct file *f, int *ticket)
{
	int root, error;

	fd_lockops->change();
	remote_root_pair(&root, ticket);
	fd_lockops->changed();
	if (root == -1 || *ticket == -1) {
		fd_hidden_close(root);
		error = EMFILE;
	} else if (api_state() == API_UP)
		error = server_ticket(root, f);
	else {
		error = remote_ticket(f, root);
		fd_hidden_close(root);
	}
	if (error != 0)
		fd_hidden_close(*ticket);
	return (error);
}

/* The descriptors in a control message; 0: it has none. */
static size_t
rights_count(const struct cmsghdr *cmsg)
{
	if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
	    cmsg->cmsg_len < CMSG_LEN(0))
		return (0);
	return ((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static int
rights_get(const struct cmsghdr *cmsg, size_t i)
{
	int fd;

	memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
	return (fd);
}

bool
ticket_needed(const struct msghdr *msg)
{
	if (address_bad(msg) || address_bad(msg->msg_control) ||
	    !api_own_process())
		return (false);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
	    c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c))
		for (size_t i = 0; i < rights_count(c); i++)
			if (fd_ours(rights_get(c, i)))
				return (true);
	return (false);
}

struct tickets {
	int		 fds[RIGHTS_MAX];	/* hidden */
	size_t		 n;
};

/* Replaces the sockets of one control message; returns an errno value. */
static int
replace_rights(struct cmsghdr *cmsg, struct tickets *tickets)
{
	for (size_t i = 0; i < rights_count(cmsg); i++) {
		const int fd = rights_get(cmsg, i);
		struct file *f = fget_type(fd, FT_SOCKET);
		int error;

		if (f == NULL)
			continue;	/* the kernel's, or closed: EBADF */
		if (tickets->n == RIGHTS_MAX)
			error = EINVAL;
		else
			error = ticket_make(f, &tickets->fds[tickets->n]);
		frele(f);
		if (error != 0)
			return (error);
		memcpy(CMSG_DATA(cmsg) + i * sizeof(int),
		    &tickets->fds[tickets->n++], sizeof(int));
	}
	return (0);
}

static void
tickets_close(const struct tickets *tickets)
{
	for (size_t i = 0; i < tickets->n; i++)
		fd_hidden_close(tickets->fds[i]);
}

ssize_t
ticket_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct tickets tickets = { .n = 0 };
	struct msghdr copy = *msg;
	ssize_t len = -1;
	int error = 0;

	api_enter();
	copy.msg_control = kmalloc(msg->msg_controllen);
	memcpy(copy.msg_control, msg->msg_control, msg->msg_controllen);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c != NULL && error == 0;
	    c = CMSG_NXTHDR(&copy, c))
		error = replace_rights(c, &tickets);
	api_leave(0);
	if (error == 0) {	/* it may wait, and a signal may end it */
		len = real.sendmsg(fd, &copy, flags);
		error = len == -1 ? errno : 0;
	}
	api_enter();
	tickets_close(&tickets);
	kfree(copy.msg_control);
	api_leave(0);
	return (api_return(error, len));
}

static void
ticket_exchange(int fd, bool cloexec)
{
	const uint32_t number = ticket_number(fd);
	struct file *f = NULL;
	int error;

	if (number == 0 || fd >= API_MAXFD)
		return;
	error = api_state() == API_UP ? server_exchange(number, &f) :
	    remote_exchange(number, &f);
	if (error == 0)
		fd_convert(fd, f, cloexec);
}

void
ticket_received(struct msghdr *msg, int flags)
{
	if (msg->msg_control == NULL || msg->msg_controllen == 0 ||
	    !api_own_process())
		return;
	api_enter();
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
	    c = CMSG_NXTHDR(msg, c))
		for (size_t i = 0; i < rights_count(c); i++)
			ticket_exchange(rights_get(c, i),
			    (flags & MSG_CMSG_CLOEXEC) != 0);
	api_leave(0);
}
