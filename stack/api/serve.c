/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of a client's thread, executed by the thread of its channel
 * (remote.h).  None waits, except close() with SO_LINGER.
 */
#include <limits.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/server.h"
#include "api/epoll.h"

static bool
may_wait(struct file *f, int flags)
{
	return ((flags & MSG_DONTWAIT) == 0 &&
	    atomic_load_u32(&f->f_nonblock) == 0);
}

static struct sockaddr *
call_name(struct remote_call *c)
{
	if (c->rc_namelen > sizeof(c->rc_name))
		c->rc_namelen = sizeof(c->rc_name);
	return ((struct sockaddr *)&c->rc_name);
}

static uint32_t
call_len(const struct remote_call *c)
{
	return (c->rc_len < REMOTE_DATA ? c->rc_len : (uint32_t)REMOTE_DATA);
}

/* Answers with a new file, whose hold the client gets. */
static void
answer_file(struct channel *ch, unsigned i, struct file *f)
{
	ch->ch_call->rc_inode[i] = file_inode(f);
	ch->ch_call->rc_new[i] = client_add(ch->ch_client, f);
}

static int
serve_socket(struct channel *ch, struct file *none, struct remote_call *c)
{
	struct file *f;
	int error = file_socket(c->rc_arg[0], c->rc_arg[1], c->rc_arg[2], &f);

	(void)none;
	if (error == 0)
		answer_file(ch, 0, f);
	return (error);
}

static int
serve_socketpair(struct channel *ch, struct file *none, struct remote_call *c)
{
	struct file *pair[2];
	int error = file_socketpair(c->rc_arg[0], c->rc_arg[1], c->rc_arg[2],
	    pair);

	(void)none;
	for (unsigned i = 0; i < 2 && error == 0; i++)
		answer_file(ch, i, pair[i]);
	return (error);
}

static int
serve_bind(struct channel *ch, struct file *f, struct remote_call *c)
{
	const struct sockaddr *name = call_name(c);

	(void)ch;
	return (sobind(f->f_so, name, c->rc_namelen));
}

static int
serve_listen(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	return (solisten(f->f_so, c->rc_arg[0]));
}

static int
serve_accept(struct channel *ch, struct file *f, struct remote_call *c)
{
	struct file *new;
	int error;

	c->rc_namelen = sizeof(c->rc_name);
	error = file_accept(f, MSG_DONTWAIT, (struct sockaddr *)&c->rc_name,
	    &c->rc_namelen, c->rc_arg[0], &new);
	if (error == 0)
		answer_file(ch, 0, new);
	if (error != EWOULDBLOCK || !may_wait(f, 0))
		return (error);
	channel_again(ch, f, POLLIN);
	return (0);
}

static int
serve_connect(struct channel *ch, struct file *f, struct remote_call *c)
{
	const struct sockaddr *name = call_name(c);
	int error = soconnect(f->f_so, name, c->rc_namelen, MSG_DONTWAIT);

	(void)ch;
	if ((error != EINPROGRESS && error != EALREADY) || !may_wait(f, 0))
		return (error);
	c->rc_again = REMOTE_CONNECTING;
	return (0);
}

static int
serve_connected(struct channel *ch, struct file *f, struct remote_call *c)
{
	int error;

	(void)c;
	error = soconnected(f->f_so);
	if (error != EINPROGRESS)
		return (error);
	channel_again(ch, f, POLLOUT);
	return (0);
}

static int
serve_shutdown(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	return (soshutdown(f->f_so, c->rc_arg[0]));
}

static int
serve_sockname(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	c->rc_namelen = sizeof(c->rc_name);
	return (sogetsockname(f->f_so, (struct sockaddr *)&c->rc_name,
	    &c->rc_namelen));
}

static int
serve_peername(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	c->rc_namelen = sizeof(c->rc_name);
	return (sogetpeername(f->f_so, (struct sockaddr *)&c->rc_name,
	    &c->rc_namelen));
}

static int
serve_getopt(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	if (c->rc_len <= INT_MAX)
		c->rc_len = call_len(c);
	return (sogetopt(f->f_so, c->rc_arg[0], c->rc_arg[1], c->rc_data,
	    c->rc_arg[2] ? NULL : &c->rc_len));
}

static int
serve_setopt(struct channel *ch, struct file *f, struct remote_call *c)
{
	struct sock_fprog prog = {
		.len = (unsigned short)(call_len(c) / sizeof(*prog.filter)),
		.filter = (struct sock_filter *)(void *)c->rc_data
	};

	(void)ch;
	if (c->rc_arg[2] == REMOTE_FILTER)
		return (file_setopt(f, c->rc_arg[0], c->rc_arg[1], &prog,
		    sizeof(prog)));
	return (file_setopt(f, c->rc_arg[0], c->rc_arg[1],
	    c->rc_arg[2] == REMOTE_NO_VALUE ? NULL : c->rc_data, call_len(c)));
}

static int
serve_send(struct channel *ch, struct file *f, struct remote_call *c)
{
	const int flags = c->rc_arg[0];
	struct iovec iov = { c->rc_data, call_len(c) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done = 0;
	int error;

	if (c->rc_arg[1] && !f->f_so->so_proto->pr_stream)
		return (EMSGSIZE);
	if (c->rc_namelen > 0) {
		msg.msg_name = call_name(c);
		msg.msg_namelen = c->rc_namelen;
	}
	if (c->rc_controllen > 0 && c->rc_controllen <= REMOTE_CONTROL) {
		msg.msg_control = c->rc_control;
		msg.msg_controllen = c->rc_controllen;
	}
	rights_serve(ch);
	error = sosend(f->f_so, &msg, flags | MSG_DONTWAIT, &done);
	rights_serve(NULL);
	c->rc_value = (int64_t)done;
	if (may_wait(f, flags) && (error == EINPROGRESS || error == EALREADY)) {
		c->rc_again = REMOTE_CONNECTING;
		return (0);
	}
	if (done > 0)
		error = 0;
	if (may_wait(f, flags) && (error == EWOULDBLOCK ||
	    (error == 0 && done < iov.iov_len))) {
		channel_again(ch, f, POLLOUT);
		error = 0;
	}
	return (error);
}

/*
 * A read has to wait, unless no more may come: after SHUT_RD a read of
 * datagrams that waits returns 0 bytes, another one EAGAIN.
 */
static int
receive_later(struct channel *ch, struct file *f)
{
	if (f->f_so->so_proto->pr_stream ||
	    (sopoll(f->f_so, POLLRDHUP) & POLLRDHUP) == 0)
		channel_again(ch, f, POLLIN | POLLRDHUP);
	return (0);
}

/*
 * A read of a stream waits for SO_RCVLOWAT, or with MSG_PEEK for all.  There may
 * be bytes, so that only more of them are worth a wakeup.
 */
static bool
waits_for_bytes(struct channel *ch, struct file *f, int flags, size_t len)
{
	if (f->f_so->so_type != SOCK_STREAM || !may_wait(f, flags) ||
	    (flags & (MSG_ERRQUEUE | MSG_OOB)) != 0 ||
	    !soreceiveblocks(f->f_so, len, flags))
		return (false);
	(void)channel_arm(ch, f, POLLIN | POLLRDHUP);
	if (!soreceiveblocks(f->f_so, len, flags))
		waiter_wake(&ch->ch_waiter);
	return (true);
}

/* MSG_WAITALL, and not at the urgent mark; at the end the next read has 0. */
static bool
waits_for_all(struct file *f, int flags, size_t done)
{
	return ((flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL &&
	    done > 0 && f->f_so->so_type == SOCK_STREAM && may_wait(f, flags) &&
	    !soatmark(f->f_so));
}

/* After the first part of a read an error is left for the next one. */
static bool
error_is_next(struct file *f)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done = 0;
	const int error = soreceive(f->f_so, &msg, MSG_PEEK | MSG_DONTWAIT,
	    &done);

	return (error != 0 && error != EWOULDBLOCK);
}

static int
serve_receive(struct channel *ch, struct file *f, struct remote_call *c)
{
	const int flags = c->rc_arg[0];
	const bool more = c->rc_arg[1], partial = c->rc_arg[2];
	struct iovec iov = { c->rc_data, call_len(c) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done = 0;
	int error;

	if (c->rc_namelen > 0) {
		msg.msg_name = call_name(c);
		msg.msg_namelen = c->rc_namelen;
	}
	if (c->rc_controllen > 0 && c->rc_controllen <= REMOTE_CONTROL) {
		msg.msg_control = c->rc_control;
		msg.msg_controllen = c->rc_controllen;
	}
	if (partial && error_is_next(f)) {
		c->rc_namelen = c->rc_controllen = 0;
		return (0);
	}
	if (waits_for_bytes(ch, f, flags, iov.iov_len))
		return (0);
	rights_serve(ch);
	error = soreceive(f->f_so, &msg, flags | MSG_DONTWAIT, &done);
	rights_serve(NULL);
	c->rc_value = (int64_t)done;
	c->rc_namelen = msg.msg_name != NULL ? msg.msg_namelen : 0;
	c->rc_controllen = (uint32_t)msg.msg_controllen;
	c->rc_flags = msg.msg_flags;
	if ((error == EWOULDBLOCK && done == 0 && may_wait(f, flags) &&
	    (flags & MSG_ERRQUEUE) == 0 &&
	    ((flags & MSG_OOB) == 0 || !sooobread(f->f_so))) ||
	    ((done < iov.iov_len || more) && waits_for_all(f, flags, done)))
		error = receive_later(ch, f);
	return (done > 0 ? 0 : error);
}

static int
serve_close(struct channel *ch, struct file *f, struct remote_call *c)
{
	struct file *held = client_remove(ch->ch_client, c->rc_handle);

	(void)f;
	if (held != NULL)
		file_close(held);
	return (held != NULL ? 0 : EBADF);
}

static int
serve_fcntl(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	return (file_fcntl(f, c->rc_arg[0], &c->rc_arg[1], &c->rc_value));
}

static int
serve_number(struct channel *ch, struct file *f, struct remote_call *c)
{
	int value = 0;
	int error = file_number(f, (unsigned)c->rc_arg[0], &value);

	(void)ch;
	c->rc_value = value;
	return (error);
}

static int
serve_stamp(struct channel *ch, struct file *f, struct remote_call *c)
{
	(void)ch;
	return (sogetstamp(f->f_so, (struct timespec *)(void *)c->rc_data));
}

static int
serve_interfaces(struct channel *ch, struct file *none, struct remote_call *c)
{
	(void)ch, (void)none;
	c->rc_value = interface_describe(
	    (struct interface *)(void *)c->rc_data, INTERFACES_MAX);
	return (0);
}

/* Looks the sockets of a POLL request up; POLLNVAL for those it does not have. */
static void
poll_gather(struct channel *ch, struct remote_poll *fds, unsigned n)
{
	channel_room(ch, n);
	for (unsigned i = 0; i < n; i++) {
		struct file *f = client_file(ch->ch_client, fds[i].rp_handle);

		fds[i].rp_revents = f == NULL || f->f_so == NULL ? POLLNVAL : 0;
		if (f != NULL && f->f_so != NULL)
			channel_append(ch, f, fds[i].rp_events);
		else if (f != NULL)
			frele(f);
	}
}

static int
serve_poll(struct channel *ch, struct file *f, struct remote_call *c)
{
	struct remote_poll *fds = (struct remote_poll *)(void *)c->rc_data;
	const unsigned n = (unsigned)(call_len(c) / sizeof(*fds));
	unsigned k = 0;

	(void)f;
	if (n == 0)
		return (0);
	poll_gather(ch, fds, n);
	if (c->rc_arg[0])
		(void)pollents_watch(ch->ch_ents, ch->ch_npoll);
	else
		(void)pollents_scan(ch->ch_ents, ch->ch_npoll);
	c->rc_value = 0;
	for (unsigned i = 0; i < n; i++) {
		if (fds[i].rp_revents == 0)
			fds[i].rp_revents = ch->ch_poll[k++].revents;
		c->rc_value += fds[i].rp_revents != 0;
	}
	if (!c->rc_arg[0]) {
		for (unsigned i = 0; i < ch->ch_npoll; i++)
			frele(ch->ch_ents[i].pe_file);
		ch->ch_npoll = 0;
		kfree(ch->ch_ents);
		kfree(ch->ch_poll);
	}
	return (0);
}

static int
serve_epoll_ctl(struct channel *ch, struct file *set, struct remote_call *c)
{
	struct file *f = client_file(ch->ch_client, (uint32_t)c->rc_arg[1]);
	struct epoll_event event;
	int error = EBADF;

	memcpy(&event, c->rc_data, sizeof(event));
	if (f != NULL && f->f_so != NULL)
		error = epset_ctl(set->f_ep, c->rc_arg[0], f, c->rc_arg[2],
		    c->rc_len == sizeof(event) ? &event : NULL);
	if (f != NULL)
		frele(f);
	return (error);
}

static int
serve_epoll_refresh(struct channel *ch, struct file *none,
    struct remote_call *c)
{
	(void)ch, (void)none, (void)c;
	epoll_refresh();
	return (0);
}

static int
serve_epoll_collect(struct channel *ch, struct file *set,
    struct remote_call *c)
{
	struct epoll_event *out = (struct epoll_event *)(void *)c->rc_data;
	const int room = (int)(REMOTE_DATA / sizeof(*out));

	(void)ch;
	c->rc_value = epset_collect(set->f_ep, out,
	    c->rc_arg[0] < room ? c->rc_arg[0] : room);
	return (0);
}

static int
serve_ticket(struct channel *ch, struct file *f, struct remote_call *c)
{
	const int root = channel_take(ch, 0);

	(void)c;
	return (root == -1 ? EINVAL : server_ticket(root, f));
}

static int
serve_exchange(struct channel *ch, struct file *none, struct remote_call *c)
{
	struct file *f;
	int error = server_exchange((uint32_t)c->rc_arg[0], &f);

	(void)none;
	if (error == 0)
		answer_file(ch, 0, f);
	return (error);
}

/* The client's kernel epoll, which was passed, gets the set's eventfd. */
static int
serve_epoll_create(struct channel *ch, struct file *none,
    struct remote_call *c)
{
	struct file *f;

	(void)none, (void)c;
	if (ch->ch_npassed == 0)
		return (EINVAL);
	f = file_new(FT_EPOLL);
	f->f_ep = epset_new(ch->ch_passed[0]);
	if (f->f_ep == NULL) {
		file_close(f);
		return (EMFILE);
	}
	epoll_expose(f->f_ep);
	answer_file(ch, 0, f);
	return (0);
}

typedef int serve_fn(struct channel *, struct file *, struct remote_call *);

static serve_fn *const functions[REMOTE_COUNT] = {
#define	X(id, name)	[REMOTE_##id] = serve_##name,
	REMOTE_REQUESTS(X)
#undef X
};

/* The type of file that a request is on; FT_RESERVED: none, or any. */
static enum file_type
request_type(unsigned request)
{
	switch (request) {
	case REMOTE_SOCKET:
	case REMOTE_SOCKETPAIR:
	case REMOTE_CLOSE:
	case REMOTE_POLL:
	case REMOTE_EXCHANGE:
	case REMOTE_INTERFACES:
	case REMOTE_EPOLL_CREATE:
	case REMOTE_EPOLL_REFRESH:
		return (FT_RESERVED);
	case REMOTE_EPOLL_CTL:
	case REMOTE_EPOLL_COLLECT:
		return (FT_EPOLL);
	default:
		return (FT_SOCKET);
	}
}

static int
serve(struct channel *ch, unsigned request)
{
	const enum file_type type = request_type(request);
	struct remote_call *c = ch->ch_call;
	struct file *f;
	int error = EBADF;

	if (type == FT_RESERVED)
		return (functions[request](ch, NULL, c));
	f = client_file(ch->ch_client, c->rc_handle);
	if (f != NULL && f->f_type == type)
		error = functions[request](ch, f, c);
	if (f != NULL)
		frele(f);
	return (error);
}

/*
 * Sends the byte that announces the answer.  The kernel may refuse the
 * descriptors beside it, of which a user has only so many in flight; the client
 * then cuts its message (rights_install()).
 */
static ssize_t
announce(struct channel *ch, const struct iovec *iov)
{
	const ssize_t sent = rights_send(ch->ch_fd, iov, 1, ch->ch_answer,
	    (int)ch->ch_nanswer);

	return (sent == -1 && ch->ch_nanswer > 0 ?
	    rights_send(ch->ch_fd, iov, 1, NULL, 0) : sent);
}

void
channel_serve(void *arg)
{
	struct channel *ch = arg;
	char doorbell;
	const struct iovec iov = { &doorbell, 1 };
	unsigned request;
	ssize_t sent = 1;

	while (sent == 1 && rights_receive(ch->ch_fd, &iov, 1, ch->ch_passed,
	    RIGHTS_MAX) == 1) {
		channel_hide(ch);
		request = ch->ch_call->rc_request;
		channel_disarm(ch);
		ch->ch_call->rc_error = request < REMOTE_COUNT ?
		    serve(ch, request) : EINVAL;
		sent = announce(ch, &iov);
		channel_close(ch);
	}
	channel_disarm(ch);
	channel_ended(ch);
}
