/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections in groups that belong to workers (net.inet.tcp.pcbtable=
 * groups-thread): what happens to segments and calls on other threads.
 * Under loss, and with threads that share sockets, see the runs of the tests
 * of streams and of churn with it.
 */
#include "tests/check.h"

#include <errno.h>

#include "kern/sysctl.h"
#include "net/netisr.h"
#include "netinet/in_pcbtable.h"
#include "netinet/tcp_var.h"
#include "tests/net.h"

#define	LO		"127.0.0.1"
/* in one of two groups: all in one is improbable */
#define	CONNECTIONS	64

static bool
all_gone(void *start)
{
	return (so_count() <= *(uint32_t *)start);
}

struct pair {
	struct socket	*a, *b;
};

static void
open_pairs(struct socket *head, const char *ip, uint16_t port,
    struct pair pairs[])
{
	for (int i = 0; i < CONNECTIONS; i++) {
		pairs[i].a = t_connect(ip, port);
		pairs[i].b = t_accept(head);
	}
}

static void
close_pairs(struct pair pairs[])
{
	for (int i = 0; i < CONNECTIONS; i++) {
		soclose(pairs[i].a);
		soclose(pairs[i].b);
	}
}

static void
check_pairs(struct pair pairs[])
{
	for (int i = 0; i < CONNECTIONS; i++)
		t_send(pairs[i].a, "there", 5);
	for (int i = 0; i < CONNECTIONS; i++) {
		t_expect(pairs[i].b, "there");
		t_send(pairs[i].b, "back", 4);
	}
	for (int i = 0; i < CONNECTIONS; i++)
		t_expect(pairs[i].a, "back");
}

TEST(a_listener_of_any_address_serves_every_group)
{
	uint64_t handed = t_sysctl("net.inet.ip.stats.pcbhanded");
	struct socket *head = t_listen("0.0.0.0", 7700, CONNECTIONS);
	struct pair pairs[CONNECTIONS];

	open_pairs(head, LO, 7700, pairs);
	check_pairs(pairs);
	/* the thread that received them has at most one group */
	CHECK(t_sysctl("net.inet.ip.stats.pcbhanded") > handed);
	close_pairs(pairs);
	soclose(head);
}

TEST(a_listener_of_an_address_comes_before_one_of_any)
{
	struct socket *any = t_listen("0.0.0.0", 7701, CONNECTIONS);
	struct socket *one = t_listen("10.9.0.1", 7702, CONNECTIONS);
	struct pair pairs[CONNECTIONS];
	struct socket *so = t_socket(SOCK_STREAM);
	struct sockaddr_in sin = t_addr(LO, 7702);

	open_pairs(one, "10.9.0.1", 7702, pairs);
	check_pairs(pairs);
	close_pairs(pairs);
	/* no group has it, and no listener is at this address */
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    ECONNREFUSED);
	soclose(so);
	soclose(any);
	soclose(one);
}

/* A call opens and closes connections in groups of other threads. */
TEST(calls_leave_notes_to_the_workers)
{
	uint64_t notes = t_sysctl("net.inet.ip.stats.pcbnotes");
	uint32_t start = so_count();
	struct socket *head = t_listen(LO, 7703, CONNECTIONS);
	struct pair pairs[CONNECTIONS];

	t_sysctl_set("net.inet.tcp.msl", "1");
	open_pairs(head, LO, 7703, pairs);
	CHECK(t_sysctl("net.inet.ip.stats.pcbnotes") >= notes + CONNECTIONS);
	close_pairs(pairs);
	soclose(head);
	/* a worker without segments releases sockets, too */
	CHECK(t_until(all_gone, &start));
	t_sysctl_set("net.inet.tcp.msl", "30000");
}

TEST(a_port_is_used_again_at_once)
{
	struct socket *head = t_listen(LO, 7704, 5);
	struct sockaddr_in from = t_addr(LO, 7705), to = t_addr(LO, 7704);
	struct linger reset = { .l_onoff = 1 };

	for (int i = 0; i < 200; i++) {
		struct socket *a = t_socket(SOCK_STREAM), *b;

		CHECK_EQ(sosetopt(a, SOL_SOCKET, SO_LINGER, &reset,
		    sizeof(reset)), 0);
		t_setint(a, SOL_SOCKET, SO_REUSEADDR, 1);
		CHECK_EQ(sobind(a, (struct sockaddr *)&from, sizeof(from)),
		    0);
		CHECK_EQ(soconnect(a, (struct sockaddr *)&to, sizeof(to), 0),
		    0);
		b = t_accept(head);
		t_send(a, "again", 5);
		t_expect(b, "again");
		/* the old one is in its group until the note is read */
		soclose(b);
		soclose(a);
	}
	soclose(head);
}

/* ICMP errors and calls look connections up in any thread. */
TEST(other_threads_find_connections_in_the_table)
{
	struct socket *head = t_listen(LO, 7706, 5), *so;
	struct socket *a = t_connect(LO, 7706), *b = t_accept(head);
	const struct tcpcb *tp = a->so_pcb;
	struct in_conninfo c = tp->t_inp.inp_conn;

	for (unsigned i = 0; i < netisr_workers(); i++)
		CHECK(!netisr_is_worker(i));
	so = in_pcblookup_conn(&tcp_table, &c);
	CHECK(so == a);
	sorele(so);
	CHECK(in_pcbconnected(&tcp_table, &c));
	c.lport ^= 1;
	CHECK(in_pcblookup_conn(&tcp_table, &c) == NULL);
	CHECK(!in_pcbconnected(&tcp_table, &c));
	soclose(a);
	soclose(b);
	soclose(head);
}

#define	TURNS	100

static void
call_often(void *arg)
{
	const uint16_t port = (uint16_t)(uintptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		struct socket *so = t_connect(LO, port);

		t_send(so, "x", 1);
		t_expect(so, "y");
		soclose(so);
	}
}

static void
answer_often(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		struct socket *so = t_accept(arg);

		t_expect(so, "x");
		t_send(so, "y", 1);
		soclose(so);
	}
}

TEST(threads_call_while_others_hang_up)
{
	enum { CALLERS = 4 };
	uint32_t start = so_count();
	struct thread *td[2 * CALLERS];
	struct socket *head[CALLERS];

	t_sysctl_set("net.inet.tcp.msl", "1");
	for (uintptr_t i = 0; i < CALLERS; i++) {
		const uint16_t port = (uint16_t)(7710 + i);

		head[i] = t_listen(LO, port, 5);
		td[2 * i] = t_thread(answer_often, head[i]);
		td[2 * i + 1] = t_thread(call_often, (void *)(uintptr_t)port);
	}
	for (int i = 0; i < 2 * CALLERS; i++)
		t_join(td[i]);
	for (int i = 0; i < CALLERS; i++)
		soclose(head[i]);
	CHECK(t_until(all_gone, &start));
	t_sysctl_set("net.inet.tcp.msl", "30000");
}

int
main(int argc, char **argv)
{
	CHECK_EQ(setenv("STACK_TUNABLES", "net.inet.tcp.pcbtable=groups-thread "
	    "net.isr.maxthreads=2", 1), 0);
	t_boot();
	t_mirror_attach("mem0", "10.9.0.1/24", 0,
	    &(struct impair_config){ .seed = 1 });
	return (check_main(argc, argv));
}
