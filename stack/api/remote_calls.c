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

void
remote_set_args(struct remote_call *c, int a, int b, int d)
{
	c->rc_arg[0] = a;
	c->rc_arg[1] = b;
	c->rc_arg[2] = d;
}

int
remote_put_name(struct remote_call *c, const void *name, socklen_t len)
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

void
remote_get_name(const struct remote_call *c, struct sockaddr *name,
    socklen_t *len)
{
	const socklen_t whole = c->rc_namelen;

	if (name == NULL || len == NULL)
		return;
	memcpy(name, &c->rc_name, whole < *len ? whole : *len);
	*len = whole;
}

void
remote_note_timeout(struct file *f, const struct remote_call *c, uint32_t bit)
{
	if (c->rc_again == REMOTE_AGAIN)
		atomic_store_u32(&f->f_timeo,
		    c->rc_timeout != NSEC_FOREVER ? bit : 0);
}

int
remote_socket(int domain, int type, int protocol, struct file **f)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_SOCKET, NULL, &error);

	if (c == NULL)
		return (error);
	remote_set_args(c, domain, type, protocol);
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
	remote_set_args(c, domain, type, protocol);
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

	if (c == NULL || (error = remote_put_name(c, name, len)) != 0)
		return (error);
	remote_set_args(c, arg, 0, 0);
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

/* Repeats a request that has no data until it need not wait. */
static int
transact_waiting(struct remote_call *c)
{
	nsec_t deadline = 0;
	int error;

	do
		error = remote_transact(c, -1);
	while (error == 0 && c->rc_again == REMOTE_AGAIN &&
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
	remote_set_args(c, flags, 0, 0);
	error = transact_waiting(c);
	remote_note_timeout(f, c, FTIMEO_RCV);
	if (error != 0)
		return (error);
	*new = new_file(FT_SOCKET, c, 0);
	remote_get_name(c, name, len);
	return (0);
}

int
remote_connected(struct file *f)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_CONNECTED, f, &error);

	if (c != NULL)
		error = transact_waiting(c);
	return (error == EWOULDBLOCK ? EINPROGRESS : error);
}

int
remote_connect(struct file *f, const struct sockaddr *name, socklen_t len)
{
	int error;
	struct remote_call *c = remote_begin(REMOTE_CONNECT, f, &error);

	if (c == NULL || (error = remote_put_name(c, name, len)) != 0)
		return (error);
	error = remote_transact(c, -1);
	return (error == 0 && c->rc_again == REMOTE_CONNECTING ?
	    remote_connected(f) : error);
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
		remote_get_name(c, name, len);
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
	remote_set_args(c, level, name, len == NULL);
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
	remote_set_args(c, level, name, value == NULL ? REMOTE_NO_VALUE :
	    filter ? REMOTE_FILTER : REMOTE_VALUE);
	c->rc_len = len;
	if (len > 0 && value != NULL)
		memcpy(c->rc_data, value, len);
	return (remote_transact(c, -1));
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
	remote_set_args(c, (int)cmd, 0, 0);
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
	remote_set_args(c, arm, 0, 0);
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
	remote_set_args(c, (int)number, 0, 0);
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
	remote_set_args(c, op, (int)f->f_handle, fd);
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
	remote_set_args(c, max < most ? max : most, 0, 0);
	if (remote_transact(c, -1) != 0 || c->rc_value < 0 || c->rc_value > max)
		return (0);
	memcpy(out, c->rc_data, (size_t)c->rc_value * sizeof(*out));
	return ((int)c->rc_value);
}
