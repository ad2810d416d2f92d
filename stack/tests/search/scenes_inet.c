/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of TCP over the loopback, whose input is a netisr's, and of UDP
 * through two mirrors.
 */
#include "tests/search/scenes.h"

#include <errno.h>

#include "tests/check.h"
#include "tests/net.h"

#define	LO		"127.0.0.1"
#define	PORT		7000

/* Closes with a reset and without TIME-WAIT. */
static void
reset_one(void *so)
{
	const struct linger now = { .l_onoff = 1 };

	CHECK_EQ(sosetopt(so, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)soclose(so);
}

/* Both ends of a connection, and no listener. */
static void
connect_pair(struct socket *pair[2])
{
	struct socket *head = t_listen(LO, PORT, 1);

	pair[0] = t_connect(LO, PORT);
	pair[1] = t_accept(head);
	(void)soclose(head);
}

/* Two threads send, one receives, and the scene's functions close both ends. */
static void
shut_pair(void (*close0)(void *), void (*close1)(void *))
{
	uint32_t start = so_count();
	struct socket *pair[2];
	struct thread *td[5];

	connect_pair(pair);
	soref(pair[0]);
	soref(pair[0]);
	soref(pair[1]);
	td[0] = t_thread(scene_send_some, pair[0]);
	td[1] = t_thread(scene_send_some, pair[0]);
	td[2] = t_thread(scene_receive_all, pair[1]);
	td[3] = t_thread(close0, pair[0]);
	td[4] = t_thread(close1, pair[1]);
	for (unsigned i = 0; i < 5; i++)
		t_join(td[i]);
	CHECK(t_until(scene_none_left, &start));
}

static void
close_scene(void)
{
	shut_pair(scene_close_one, scene_close_one);
}

static void
reset_scene(void)
{
	shut_pair(reset_one, scene_close_one);
}

static void
connect_once(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, PORT);
	struct socket *so = t_socket(SOCK_STREAM);

	(void)arg;
	(void)soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0);
	reset_one(so);
}

static void
accept_until_closed(void *head)
{
	struct socket *so;

	while (soaccept(head, 0, NULL, NULL, &so) == 0)
		reset_one(so);
	sorele(head);
}

static void
accept_scene(void)
{
	uint32_t start = so_count();
	struct socket *head = t_listen(LO, PORT, 1);
	struct thread *td[4];

	soref(head);
	td[0] = t_thread(accept_until_closed, head);
	td[1] = t_thread(connect_once, NULL);
	td[2] = t_thread(connect_once, NULL);
	td[3] = t_thread(scene_close_one, head);
	for (unsigned i = 0; i < 4; i++)
		t_join(td[i]);
	CHECK(t_until(scene_none_left, &start));
}

/* A thread that waits for one connection does not sleep on. */
static void
accept_once(void *head)
{
	reset_one(t_accept(head));
}

static void
copies_scene(void)
{
	uint32_t start = so_count();
	struct socket *head = t_listen(LO, PORT, 4);
	struct thread *td[2];

	td[0] = t_thread(accept_once, head);
	td[1] = t_thread(connect_once, NULL);
	t_join(td[0]);
	t_join(td[1]);
	(void)soclose(head);
	CHECK(t_until(scene_none_left, &start));
}

/* The listener is closed as soon as it has a connection. */
static void
accept_and_close(void *head)
{
	reset_one(t_accept(head));
	(void)soclose(head);
}

static void
listen_scene(void)
{
	uint32_t start = so_count();
	struct thread *td[2];

	td[0] = t_thread(accept_and_close, t_listen(LO, PORT, 1));
	td[1] = t_thread(connect_once, NULL);
	t_join(td[0]);
	t_join(td[1]);
	CHECK(t_until(scene_none_left, &start));
}

/* A request and its response, while another thread queries the same socket. */
static void
ask(void *so)
{
	for (unsigned i = 0; i < 2; i++) {
		t_send(so, "?", 1);
		t_expect(so, "!");
	}
}

static void
answer(void *so)
{
	for (unsigned i = 0; i < 2; i++) {
		t_expect(so, "?");
		t_send(so, "!", 1);
	}
}

static void
look(void *so)
{
	for (unsigned i = 0; i < 4; i++)
		(void)sopoll(so, 1);
}

static void
request_scene(void)
{
	uint32_t start = so_count();
	struct socket *pair[2];
	struct thread *td[4];

	connect_pair(pair);
	td[0] = t_thread(ask, pair[0]);
	td[1] = t_thread(look, pair[0]);
	td[2] = t_thread(look, pair[1]);
	td[3] = t_thread(answer, pair[1]);
	for (unsigned i = 0; i < 4; i++)
		t_join(td[i]);
	reset_one(pair[0]);
	(void)soclose(pair[1]);
	CHECK(t_until(scene_none_left, &start));
}

/* Datagrams through the mirrors at the ends of mem1 and mem2. */
#define	DATAGRAMS	3
#define	SENDERS		2

static struct socket *mirrored[SENDERS];

static struct socket *
mirrored_socket(unsigned n)
{
	struct sockaddr_in sin;
	struct socket *so = t_socket(SOCK_DGRAM);
	char ip[16];

	snprintf(ip, sizeof(ip), "10.1.%u.1", n + 1);
	sin = t_addr(ip, PORT);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
	snprintf(ip, sizeof(ip), "10.1.%u.2", n + 1);
	sin = t_addr(ip, PORT);
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	return (so);
}

static void
send_datagrams(void *so)
{
	for (char c = 0; c < DATAGRAMS; c++)
		t_send(so, &c, 1);
}

/* No datagram is lost or reordered. */
static void
receive_datagrams(void *so)
{
	for (char c = 0; c < DATAGRAMS; c++) {
		char got = -1;

		t_recv(so, &got, 1);
		CHECK_EQ(got, c);
	}
}

/*
 * Packets may be reordered while dispatch changes, so one is in flight at a
 * time.
 */
static void
echo_datagrams(void *so)
{
	for (char c = 0; c < DATAGRAMS; c++) {
		char got = -1;

		t_send(so, &c, 1);
		t_recv(so, &got, 1);
		CHECK_EQ(got, c);
	}
}

/* Before the search: the far ends' addresses on the link are known, too. */
static void
mirror_prepare(void)
{
	for (unsigned i = 0; i < SENDERS; i++) {
		mirrored[i] = mirrored_socket(i);
		echo_datagrams(mirrored[i]);
	}
}

static void
exchange(struct socket *so[SENDERS])
{
	struct thread *td[2 * SENDERS];

	for (unsigned i = 0; i < SENDERS; i++) {
		td[i] = t_thread(send_datagrams, so[i]);
		td[SENDERS + i] = t_thread(receive_datagrams, so[i]);
	}
	for (unsigned i = 0; i < 2 * SENDERS; i++)
		t_join(td[i]);
}

static void
mirror_scene(void)
{
	exchange(mirrored);
}

/* Each socket sends to itself: one queue, which senders and worker handle. */
static void
loopback_scene(void)
{
	struct socket *so[SENDERS];

	for (unsigned i = 0; i < SENDERS; i++) {
		struct sockaddr_in sin = t_addr("127.0.0.1",
		    (uint16_t)(PORT + i));

		so[i] = t_socket(SOCK_DGRAM);
		CHECK_EQ(sobind(so[i], (struct sockaddr *)&sin, sizeof(sin)),
		    0);
		CHECK_EQ(soconnect(so[i], (struct sockaddr *)&sin, sizeof(sin),
		    0), 0);
	}
	exchange(so);
	for (unsigned i = 0; i < SENDERS; i++)
		(void)soclose(so[i]);
}

/*
 * Datagrams to neighbours of which the table has room for one: each sender
 * evicts the entry that the other one reads.  Datagrams are lost meanwhile.
 */
static void
send_to_neighbour(void *arg)
{
	struct socket *so = t_socket(SOCK_DGRAM);
	struct sockaddr_in sin;
	size_t sent;
	char ip[16];

	snprintf(ip, sizeof(ip), "10.1.1.%u", 2 + (unsigned)(uintptr_t)arg);
	sin = t_addr(ip, PORT);
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	for (unsigned i = 0; i < DATAGRAMS; i++)
		(void)t_trysend(so, "!", 1, 0, &sent);
	(void)soclose(so);
}

static void
neighbour_scene(void)
{
	struct thread *td[3];

	for (uintptr_t i = 0; i < nitems(td); i++)
		td[i] = t_thread(send_to_neighbour, (void *)i);
	for (unsigned i = 0; i < nitems(td); i++)
		t_join(td[i]);
}

/* Datagrams to a port that another thread binds and closes meanwhile. */
static void
send_to_port(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, PORT);
	struct socket *so = t_socket(SOCK_DGRAM);
	size_t sent;

	(void)arg;
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	for (unsigned i = 0; i < DATAGRAMS; i++)
		(void)t_trysend(so, "!", 1, 0, &sent);
	(void)soclose(so);
}

static void
bind_and_close(void *arg)
{
	struct sockaddr_in sin = t_addr(LO, PORT);

	(void)arg;
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		struct socket *so = t_socket(SOCK_DGRAM);

		CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
		(void)soclose(so);
	}
}

static void
udp_close_scene(void)
{
	uint32_t start = so_count();
	struct thread *td[3];

	td[0] = t_thread(bind_and_close, NULL);
	td[1] = t_thread(send_to_port, NULL);
	td[2] = t_thread(send_to_port, NULL);
	for (unsigned i = 0; i < nitems(td); i++)
		t_join(td[i]);
	CHECK(t_until(scene_none_left, &start));
}

static void
reconfigure(void *arg)
{
	(void)arg;
	t_sysctl_set("net.isr.dispatch", "hybrid");
	t_sysctl_set("net.isr.dispatch", "direct");
	t_sysctl_set("net.isr.dispatch", "deferred");
}

static void
reconfigure_scene(void)
{
	struct thread *td[SENDERS + 1];

	td[SENDERS] = t_thread(reconfigure, NULL);
	for (unsigned i = 0; i < SENDERS; i++)
		td[i] = t_thread(echo_datagrams, mirrored[i]);
	for (unsigned i = 0; i <= SENDERS; i++)
		t_join(td[i]);
}

#define	TCP		"lock.mutex=block net.inet.tcp.msl=1 "
#define	MIRRORS		"lock.mutex=block if.mem1.inet=10.1.1.1/24 "	\
			"if.mem1.wire=mirror if.mem2.inet=10.1.2.1/24 "	\
			"if.mem2.wire=mirror "

const struct scene inet_scenes[] = {
	{ "tcp-close", "a connection that is closed from both ends", TCP,
	    NULL, close_scene },
	{ "tcp-reset", "... or reset from one", TCP, NULL, reset_scene },
	{ "tcp-accept", "connections to a listener that is closed", TCP,
	    NULL, accept_scene },
	{ "tcp-copies", "a connection for a thread that waits for it", TCP,
	    NULL, copies_scene },
	{ "tcp-listen", "a connection whose listener is closed at once",
	    TCP "kern.ipc.listeners=one net.inet.tcp.listeners=lock", NULL,
	    listen_scene },
	{ "tcp-copies-close", "the same, where the listener has copies", TCP,
	    NULL, listen_scene },
	{ "tcp-batch", "the same, where segments keep the lock",
	    TCP "net.inet.tcp.input=shared-socket-batch", NULL, accept_scene },
	{ "tcp-backlog", "requests of a socket whose owner segments wait for",
	    TCP "net.inet.tcp.input=backlog", NULL, request_scene },
	{ "netisr", "datagrams of two flows, with hybrid dispatch",
	    MIRRORS "net.isr.dispatch=hybrid", mirror_prepare,
	    mirror_scene },
	{ "loopback", "datagrams to itself, which the sender handles",
	    "lock.mutex=block", NULL, loopback_scene },
	{ "neighbour", "datagrams to more neighbours than the table has room "
	    "for", MIRRORS "net.link.ether.arp.maxentries=1", mirror_prepare,
	    neighbour_scene },
	{ "udp-close", "datagrams to a socket that is closed",
	    "lock.mutex=block", NULL, udp_close_scene },
	{ "reconfigure", "datagrams while their dispatch changes", MIRRORS,
	    mirror_prepare, reconfigure_scene },
	{ .name = NULL },
};
