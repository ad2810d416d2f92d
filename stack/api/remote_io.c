/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's reads and writes: requests with parts of a message, each with what
 * a channel's page has room for, until the call is complete.
 */
#include <string.h>
#include <sys/uio.h>

#include "api/remote_call.h"

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
	remote_set_args(c, left > REMOTE_DATA ? flags & ~MSG_OOB : flags,
	    left > REMOTE_DATA, 0);
	iov_copy(msg, done, c->rc_data, c->rc_len, false);
	error = remote_put_name(c, msg->msg_name,
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

/* A request to send the rest; adds what was sent to *done. */
static int
send_rest(struct file *f, struct remote_call **call, const struct msghdr *msg,
    int flags, size_t *done, size_t total)
{
	struct remote_rights rights;
	int error;
	struct remote_call *c = *call = remote_begin(REMOTE_SEND, f, &error);

	if (c == NULL)
		return (error);
	error = put_message(c, msg, flags, *done, total);
	if (error == 0)
		error = rights_request(c, &rights);
	if (error != 0)
		return (error);
	error = rights.n > 0 ? remote_pass(c, &rights) : remote_transact(c, -1);
	*done += error == 0 ? (size_t)c->rc_value : 0;
	return (error);
}

/*
 * The connection that a write has begun, with *done bytes in its SYN, which
 * count unless it fails.
 */
static int
send_connected(struct file *f, size_t *done)
{
	const int error = remote_connected(f);

	if (error != 0 && error != EINPROGRESS)
		*done = 0;
	return (error);
}

int
remote_send(struct file *f, const struct msghdr *msg, int flags, size_t *done)
{
	const size_t total = iov_length(msg);
	struct remote_call *c;
	nsec_t deadline = 0;
	enum remote_again again;
	bool more;
	int error;

	do {
		error = send_rest(f, &c, msg, flags, done, total);
		if (error != 0)
			break;
		again = c->rc_again;
		more = again == REMOTE_AGAIN || (*done < total &&
		    (again == REMOTE_CONNECTING || (c->rc_value > 0 &&
		    c->rc_len == REMOTE_DATA && c->rc_value == c->rc_len)));
		if (again == REMOTE_CONNECTING)
			error = send_connected(f, done);
		remote_note_timeout(f, c, FTIMEO_SND);
		if (again == REMOTE_AGAIN)
			error = remote_wait(c, &deadline);
		flags &= ~MSG_FASTOPEN;	/* the connection has begun */
	} while (more && error == 0);
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
		remote_get_name(c, msg->msg_name, &msg->msg_namelen);
	if (msg->msg_control != NULL)
		memcpy(msg->msg_control, c->rc_control, c->rc_controllen);
	msg->msg_controllen = c->rc_controllen;
}

/* A request for the rest; adds what has come to *done. */
static int
receive_rest(struct remote_call *c, struct remote_rights *rights,
    struct msghdr *msg, size_t room, int flags, size_t *done, size_t total)
{
	const size_t left = total - *done;
	int error;

	c->rc_len = (uint32_t)(left < REMOTE_DATA ? left : REMOTE_DATA);
	c->rc_namelen = msg->msg_name != NULL ? sizeof(c->rc_name) : 0;
	c->rc_controllen = (uint32_t)(room < REMOTE_CONTROL ? room :
	    REMOTE_CONTROL);
	remote_set_args(c, flags, left > REMOTE_DATA, *done > 0);
	error = room > 0 ? remote_pass(c, rights) : remote_transact(c, -1);
	if (error != 0)
		return (error);
	if (c->rc_value > 0 || c->rc_again == REMOTE_DONE)
		get_message(c, msg, *done, total);
	*done += (size_t)c->rc_value;
	return (0);
}

/* After a wait that has ended early, takes what has come meanwhile. */
int
remote_receive(struct file *f, struct msghdr *msg, int flags, size_t *done)
{
	const size_t total = iov_length(msg);
	const size_t room = msg->msg_control != NULL ? msg->msg_controllen : 0;
	struct remote_rights rights = { .n = 0 };
	nsec_t deadline = 0;
	int error, early = 0;
	struct remote_call *c = remote_begin(REMOTE_RECEIVE, f, &error);

	if (c == NULL)
		return (error);
	for (;;) {
		error = receive_rest(c, &rights, msg, room, flags, done, total);
		if (error != 0)
			return (error == EWOULDBLOCK && early != 0 ? early :
			    error);
		remote_note_timeout(f, c, FTIMEO_RCV);
		if (rights_answered(c)) {	/* they end a read (unix(7)) */
			rights_install(msg, c, &rights,
			    (flags & MSG_CMSG_CLOEXEC) != 0);
			return (0);
		}
		if (c->rc_again == REMOTE_DONE)
			return (0);
		early = remote_wait(c, &deadline);
		if (early == ENETDOWN)
			return (early);
		if (early != 0)
			flags |= MSG_DONTWAIT;
	}
}
