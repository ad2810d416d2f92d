/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets among many threads, for the thread sanitizer: they
 * connect, send, pass descriptors and close under each other's hands, and in
 * the end nothing is left.  All that with every locking strategy, one after
 * another.  What single calls do is in posix_unix*.c and posix_passing.c, which
 * ask the same of the kernel.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "kern/unpcb.h"
#include "tests/net.h"
#include "tests/tfile.h"

#define	THREADS		4
#define	TURNS		300
#define	BULK		200000

static struct socket *
unix_socket(int type)
{
	struct socket *so;

	CHECK_EQ(socreate(AF_UNIX, type, 0, &so), 0);
	return (so);
}

/* An abstract name that contains a number. */
static socklen_t
unix_name(struct sockaddr_un *sun, unsigned n)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	memcpy(sun->sun_path + 1, &n, sizeof(n));
	return ((socklen_t)(sizeof(sa_family_t) + 1 + sizeof(n)));
}

static int
unix_bind(struct socket *so, unsigned n)
{
	struct sockaddr_un sun;
	socklen_t len = unix_name(&sun, n);

	return (sobind(so, (struct sockaddr *)&sun, len));
}

static int
unix_connect(struct socket *so, unsigned n)
{
	struct sockaddr_un sun;
	socklen_t len = unix_name(&sun, n);

	return (soconnect(so, (struct sockaddr *)&sun, len, 0));
}

static bool
none_left(void *start)
{
	return (so_count() <= *(uint32_t *)start);
}

static void
run_threads(void (*fn)(void *), void *arg[THREADS])
{
	struct thread *td[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		td[i] = t_thread(fn, arg[i]);
	for (unsigned i = 0; i < THREADS; i++)
		t_join(td[i]);
}

/* Like run_threads(), but fn gets the number of its thread. */
static void
run_numbered(void (*fn)(void *))
{
	static unsigned me[THREADS];
	void *arg[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		me[i] = i;
		arg[i] = &me[i];
	}
	run_threads(fn, arg);
}

static void
echo_main(void *arg)
{
	struct socket *head = arg, *so;
	char buf[5000];
	size_t n;

	for (unsigned i = 0; i < THREADS * TURNS / 4; i++) {
		so = t_accept(head);
		while (t_tryrecv(so, buf, sizeof(buf), 0, &n) == 0 && n > 0)
			(void)t_trysend(so, buf, n, 0, &n);
		soclose(so);
	}
}

static void
client_main(void *arg)
{
	char out[1500], in[1500];

	memset(out, 'u', sizeof(out));
	for (unsigned i = 0; i < TURNS / 4; i++) {
		struct socket *so = unix_socket(SOCK_STREAM);
		const size_t len = i * 37 % sizeof(out) + 1;

		CHECK_EQ(unix_connect(so, *(unsigned *)arg), 0);
		t_send(so, out, len);
		t_recv(so, in, len);
		CHECK(memcmp(out, in, len) == 0);
		if (i % 2)
			CHECK_EQ(soshutdown(so, SHUT_WR), 0);
		soclose(so);
	}
}

TEST(many_connections_to_one_listener)
{
	uint32_t start = so_count();
	struct socket *head = unix_socket(SOCK_STREAM);
	unsigned name = 1;
	void *names[THREADS] = { &name, &name, &name, &name };
	struct thread *server;

	CHECK_EQ(unix_bind(head, name), 0);
	CHECK_EQ(solisten(head, 2), 0);
	server = t_thread(echo_main, head);
	run_threads(client_main, names);
	t_join(server);
	soclose(head);
	CHECK(t_until(none_left, &start));
}

static void
bulk_main(void *arg)
{
	t_stream_send(arg, 5, BULK);
}

TEST(a_stream_arrives_while_the_buffer_is_full)
{
	struct socket *pair[2];
	struct thread *td;

	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	t_setint(pair[0], SOL_SOCKET, SO_SNDBUF, 4096);
	td = t_thread(bulk_main, pair[0]);
	t_stream_recv(pair[1], 5, BULK);
	t_join(td);
	soclose(pair[0]);
	soclose(pair[1]);
}

/* Several threads use one pair until it is closed. */
static void
use_main(void *arg)
{
	struct socket *so = arg;
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);
	char buf[300];
	size_t n;
	int error;

	do {
		error = t_trysend(so, buf, sizeof(buf), MSG_DONTWAIT, &n);
		if (error == 0 || error == EWOULDBLOCK)
			error = t_tryrecv(so, buf, sizeof(buf), MSG_DONTWAIT,
			    &n);
		(void)sopoll(so, POLLIN | POLLOUT);
		(void)sogetpeername(so, (struct sockaddr *)&sun, &len);
	} while (error == 0 || error == EWOULDBLOCK);
	sorele(so);
}

TEST(closing_what_others_use)
{
	const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	uint32_t start = so_count();
	struct thread *td[THREADS];
	struct socket *pair[2];

	for (unsigned turn = 0; turn < 30; turn++) {
		CHECK_EQ(sosocketpair(AF_UNIX, types[turn % 3], 0, pair), 0);
		for (unsigned i = 0; i < THREADS; i++) {
			soref(pair[i % 2]);
			td[i] = t_thread(use_main, pair[i % 2]);
		}
		t_sleep(2);
		soclose(pair[turn % 2]);
		soclose(pair[(turn + 1) % 2]);
		for (unsigned i = 0; i < THREADS; i++)
			t_join(td[i]);
	}
	CHECK(t_until(none_left, &start));
}

/* Another thread has closed the descriptor after the lookup. */
TEST(a_call_that_comes_behind_close_ends)
{
	struct socket *head = unix_socket(SOCK_STREAM), *so;

	CHECK_EQ(unix_bind(head, 0), 0);
	CHECK_EQ(solisten(head, 1), 0);
	soref(head);
	soclose(head);
	CHECK_EQ(soaccept(head, 0, NULL, NULL, &so), EBADF);
	sorele(head);
}

/* Sends one byte to a name, optionally with the file of a number. */
static void
pass(struct socket *so, unsigned to, int file)
{
	struct sockaddr_un sun;
	socklen_t len = unix_name(&sun, to);
	union {
		char		 buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	 align;
	} control = { .align = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS
	} };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_name = &sun, .msg_namelen = len, .msg_iov = &iov,
		.msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)
	};
	size_t n;

	memcpy(CMSG_DATA(&control.align), &file, sizeof(file));
	(void)sosend(so, &msg, MSG_DONTWAIT, &n);
}

static void
take(struct socket *so)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control)
	};
	struct cmsghdr *cm;
	size_t n;
	int file;

	if (soreceive(so, &msg, MSG_DONTWAIT, &n) != 0)
		return;
	cm = CMSG_FIRSTHDR(&msg);
	if (cm == NULL)
		return;
	memcpy(&file, CMSG_DATA(cm), sizeof(file));
	tfile_close(&files[file]);
}

static void
pass_main(void *arg)
{
	const unsigned me = *(unsigned *)arg;
	struct tfile *mine = &files[me];

	for (unsigned i = 0; i < TURNS; i++) {
		struct socket *so = mine->so;

		(void)unix_connect(so, (me + 1) % THREADS);
		for (unsigned to = 0; to < THREADS; to++)
			pass(so, to, (int)((me + i) % THREADS));
		take(so);
	}
}

TEST(descriptors_in_rings_are_collected)
{
	uint32_t start = so_count();

	fileops = &tfile_ops;
	for (unsigned i = 0; i < THREADS; i++) {
		files[i].so = unix_socket(SOCK_DGRAM);
		CHECK_EQ(unix_bind(files[i].so, i), 0);
		atomic_store_rel_u32(&files[i].refs, 1);
	}
	run_numbered(pass_main);
	for (unsigned i = 0; i < THREADS; i++)
		tfile_close(&files[i]);
	/* closing a socket runs the collector of unreachable sockets */
	soclose(unix_socket(SOCK_DGRAM));
	CHECK(t_until(none_left, &start));
	fileops = NULL;
}

/* Datagram sockets with names connect in circles and are closed meanwhile. */
static void
circle_main(void *arg)
{
	const unsigned me = *(unsigned *)arg;
	size_t n;

	for (unsigned i = 0; i < TURNS / 4; i++) {
		struct socket *so = unix_socket(SOCK_DGRAM);

		(void)unix_bind(so, me);
		for (unsigned to = 0; to < THREADS; to++) {
			(void)unix_connect(so, (me + to + i) % THREADS);
			(void)t_trysend(so, "x", 1, MSG_DONTWAIT, &n);
			(void)t_tryrecv(so, (char[1]){ 0 }, 1, MSG_DONTWAIT,
			    &n);
		}
		soclose(so);
	}
}

TEST(datagram_sockets_connect_in_circles)
{
	uint32_t start = so_count();

	run_numbered(circle_main);
	CHECK(t_until(none_left, &start));
}

/* Even threads listen and close repeatedly; odd ones connect to them. */
static void
come_and_go_main(void *arg)
{
	const unsigned me = *(unsigned *)arg;

	for (unsigned i = 0; i < TURNS; i++) {
		struct socket *so = unix_socket(SOCK_STREAM);

		if (me % 2 == 1) {
			(void)unix_connect(so, me - 1);
		} else if (unix_bind(so, me) == 0) {
			CHECK_EQ(solisten(so, 4), 0);
			t_sleep(i % 8 == 0);
		}
		soclose(so);
	}
}

TEST(listeners_close_while_others_connect)
{
	uint32_t start = so_count();

	run_numbered(come_and_go_main);
	CHECK(t_until(none_left, &start));
}

static void
send_one(void *arg)
{
	t_send(arg, "x", 1);
}

static bool
is_blocked(void *td)
{
	return (((struct thread *)td)->td_blocked != NULL);
}

/* A sender whose peer's mutex comes first and is held. */
TEST(a_pair_out_of_order_is_taken_again)
{
	const uint64_t relocks = t_sysctl("unix.stats.relocks");
	const uint64_t failures = t_sysctl("unix.stats.try_failures");
	struct socket *pair[2];
	struct unpcb *first;
	struct thread *td;
	unsigned last;

	if (unp_lockops != &unp_pair)
		return;
	CHECK_EQ(sosocketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	last = sotounpcb(pair[0]) < sotounpcb(pair[1]);
	first = sotounpcb(pair[!last]);
	mtx_lock(&first->unp_mtx);
	td = t_thread(send_one, pair[last]);
	CHECK(t_until(is_blocked, td));
	mtx_unlock(&first->unp_mtx);
	t_join(td);
	CHECK_EQ(t_sysctl("unix.stats.relocks"), relocks + 1);
	CHECK_EQ(t_sysctl("unix.stats.try_failures"), failures + 1);
	soclose(pair[0]);
	soclose(pair[1]);
}

int
main(int argc, char **argv)
{
	int status = 0;

	if (stack_boot(NULL) != 0)
		return (1);
	for (size_t i = 0; unp_strategies[i] != NULL && status == 0; i++) {
		unp_lockops = unp_strategies[i];
		printf("unix.locking=\"%s\"\n", unp_lockops->ulo_name);
		status = check_main(argc, argv);
	}
	return (status);
}
