/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of the UNIX domain: a pair that is closed from both ends, a listener
 * that is, and descriptors on their way while the collector runs.
 */
#include "tests/search/scenes.h"

#include <errno.h>
#include <sys/un.h>

#include "tests/check.h"
#include "tests/net.h"
#include "tests/tfile.h"

static void
pair_scene(void)
{
	uint32_t start = so_count();
	struct socket *pair[2];
	struct thread *td[5];

	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	soref(pair[0]);
	soref(pair[0]);
	soref(pair[1]);
	td[0] = t_thread(scene_send_some, pair[0]);
	td[1] = t_thread(scene_send_some, pair[0]);
	td[2] = t_thread(scene_receive_all, pair[1]);
	td[3] = t_thread(scene_close_one, pair[0]);
	td[4] = t_thread(scene_close_one, pair[1]);
	for (unsigned i = 0; i < 5; i++)
		t_join(td[i]);
	CHECK(t_until(scene_none_left, &start));
}

/* Three threads write to one socket, and two read from its peer. */
static void
share_scene(void)
{
	uint32_t start = so_count();
	struct socket *pair[2];
	struct thread *td[5];

	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (unsigned i = 0; i < 5; i++) {
		soref(pair[i / 3]);
		td[i] = t_thread(i < 3 ? scene_send_some : scene_receive_all,
		    pair[i / 3]);
	}
	for (unsigned i = 0; i < 3; i++)
		t_join(td[i]);
	(void)soclose(pair[0]);
	t_join(td[3]);
	t_join(td[4]);
	(void)soclose(pair[1]);
	CHECK(t_until(scene_none_left, &start));
}

/* A name that is not in the file system (unix(7)). */
static const struct sockaddr_un name = { .sun_family = AF_UNIX,
    .sun_path = "\0search" };
#define	NAME_LEN	(offsetof(struct sockaddr_un, sun_path) + 7)

static void
connect_once(void *arg)
{
	struct socket *so;
	size_t n;

	(void)arg;
	CHECK_EQ(socreate(AF_UNIX, SOCK_STREAM, 0, &so), 0);
	if (soconnect(so, (const struct sockaddr *)&name, NAME_LEN, 0) == 0)
		(void)t_trysend(so, "x", 1, 0, &n);
	(void)soclose(so);
}

static void
accept_until_closed(void *head)
{
	struct socket *so;

	while (soaccept(head, 0, NULL, NULL, &so) == 0) {
		soref(so);
		scene_receive_all(so);
		(void)soclose(so);
	}
	sorele(head);
}

static void
accept_scene(void)
{
	uint32_t start = so_count();
	struct socket *head;
	struct thread *td[4];

	CHECK_EQ(socreate(AF_UNIX, SOCK_STREAM, 0, &head), 0);
	CHECK_EQ(sobind(head, (const struct sockaddr *)&name, NAME_LEN), 0);
	CHECK_EQ(solisten(head, 1), 0);
	soref(head);
	td[0] = t_thread(accept_until_closed, head);
	td[1] = t_thread(connect_once, NULL);
	td[2] = t_thread(connect_once, NULL);
	td[3] = t_thread(scene_close_one, head);
	for (unsigned i = 0; i < 4; i++)
		t_join(td[i]);
	CHECK(t_until(scene_none_left, &start));
}

/* Sends a byte and the file with this number. */
static void
pass(struct socket *so, int file)
{
	union {
		char		 buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	 align;
	} control = { .align = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS
	} };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	size_t n;

	memcpy(CMSG_DATA(&control.align), &file, sizeof(file));
	CHECK_EQ(sosend(so, &msg, 0, &n), 0);
}

/* Receives a byte and a file; the caller owns the file. */
static struct tfile *
take(struct socket *so)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cm;
	size_t n;
	int file;

	CHECK_EQ(soreceive(so, &msg, 0, &n), 0);
	cm = CMSG_FIRSTHDR(&msg);
	CHECK(cm != NULL);
	memcpy(&file, CMSG_DATA(cm), sizeof(file));
	return (&files[file]);
}

/* Receives a socket from the outer one, and from that socket its messages. */
static void
unpack(void *outer)
{
	struct tfile *inner = take(outer);

	tfile_close(take(inner->so));
	tfile_close(inner);
}

static void
collect(void *arg)
{
	struct socket *so;

	(void)arg;
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(socreate(AF_UNIX, SOCK_DGRAM, 0, &so), 0);
		/* runs the collector of unreachable sockets */
		(void)soclose(so);
	}
}

static void
open_file(unsigned n, struct socket *so)
{
	files[n].so = so;
	atomic_store_u32(&files[n].refs, 1);
}

static void
rights_scene(void)
{
	uint32_t start = so_count();
	struct socket *outer[2], *inner[2], *last;
	struct thread *td[2];

	fileops = &tfile_ops;
	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, outer), 0);
	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, inner), 0);
	CHECK_EQ(socreate(AF_UNIX, SOCK_DGRAM, 0, &last), 0);
	open_file(0, inner[1]);
	open_file(1, last);
	pass(inner[0], 1);
	pass(outer[0], 0);
	tfile_close(&files[0]);		/* only messages refer to them now */
	tfile_close(&files[1]);
	td[0] = t_thread(unpack, outer[1]);
	td[1] = t_thread(collect, NULL);
	t_join(td[0]);
	t_join(td[1]);
	(void)soclose(inner[0]);
	(void)soclose(outer[0]);
	(void)soclose(outer[1]);
	CHECK(t_until(scene_none_left, &start));
}

const struct scene unix_scenes[] = {
	{ "unix-pair", "a stream between two sockets that are closed",
	    "lock.mutex=block unix.locking=pair", NULL, pair_scene },
	{ "unix-socket", "the same, with the locks of the sockets alone",
	    "lock.mutex=block unix.locking=socket", NULL, pair_scene },
	{ "unix-share", "several threads write to a socket and read",
	    "lock.mutex=block", NULL, share_scene },
	{ "unix-accept", "connections to a listener that is closed",
	    "lock.mutex=block unix.locking=pair", NULL, accept_scene },
	{ "unix-rights", "descriptors in messages while the collector runs",
	    "lock.mutex=block", NULL, rights_scene },
	{ .name = NULL },
};
