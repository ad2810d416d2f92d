/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors in messages of the stack's UNIX-domain sockets (SCM_RIGHTS), sent
 * and received by a client (remote.h).
 *
 * The control message in a request, or in its answer, has numbers in their
 * place: a socket's handle, or KERNEL_RIGHT(i) for the i-th of the kernel's
 * descriptors that travel with the byte which announces the page.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/remote_call.h"
#include "api/server.h"

#define	KERNEL_RIGHT(i)	(-2 - (i))	/* -1 is no descriptor */

/* The next SCM_RIGHTS after cm; NULL: none, or a malformed message. */
static struct cmsghdr *
next_rights(const struct msghdr *msg, const struct cmsghdr *cm)
{
	int error;

	while ((cm = socontrol_next(msg, cm, &error)) != NULL)
		if (cm->cmsg_level == SOL_SOCKET &&
		    cm->cmsg_type == SCM_RIGHTS)
			break;
	return ((struct cmsghdr *)(uintptr_t)cm);
}

static unsigned
rights_count(const struct cmsghdr *cm)
{
	return ((unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int)));
}

/*
 * The client.
 */

/* Stores the number of a descriptor; returns an errno value. */
static int
number_of(int fd, struct remote_rights *r, int *number)
{
	struct file *f = fget_type(fd, FT_SOCKET);

	if (f != NULL) {
		*number = (int)f->f_handle;
		frele(f);
		return (0);
	}
	f = fget(fd);
	if (f != NULL)		/* an epoll set, which is the kernel's, too */
		frele(f);
	else if (fd_known(fd) || real.fcntl(fd, F_GETFD) == -1)
		return (EBADF);
	if (r->n == RIGHTS_MAX)
		return (EINVAL);
	*number = KERNEL_RIGHT((int)r->n);
	r->fds[r->n++] = fd;
	return (0);
}

int
rights_request(struct remote_call *c, struct remote_rights *r)
{
	const struct msghdr msg = { .msg_control = c->rc_control,
	    .msg_controllen = c->rc_controllen };
	struct cmsghdr *cm = NULL;
	int error = 0, number;

	r->n = 0;
	while (error == 0 && (cm = next_rights(&msg, cm)) != NULL)
		for (unsigned i = 0; i < rights_count(cm) && error == 0; i++) {
			unsigned char *at = CMSG_DATA(cm) + i * sizeof(number);

			memcpy(&number, at, sizeof(number));
			error = number_of(number, r, &number);
			memcpy(at, &number, sizeof(number));
		}
	return (error);
}

/* A descriptor for a number of the answer, or -1. */
static int
install(const struct remote_rights *r, int number, uint64_t inode, bool cloexec)
{
	struct file *f;
	int fd;

	if (number <= KERNEL_RIGHT(0)) {
		const unsigned i = (unsigned)(KERNEL_RIGHT(0) - number);

		if (i >= r->n)
			return (-1);
		if (!cloexec)
			(void)real.fcntl(r->fds[i], F_SETFD, 0);
		return (r->fds[i]);
	}
	f = file_new(FT_SOCKET);
	f->f_handle = (uint32_t)number;
	f->f_inode = inode;
	fd = fd_reserve();
	if (fd == -1)
		file_close(f);
	else
		fd_install(fd, f, cloexec);
	return (fd);
}

bool
rights_answered(const struct remote_call *c)
{
	const struct msghdr msg = { .msg_control = (char *)(uintptr_t)
	    c->rc_control, .msg_controllen = c->rc_controllen };

	return (next_rights(&msg, NULL) != NULL);
}

/*
 * The page may be used for another request meanwhile.  Descriptors for which
 * there is no number are closed, and the message is shorter.
 */
void
rights_install(struct msghdr *msg, const struct remote_call *c,
    const struct remote_rights *r, bool cloexec)
{
	struct cmsghdr *cm = next_rights(msg, NULL);
	const unsigned n = cm != NULL ? rights_count(cm) : 0;
	uint64_t inodes[RIGHTS_MAX];
	unsigned open = 0;
	int number;

	if (n == 0 || n > RIGHTS_MAX)
		return;
	memcpy(inodes, c->rc_inodes, n * sizeof(*inodes));
	for (unsigned i = 0; i < n; i++) {
		memcpy(&number, CMSG_DATA(cm) + i * sizeof(number),
		    sizeof(number));
		number = install(r, number, inodes[i], cloexec);
		if (number == -1)
			continue;
		memcpy(CMSG_DATA(cm) + open++ * sizeof(number), &number,
		    sizeof(number));
	}
	if (open == n)
		return;
	msg->msg_flags |= MSG_CTRUNC;
	msg->msg_controllen = (size_t)((char *)cm - (char *)msg->msg_control) +
	    (open > 0 ? CMSG_SPACE(open * sizeof(int)) : 0);
	cm->cmsg_len = CMSG_LEN(open * sizeof(int));
}

/*
 * The server: while its thread moves data for a client, the numbers in messages
 * are those of the client (passed.c).
 */
static _Thread_local struct channel *serving
    __attribute__((tls_model("initial-exec")));

void
rights_serve(struct channel *ch)
{
	serving = ch;
}

bool
rights_remote(void)
{
	return (serving != NULL);
}

int
right_get(int number, void **file)
{
	struct file *f;
	bool open;

	if (number <= KERNEL_RIGHT(0)) {
		const int fd = channel_take(serving,
		    (unsigned)(KERNEL_RIGHT(0) - number));

		if (fd == -1)
			return (EBADF);
		f = file_new(FT_KERNEL);
		f->f_kernel = fd;
		*file = f;
		return (0);
	}
	f = client_file(serving->ch_client, (uint32_t)number);
	if (f == NULL)
		return (EBADF);
	open = f->f_type == FT_SOCKET && file_hold(f);
	frele(f);
	*file = f;
	return (open ? 0 : EBADF);
}

int
right_put(void *file)
{
	struct file *f = file;
	uint64_t *inode;

	if (f->f_type == FT_EPOLL || serving->ch_nnumbers == RIGHTS_MAX)
		return (-1);
	inode = &serving->ch_call->rc_inodes[serving->ch_nnumbers];
	if (f->f_type == FT_KERNEL) {
		fd_lockops->change();
		serving->ch_answer[serving->ch_nanswer] = fd_hidden_copy(
		    real.fcntl(f->f_kernel, F_DUPFD_CLOEXEC, 0));
		fd_lockops->changed();
		if (serving->ch_answer[serving->ch_nanswer] == -1)
			return (-1);
		serving->ch_nnumbers++;
		return (KERNEL_RIGHT((int)serving->ch_nanswer++));
	}
	if (!file_hold(f))
		return (-1);
	*inode = file_inode(f);
	serving->ch_nnumbers++;
	return ((int)client_add(serving->ch_client, f));
}
