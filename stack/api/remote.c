/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's connection to the server: its root, and a channel for each thread
 * that makes a call (remote.h).
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/remote_call.h"

/* This thread's channel. */
static _Thread_local struct {
	struct remote_call *call;	/* shared; NULL: no channel yet */
	int		 fd;
	int		 eventfd;
} self __attribute__((tls_model("initial-exec")));

static int root = -1;			/* [I] of a client: hidden */
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

int
remote_root(void)
{
	return (root);
}

void
remote_root_pair(int *ours, int *theirs)
{
	int pair[2] = { -1, -1 };

	(void)real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	*ours = fd_hidden_copy(pair[0]);
	*theirs = fd_hidden_copy(pair[1]);
}

static void
forget_channel(void)
{
	if (self.call != NULL)
		munmap(self.call, sizeof(*self.call));
	self.call = NULL;
}

/*
 * The forking thread's channel is the parent's, whose descriptors have been
 * closed here.
 */
void
remote_start(int fd)
{
	forget_channel();
	root = fd;
}

/*
 * System calls that are no cancellation points: a thread that is cancelled in
 * the middle of a request would leave its answer unread.
 */
static ssize_t
message(long call, int fd, struct msghdr *msg)
{
	ssize_t n;

	do
		n = real.syscall(call, fd, msg, MSG_NOSIGNAL |
		    MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	return (n);
}

ssize_t
rights_send(int fd, const struct iovec *iov, int n, const int *fds, int nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(RIGHTS_MAX *
	    sizeof(int))];
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)n
	};
	struct cmsghdr *cmsg;

	KASSERT(nfds <= RIGHTS_MAX, ("rights_send: %d descriptors", nfds));
	if (nfds > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, (size_t)nfds * sizeof(int));
	}
	return (message(SYS_sendmsg, fd, &msg));
}

ssize_t
rights_receive(int fd, const struct iovec *iov, int n, int *fds, int nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(RIGHTS_MAX *
	    sizeof(int))];
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)n,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int))
	};
	struct cmsghdr *cmsg;
	ssize_t len;

	for (int i = 0; i < nfds; i++)
		fds[i] = -1;
	len = message(SYS_recvmsg, fd, &msg);
	cmsg = len > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (nfds > 0 && cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	return (len);
}

/* The thread ends. */
static void
channel_exit(void *arg)
{
	(void)arg;
	if (self.call == NULL)
		return;
	fd_hidden_close(self.fd);
	fd_hidden_close(self.eventfd);
	forget_channel();
}

static void
exit_init(void)
{
	if (pthread_key_create(&exit_key, channel_exit) != 0)
		panic("libstack: no thread key left");
}

/* Hands the server its ends; returns an errno value. */
static int
channel_announce(int theirs, int memory)
{
	struct root_header header = { .rh_message = ROOT_CHANNEL };
	const struct iovec iov = { &header, sizeof(header) };
	const int fds[ROOT_FDS] = { theirs, memory, self.eventfd };

	return (rights_send(root, &iov, 1, fds, ROOT_FDS) == -1 ? ENETDOWN : 0);
}

static int
channel_map(int memory)
{
	void *p;

	if (real.ftruncate(memory, sizeof(*self.call)) != 0)
		return (errno);
	p = mmap(NULL, sizeof(*self.call), PROT_READ | PROT_WRITE, MAP_SHARED,
	    memory, 0);
	if (p == MAP_FAILED)
		return (errno);
	self.call = p;
	return (0);
}

/* Makes the channel's descriptors; returns an errno value. */
static int
channel_make(int *theirs, int *memory)
{
	int pair[2] = { -1, -1 }, error = 0;

	self.eventfd = fd_hidden_event();
	if (self.eventfd == -1)
		error = errno;
	fd_lockops->change();
	*memory = fd_hidden_copy(memfd_create("libstack", MFD_CLOEXEC));
	if (*memory == -1 || real.socketpair(AF_UNIX, SOCK_SEQPACKET |
	    SOCK_CLOEXEC, 0, pair) != 0)
		error = errno;
	self.fd = fd_hidden_copy(pair[0]);
	*theirs = fd_hidden_copy(pair[1]);
	fd_lockops->changed();
	return (error);
}

static int
channel_open(void)
{
	int theirs, memory, error;

	if (root == -1)
		return (ENETDOWN);
	pthread_once(&exit_once, exit_init);
	error = channel_make(&theirs, &memory);
	if (error == 0)
		error = channel_map(memory);
	if (error == 0)
		error = channel_announce(theirs, memory);
	fd_hidden_close(theirs);
	fd_hidden_close(memory);
	if (error != 0) {
		fd_hidden_close(self.fd);
		fd_hidden_close(self.eventfd);
		forget_channel();
	} else
		pthread_setspecific(exit_key, &self);
	return (error);
}

struct remote_call *
remote_begin(enum remote_request request, const struct file *f, int *error)
{
	*error = self.call == NULL ? channel_open() : 0;
	if (*error == ENETDOWN)
		api_explain();
	if (*error != 0)
		return (NULL);
	self.call->rc_request = request;
	self.call->rc_handle = f != NULL ? f->f_handle : 0;
	self.call->rc_namelen = 0;
	self.call->rc_controllen = 0;
	self.call->rc_len = 0;
	return (self.call);
}

/* Sends nfds descriptors and receives up to room; returns an errno value. */
static int
transact(struct remote_call *c, int *fds, int nfds, int room)
{
	char doorbell = 0;
	const struct iovec iov = { &doorbell, 1 };

	KASSERT(c == self.call, ("transact: another thread's call"));
	c->rc_error = 0;
	c->rc_again = REMOTE_DONE;
	c->rc_value = 0;
	if (rights_send(self.fd, &iov, 1, fds, nfds) != 1) {
		if (nfds > 0 && errno != EPIPE)
			return (errno);	/* closed meanwhile, or too many */
	} else if (rights_receive(self.fd, &iov, 1, fds, room) == 1)
		return (c->rc_error);
	api_explain();
	return (ENETDOWN);
}

int
remote_transact(struct remote_call *c, int fd)
{
	return (transact(c, &fd, fd != -1, 0));
}

int
remote_pass(struct remote_call *c, struct remote_rights *r)
{
	const int error = transact(c, r->fds, (int)r->n, RIGHTS_MAX);

	r->n = 0;	/* after an error fds may still be the caller's */
	while (error == 0 && r->n < RIGHTS_MAX && r->fds[r->n] != -1)
		r->n++;
	return (error);
}

int
remote_wait(const struct remote_call *c, nsec_t *deadline)
{
	struct pollfd fds[2] = {
		{ .fd = self.eventfd, .events = POLLIN },
		{ .fd = self.fd, .events = POLLIN }
	};
	int n;

	if (*deadline == 0 && c->rc_timeout == NSEC_FOREVER)
		*deadline = NSEC_FOREVER;
	else if (*deadline == 0)
		*deadline = mach_uptime() + c->rc_timeout;
	n = kernel_poll(fds, 2, *deadline, NULL);
	if (n == 0)
		return (EWOULDBLOCK);
	if (n < 0)
		return (errno);
	return (fds[1].revents != 0 ? ENETDOWN : 0);
}

int
remote_eventfd(void)
{
	int error;

	return (remote_begin(REMOTE_POLL, NULL, &error) != NULL ?
	    self.eventfd : -1);
}

/* A message with handles, and a descriptor or -1. */
static bool
send_handles(enum root_message message, const uint32_t *handles, unsigned n,
    int fd)
{
	struct root_header header = {
		.rh_message = message, .rh_handles = n
	};
	const struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (void *)(uintptr_t)handles, n * sizeof(*handles) }
	};

	return (root != -1 && rights_send(root, iov, 2, &fd, fd != -1) != -1);
}

bool
remote_fork(int new, const uint32_t *handles, unsigned n)
{
	char done;
	const struct iovec answer = { &done, 1 };

	return (send_handles(ROOT_FORK, handles, n, new) &&
	    rights_receive(root, &answer, 1, NULL, 0) == 1);
}

void
remote_keep(const uint32_t *handles, unsigned n)
{
	(void)send_handles(ROOT_KEEP, handles, n, -1);
}
