/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that block in calls on TCP sockets, and watchers of these. */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "machine/virtual/virtual.h"
#include "tests/net.h"

#define	LO	"127.0.0.1"

static uint16_t next_port = 7000;

/* A thread that blocks in a call, and the call's result. */
struct blocked {
	struct socket	*so;
	int		 error;
};

static void
block_in_receive(void *arg)
{
	struct blocked *b = arg;
	char c;
	size_t n;

	b->error = t_tryrecv(b->so, &c, 1, 0, &n);
	sorele(b->so);
}

static void
block_in_send(void *arg)
{
	static char buf[100000];
	struct blocked *b = arg;
	size_t n;

	do
		b->error = t_trysend(b->so, buf, sizeof(buf), 0, &n);
	while (b->error == 0);
	sorele(b->so);
}

static void
block_in_accept(void *arg)
{
	struct blocked *b = arg;
	struct socket *so;

	b->error = soaccept(b->so, 0, NULL, NULL, &so);
	sorele(b->so);
}

static int
close_under(void (*fn)(void *), struct socket *so)
{
	struct blocked b = { so, 0 };
	struct thread *td;

	soref(so);		/* as a descriptor table would */
	td = t_thread(fn, &b);
	t_sleep(30);
	soclose(so);
	t_join(td);
	return (b.error);
}

TEST(close_wakes_threads_that_block)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(LO, port, 5), *a, *b;

	a = t_connect(LO, port);
	b = t_accept(head);
	CHECK_EQ(close_under(block_in_receive, a), EBADF);
	soclose(b);
	a = t_connect(LO, port);
	b = t_accept(head);
	CHECK_EQ(close_under(block_in_send, a), EBADF);
	soclose(b);
	CHECK_EQ(close_under(block_in_accept, head), EBADF);
}

#define	ACCEPTORS	4

/* Serves connections until the listener is closed; counts them. */
struct acceptor {
	struct socket	*head;
	struct thread	*td;
	unsigned	 served;
	int		 error;
};

static void
accept_all(void *arg)
{
	struct acceptor *a = arg;
	struct socket *so;

	while ((a->error = soaccept(a->head, 0, NULL, NULL, &so)) == 0) {
		a->served++;
		soclose(so);
	}
}

/* Each connection wakes one waiting thread, and none is missed. */
TEST(several_threads_accept_from_one_listener)
{
	uint16_t port = next_port++;
	struct acceptor a[ACCEPTORS];
	struct socket *head = t_listen(LO, port, 10);
	unsigned served = 0;
	size_t n;
	char c;

	for (unsigned i = 0; i < ACCEPTORS; i++) {
		a[i] = (struct acceptor){ .head = head };
		a[i].td = t_thread(accept_all, &a[i]);
	}
	for (unsigned i = 0; i < 50; i++) {
		struct socket *all[ACCEPTORS];

		for (unsigned k = 0; k < ACCEPTORS; k++)
			all[k] = t_connect(LO, port);
		for (unsigned k = 0; k < ACCEPTORS; k++) {
			CHECK_EQ(t_tryrecv(all[k], &c, 1, 0, &n), 0);
			CHECK_EQ(n, 0);
			soclose(all[k]);
		}
	}
	CHECK_EQ(soshutdown(head, SHUT_RDWR), 0);
	for (unsigned i = 0; i < ACCEPTORS; i++) {
		t_join(a[i].td);
		CHECK_EQ(a[i].error, EINVAL);
		served += a[i].served;
	}
	CHECK_EQ(served, 50 * ACCEPTORS);
	soclose(head);
}

struct watcher {
	struct sowatch	 sw;
	atomic_u32	 calls;
	atomic_u32	 events;
};

static void
watched(struct sowatch *sw, int events)
{
	struct watcher *w = container_of(sw, struct watcher, sw);

	atomic_count_u32(&w->calls, 1);
	atomic_store_u32(&w->events, (uint32_t)events);
}

TEST(watchers_see_each_arrival)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(LO, port, 5);
	struct socket *a = t_connect(LO, port), *b = t_accept(head);
	struct watcher w = { .sw = { .sw_fn = watched } };

	CHECK_EQ(sowatch_add(b, &w.sw, POLLIN), 0);
	t_send(a, "x", 1);
	while (atomic_load_u32(&w.calls) < 1)
		t_sleep(1);
	CHECK(atomic_load_u32(&w.events) & POLLIN);
	t_send(a, "x", 1);
	while (atomic_load_u32(&w.calls) < 2)
		t_sleep(1);
	soclose(a);
	while ((atomic_load_u32(&w.events) & POLLRDHUP) == 0)
		t_sleep(1);
	sowatch_remove(b, &w.sw);
	soclose(b);
	soclose(head);
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	t_boot();
	return (check_main(argc, argv));
}
