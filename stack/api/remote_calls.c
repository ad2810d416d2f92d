/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a client: each fills in a request, and copies its answer.
 */
#include <limits.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/uio.h>

#include "api/remote_call.h"

/* A new file of the answer. */
static struct file *
new_file(enum file_type type, const struct remote_call *c, unsigned i)
{
	struct file *f = file_new(type);

	f->f_handle = c->rc_new[i];
	f->f_inode = c->rc_inode[i];
	return (f);
}

static void
set_args(struct remote_call *c, int a, int b, int d)
{
	c->rc_arg[0] = a;
	c->rc_arg[1] = b;
	c->rc_arg[2] = d;
}

static int
put_name(struct remote_call *c, const void *name, socklen_t len)
{
	if (len > sizeof(c->rc_name))
		return (EINVAL);
	if (name == NULL && len > 0)
		return (EFAULT);
	if (len > 0)
		memcpy(&c->rc_name, name, len);
	c->rc_namelen = len;
	return (0);
}

/* As a kernel, stores what fits and the whole length. */
static void
get_name(const struct remote_call *c, struct sockaddr *name, socklen_t *len)
{
	const socklen_t whole = c->rc_namelen;

	if (name == NULL || len == NULL)
		return;
	memcpy(name, &c->rc_name, whole < *len ? whole : *len);
	*len = whole;
}

int
remote_socket(int domain, int type, int protocol, struct file **f)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_SOCKET, NULL, &error);

	if (c == NULL)
		return (error);
	set_args(c, domain, type, protocol);
	error = remote_transact(c, -1);
	if (error == 0)
		*f = new_file(FT_SOCKET, c, 0);
	return (error);
}

int
remote_socketpair(int domain, int type, int protocol, struct file *pair[2])
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_SOCKETPAIR, NULL, &error);

	if (c == NULL)
		return (error);
	set_args(c, domain, type, protocol);
	error = remote_transact(c, -1);
	for (unsigned i = 0; i < 2 && error == 0; i++)
		pair[i] = new_file(FT_SOCKET, c, i);
	return (error);
}

/* A request whose arguments are a number and a name. */
static int
call_name(enum remote_request request, struct file *f, int arg,
    const struct sockaddr *name, socklen_t len)
{
	int error;
	struct remote_call *c = remote_begin(request, f, &error);

	if (c == NULL || (error = put_name(c, name, len)) != 0)
		return (error);
	set_args(c, arg, 0, 0);
	return (remote_transact(c, -1));
}

int
remote_bind(struct file *f, const struct sockaddr *name, socklen_t len)
{
	return (call_name(REMOTE_BIND, f, 0, name, len));
}

int
remote_listen(struct file *f, int backlog)
{
	return (call_name(REMOTE_LISTEN, f, backlog, NULL, 0));
}

int
remote_shutdown(struct file *f, int how)
{
	return (call_name(REMOTE_SHUTDOWN, f, how, NULL, 0));
}

/* Remembers a timeout: such calls are not restarted after a signal. */
static void
note_timeout(struct file *f, const struct remote_call *c, uint32_t bit)
{
	if (c->rc_again)
		atomic_store_u32(&f->f_timeo,
		    c->rc_timeout != NSEC_FOREVER ? bit : 0);
}

/* Repeats a request that has no data until it need not wait. */
static int
transact_waiting(struct remote_call *c)
{
	nsec_t deadline = 0;
	int error;

	do
		error = remote_transact(c, -1);
	while (error == 0 && c->rc_again &&
	    (error = remote_wait(c, &deadline)) == 0);
	return (error);
}

int
remote_accept(struct file *f, struct sockaddr *name, socklen_t *len, int flags,
    struct file **new)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_ACCEPT, f, &error);

	if (c == NULL)
		return (error);
	set_args(c, flags, 0, 0);
	error = transact_waiting(c);
	note_timeout(f, c, FTIMEO_RCV);
	if (error != 0)
		return (error);
	*new = new_file(FT_SOCKET, c, 0);
	get_name(c, name, len);
	return (0);
}

/* The first request begins the attempt, the second one waits for its end. */
int
remote_connect(struct file *f, const struct sockaddr *name, socklen_t len)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_CONNECT, f, &error);

	if (c == NULL || (error = put_name(c, name, len)) != 0)
		return (error);
	error = remote_transact(c, -1);
	if (error != 0 || !c->rc_again)
		return (error);
	c = remote_begin(REMOTE_CONNECTED, f, &error);
	if (c != NULL)
		error = transact_waiting(c);
	return (error == EWOULDBLOCK ? EINPROGRESS : error);
}

static int
get_address(enum remote_request request, struct file *f,
    struct sockaddr *name, socklen_t *len)
{
	int error;
	struct remote_call *c = remote_begin(request, f, &error);

	if (c == NULL)
		return (error);
	if (len == NULL || (name == NULL && *len > 0))
		return (EINVAL);
	error = remote_transact(c, -1);
	if (error == 0)
		get_name(c, name, len);
	return (error);
}

int
remote_sockname(struct file *f, struct sockaddr *name, socklen_t *len)
{
	return (get_address(REMOTE_SOCKNAME, f, name, len));
}

int
remote_peername(struct file *f, struct sockaddr *name, socklen_t *len)
{
	return (get_address(REMOTE_PEERNAME, f, name, len));
}

static bool
is_filter(int level, int name)
{
	return (level == SOL_SOCKET && name == SO_ATTACH_FILTER);
}

int
remote_getopt(struct file *f, int level, int name, void *value, socklen_t *len)
{
	/* SO_GET_FILTER counts instructions */
	const size_t unit = is_filter(level, name) ?
	    sizeof(struct sock_filter) : 1;
	int error;
	struct remote_call *c = remote_begin(REMOTE_GETOPT, f, &error);

	if (c == NULL)
		return (error);
	set_args(c, level, name, len == NULL);
	c->rc_len = len == NULL ? 0 : *len;
	if (c->rc_len <= INT_MAX && c->rc_len > REMOTE_DATA / unit)
		c->rc_len = (uint32_t)(REMOTE_DATA / unit);
	if (value != NULL && unit == 1 && c->rc_len <= REMOTE_DATA)
		memcpy(c->rc_data, value, c->rc_len);
	error = remote_transact(c, -1);
	if (error != 0 || len == NULL)
		return (error != 0 ? error : EFAULT);
	if (value == NULL && c->rc_len > 0)
		return (EFAULT);
	if (value != NULL)
		memcpy(value, c->rc_data, unit *
		    (c->rc_len < *len ? c->rc_len : *len));
	*len = c->rc_len;
	return (0);
}

int
remote_setopt(struct file *f, int level, int name, const void *value,
    socklen_t len)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_SETOPT, f, &error);
	struct sock_fprog prog;
	bool filter = is_filter(level, name) && len == sizeof(prog);

	if (c == NULL)
		return (error);
	if (filter && value != NULL) {	/* its instructions are sent */
		memcpy(&prog, value, sizeof(prog));
		value = prog.filter;
		len = (socklen_t)(prog.len * sizeof(*prog.filter));
	}
	if (len > REMOTE_DATA)
		return (EINVAL);
	set_args(c, level, name, value == NULL ? REMOTE_NO_VALUE :
	    filter ? REMOTE_FILTER : REMOTE_VALUE);
	c->rc_len = len;
	if (len > 0 && value != NULL)
		memcpy(c->rc_data, value, len);
	return (remote_transact(c, -1));
}

static size_t
iov_length(const struct msghdr *msg)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return (len);
}

/* Copies len bytes between a buffer and msg's from offset on. */
static void
iov_copy(const struct msghdr *msg, size_t offset, char *buf, size_t len,
    bool to_msg)
{
	for (size_t i = 0; i < msg->msg_iovlen && len > 0; i++) {
		const size_t have = msg->msg_iov[i].iov_len;
		char *at = (char *)msg->msg_iov[i].iov_base + offset;
		size_t n;

		if (offset >= have) {
			offset -= have;
			continue;
		}
		n = have - offset < len ? have - offset : len;
		if (!to_msg)
			memcpy(buf, at, n);
		else if (!address_bad(msg->msg_iov[i].iov_base))
			memcpy(at, buf, n);	/* else: bytes are discarded */
		buf += n;
		len -= n;
		offset = 0;
	}
}

/* Fills in what is sent after done bytes; returns an errno value. */
static int
put_message(struct remote_call *c, const struct msghdr *msg, int flags,
    size_t done, size_t total)
{
	const size_t left = total - done;
	int error;

	c->rc_len = (uint32_t)(left < REMOTE_DATA ? left : REMOTE_DATA);
	set_args(c, left > REMOTE_DATA ? flags & ~MSG_OOB : flags,
	    left > REMOTE_DATA, 0);
	iov_copy(msg, done, c->rc_data, c->rc_len, false);
	error = put_name(c, msg->msg_name,
	    msg->msg_name != NULL ? msg->msg_namelen : 0);
	c->rc_controllen = 0;
	if (error != 0 || done > 0 || msg->msg_controllen == 0)
		return (error);
	if (msg->msg_controllen > REMOTE_CONTROL)
		return (ENOBUFS);
	memcpy(c->rc_control, msg->msg_control, msg->msg_controllen);
	c->rc_controllen = (uint32_t)msg->msg_controllen;
	return (0);
}

int
remote_send(struct file *f, const struct msghdr *msg, int flags, size_t *done)
{
	const size_t total = iov_length(msg);
	struct remote_rights rights;
	nsec_t deadline = 0;
	int error;
	struct remote_call *c = remote_begin(REMOTE_SEND, f, &error);
	bool more;

	if (c == NULL)
		return (error);
	do {
		error = put_message(c, msg, flags, *done, total);
		if (error == 0)
			error = rights_request(c, &rights);
		if (error != 0)
			break;
		error = rights.n > 0 ? remote_pass(c, &rights) :
		    remote_transact(c, -1);
		*done += error == 0 ? (size_t)c->rc_value : 0;
		more = error == 0 && *done < total && c->rc_value > 0 &&
		    c->rc_len == REMOTE_DATA && c->rc_value == c->rc_len;
		note_timeout(f, c, FTIMEO_SND);
		if (error == 0 && c->rc_again) {
			error = remote_wait(c, &deadline);
			more = error == 0;
		}
		flags &= ~MSG_FASTOPEN;	/* the connection has begun */
	} while (more);
	return (error);
}

/* Copies an answer's bytes after done ones, and its other parts. */
static void
get_message(const struct remote_call *c, struct msghdr *msg, size_t done,
    size_t total)
{
	size_t n = (size_t)c->rc_value;

	/* a datagram's length may be more than what was copied (MSG_TRUNC) */
	n = n < REMOTE_DATA ? n : REMOTE_DATA;
	n = n < total - done ? n : total - done;
	iov_copy(msg, done, (char *)(uintptr_t)c->rc_data, n, true);
	msg->msg_flags = c->rc_flags;
	if (msg->msg_name != NULL)
		get_name(c, msg->msg_name, &msg->msg_namelen);
	if (msg->msg_control != NULL)
		memcpy(msg->msg_control, c->rc_control, c->rc_controllen);
	msg->msg_controllen = c->rc_controllen;
}

int
remote_receive(struct file *f, struct msghdr *msg, int flags, size_t *done)
{
	const size_t total = iov_length(msg);
	const size_t room = msg->msg_control != NULL ? msg->msg_controllen : 0;
	const bool named = msg->msg_name != NULL;
	struct remote_rights rights = { .n = 0 };
	nsec_t deadline = 0;
	int error;
	struct remote_call *c = remote_begin(REMOTE_RECEIVE, f, &error);

	if (c == NULL)
		return (error);
	for (;;) {
		const size_t left = total - *done;

		c->rc_len = (uint32_t)(left < REMOTE_DATA ? left : REMOTE_DATA);
		c->rc_namelen = named ? sizeof(c->rc_name) : 0;
		c->rc_controllen = (uint32_t)(room < REMOTE_CONTROL ? room :
		    REMOTE_CONTROL);
		set_args(c, flags, left > REMOTE_DATA, *done > 0);
		error = room > 0 ? remote_pass(c, &rights) :
		    remote_transact(c, -1);
		if (error != 0)
			break;
		if (c->rc_value > 0 || !c->rc_again)
			get_message(c, msg, *done, total);
		*done += (size_t)c->rc_value;
		note_timeout(f, c, FTIMEO_RCV);
		if (rights_answered(c)) {	/* they end a read (unix(7)) */
			rights_install(msg, c, &rights,
			    (flags & MSG_CMSG_CLOEXEC) != 0);
			break;
		}
		if (!c->rc_again || (error = remote_wait(c, &deadline)) != 0)
			break;
	}
	return (error);
}

void
remote_close(struct file *f)
{
	(void)call_name(REMOTE_CLOSE, f, 0, NULL, 0);
}

int
remote_fcntl(struct file *f, int cmd, const int32_t arg[FCNTL_ARGS],
    int64_t *value)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_FCNTL, f, &error);

	if (c == NULL)
		return (error);
	c->rc_arg[0] = cmd;
	memcpy(&c->rc_arg[1], arg, FCNTL_ARGS * sizeof(*arg));
	error = remote_transact(c, -1);
	if (error == 0)
		*value = c->rc_value;
	return (error);
}

int
remote_number(struct file *f, unsigned long cmd, int *value)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_NUMBER, f, &error);

	if (c == NULL)
		return (error);
	set_args(c, (int)cmd, 0, 0);
	error = remote_transact(c, -1);
	if (error == 0)
		*value = (int)c->rc_value;
	return (error);
}

int
remote_stamp(struct file *f, struct timespec *ts)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_STAMP, f, &error);

	if (c == NULL)
		return (error);
	error = remote_transact(c, -1);
	if (error == 0)
		memcpy(ts, c->rc_data, sizeof(*ts));
	return (error);
}

unsigned
remote_interfaces(struct interface *list)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_INTERFACES, NULL, &error);

	if (c == NULL || remote_transact(c, -1) != 0 ||
	    (uint64_t)c->rc_value > INTERFACES_MAX)
		return (0);
	memcpy(list, c->rc_data, (size_t)c->rc_value * sizeof(*list));
	return ((unsigned)c->rc_value);
}

int
remote_poll(struct remote_poll *fds, unsigned n, bool arm, int *ready)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_POLL, NULL, &error);

	if (c == NULL)
		return (error);
	if (n > REMOTE_POLL_MAX)
		return (EINVAL);
	set_args(c, arm, 0, 0);
	c->rc_len = (uint32_t)(n * sizeof(*fds));
	memcpy(c->rc_data, fds, c->rc_len);
	error = remote_transact(c, -1);
	if (error != 0)
		return (error);
	memcpy(fds, c->rc_data, n * sizeof(*fds));
	*ready = (int)c->rc_value;
	return (0);
}

int
remote_ticket(struct file *f, int root)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_TICKET, f, &error);

	return (c != NULL ? remote_transact(c, root) : error);
}

int
remote_exchange(uint32_t number, struct file **f)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_EXCHANGE, NULL, &error);

	if (c == NULL)
		return (error);
	set_args(c, (int)number, 0, 0);
	error = remote_transact(c, -1);
	if (error == 0)
		*f = new_file(FT_SOCKET, c, 0);
	return (error);
}

int
remote_epoll_create(int epfd, struct file **f)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_EPOLL_CREATE, NULL, &error);

	if (c == NULL)
		return (error);
	error = remote_transact(c, epfd);
	if (error == 0)
		*f = new_file(FT_EPOLL, c, 0);
	return (error);
}

int
remote_epoll_ctl(struct file *set, int op, struct file *f, int fd,
    const struct epoll_event *event)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_EPOLL_CTL, set, &error);

	if (c == NULL)
		return (error);
	if (event == NULL && op != EPOLL_CTL_DEL)
		return (EFAULT);
	set_args(c, op, (int)f->f_handle, fd);
	if (event != NULL) {
		memcpy(c->rc_data, event, sizeof(*event));
		c->rc_len = sizeof(*event);
	}
	return (remote_transact(c, -1));
}

void
remote_epoll_refresh(void)
{
	(void)call_name(REMOTE_EPOLL_REFRESH, NULL, 0, NULL, 0);
}

int
remote_epoll_collect(struct file *set, struct epoll_event *out, int max)
{
	const int most = (int)(REMOTE_DATA / sizeof(*out));
	int error;
	struct remote_call *c = remote_begin(REMOTE_EPOLL_COLLECT, set, &error);

	if (c == NULL)
		return (0);
	set_args(c, max < most ? max : most, 0, 0);
	if (remote_transact(c, -1) != 0 || c->rc_value < 0 || c->rc_value > max)
		return (0);
	memcpy(out, c->rc_data, (size_t)c->rc_value * sizeof(*out));
	return ((int)c->rc_value);
}
