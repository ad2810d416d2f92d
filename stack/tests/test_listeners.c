/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners with a copy for each CPU (kern.ipc.listeners=cpu): what programs
 * see of the copies.  Threads of each CPU connect.
 */
#include "tests/check.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "kern/socopies.h"
#include "tests/net.h"
#include "tests/threads.h"

#define	LO	"127.0.0.1"
#define	PORT	7900
#define	FULL	7901	/* of a listener whose queue is full */
#define	EACH	20		/* connections of a thread */

static struct socket *clients[NTHREADS][EACH];

/* Opens connections on one CPU; a refused one is NULL. */
static void
connect_some(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, PORT);

	for (unsigned i = 0; i < EACH; i++) {
		struct socket *so = t_socket(SOCK_STREAM);

		clients[(uintptr_t)arg][i] = so;
		CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
		    0), 0);
	}
}

static void
connect_from_all(void (*fn)(void *))
{
	struct thread *td[NTHREADS];

	for (unsigned i = 0; i < NTHREADS; i++)
		CHECK_EQ(kthread_create("test", (int)(i % mach_ncpus()), fn,
		    (void *)(uintptr_t)i, &td[i]), 0);
	for (unsigned i = 0; i < NTHREADS; i++)
		kthread_join(td[i]);
}

static void
close_clients(void)
{
	for (unsigned i = 0; i < NTHREADS; i++)
		for (unsigned k = 0; k < EACH; k++)
			soclose(clients[i][k]);
}

TEST(a_listener_has_a_copy_for_each_cpu)
{
	struct socket *head = t_listen(LO, PORT, 1);
	const struct socopies *sc = socopies_of(head);

	CHECK_EQ(sc != NULL ? sc->sc_count : 1, mach_ncpus());
	soclose(head);
}

TEST(one_thread_accepts_what_all_copies_have)
{
	struct socket *head = t_listen(LO, PORT, NTHREADS * EACH);

	CHECK_EQ(sopoll(head, POLLIN), 0);
	connect_from_all(connect_some);
	CHECK_EQ(sopoll(head, POLLIN), POLLIN);
	for (unsigned i = 0; i < NTHREADS * EACH; i++)
		soclose(t_accept(head));
	CHECK_EQ(sopoll(head, POLLIN), 0);
	close_clients();
	soclose(head);
}

/* Opens one connection on one CPU. */
static void
connect_one(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, PORT);
	struct socket **sop = arg;

	*sop = t_socket(SOCK_STREAM);
	CHECK_EQ(soconnect(*sop, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
}

struct queued {
	struct socket	*head;
	unsigned	 wanted;
};

static unsigned
queued(struct socket *head)
{
	const struct socopies *sc = socopies_of(head);
	unsigned n = atomic_load_u32(&head->so_qlen);

	for (unsigned i = 0; sc != NULL && i < sc->sc_count; i++)
		n += atomic_load_u32(&sc->sc_copy[i]->so_qlen);
	return (n);
}

static bool
is_queued(void *arg)
{
	const struct queued *q = arg;

	return (queued(q->head) == q->wanted);
}

static in_port_t
port_of(struct socket *so, int (*name)(struct socket *, struct sockaddr *,
    socklen_t *))
{
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	CHECK_EQ(name(so, (struct sockaddr *)&sin, &len), 0);
	return (sin.sin_port);
}

TEST(connections_are_accepted_in_their_order)
{
	struct socket *head = t_listen(LO, PORT, 2 * NTHREADS), *so;
	struct socket *client[2 * NTHREADS];
	struct thread *td;

	for (unsigned i = 0; i < 2 * NTHREADS; i++) {
		CHECK_EQ(kthread_create("test", (int)((i / 2) % mach_ncpus()),
		    connect_one, &client[i], &td), 0);
		kthread_join(td);
		CHECK(t_until(is_queued, &(struct queued){ head, i + 1 }));
	}
	for (unsigned i = 0; i < 2 * NTHREADS; i++) {
		so = t_accept(head);
		CHECK_EQ(port_of(so, sogetpeername),
		    port_of(client[i], sogetsockname));
		soclose(so);
		soclose(client[i]);
	}
	soclose(head);
}

static void
accept_some(void *head)
{
	for (unsigned i = 0; i < NTHREADS * EACH; i++)
		soclose(t_accept(head));
}

TEST(a_thread_that_sleeps_gets_the_connections_of_other_copies)
{
	struct socket *head = t_listen(LO, PORT, NTHREADS * EACH);
	struct thread *td = t_thread(accept_some, head);

	connect_from_all(connect_some);
	t_join(td);
	close_clients();
	soclose(head);
}

static bool
has_dropped(void *before)
{
	return (t_sysctl("net.inet.tcp.stats.listendrop") >
	    *(uint64_t *)before);
}

/* Does not wait for the end of the handshake. */
static void
begin_some(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, FULL);

	for (unsigned i = 0; i < EACH; i++) {
		struct socket *so = t_socket(SOCK_STREAM);

		clients[(uintptr_t)arg][i] = so;
		CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
		    MSG_DONTWAIT), EINPROGRESS);
	}
}

/*
 * The copies of all CPUs may each add one to a queue that has room for one.
 * Its clients try further, so a later listener at this port would get them.
 */
TEST(the_backlog_limits_all_copies_together)
{
	uint64_t before = t_sysctl("net.inet.tcp.stats.listendrop");
	struct socket *head = t_listen(LO, FULL, 2);

	connect_from_all(begin_some);
	CHECK(t_until(has_dropped, &before));
	CHECK(queued(head) > 0);
	CHECK(queued(head) <= 2 + mach_ncpus());
	close_clients();
	soclose(head);
}

TEST(options_and_the_end_of_a_listener_reach_its_copies)
{
	struct socket *head = t_listen(LO, PORT, NTHREADS * EACH), *so;

	t_setint(head, IPPROTO_TCP, TCP_NODELAY, 1);
	connect_from_all(connect_some);
	for (unsigned i = 0; i < NTHREADS * EACH - 1; i++) {
		so = t_accept(head);
		CHECK_EQ(t_getint(so, IPPROTO_TCP, TCP_NODELAY), 1);
		soclose(so);
	}
	CHECK_EQ(soshutdown(head, SHUT_RD), 0);
	CHECK_EQ(soaccept(head, 0, NULL, NULL, &so), EINVAL);
	close_clients();
	soclose(head);
}

int
main(int argc, char **argv)
{
	t_boot();
	return (check_main(argc, argv));
}
