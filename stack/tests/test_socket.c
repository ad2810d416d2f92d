/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP sockets over loopback, as a program uses them. */
#include "tests/check.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/time.h>

#include "machine/virtual/virtual.h"
#include "tests/net.h"

#define	LO	"127.0.0.1"

static uint16_t next_port = 7000;

struct pair {
	struct socket	*head, *a, *b;	/* a has connected, b was accepted */
};

static void
set_up(struct pair *p)
{
	uint16_t port = next_port++;

	p->head = t_listen(LO, port, 5);
	p->a = t_connect(LO, port);
	p->b = t_accept(p->head);
}

static void
take_down(struct pair *p)
{
	if (p->a != NULL)
		soclose(p->a);
	if (p->b != NULL)
		soclose(p->b);
	soclose(p->head);
}

static bool
is_readable(void *so)
{
	return ((sopoll(so, POLLIN) & POLLIN) != 0);
}

static bool
is_hungup(void *so)
{
	return ((sopoll(so, POLLIN) & POLLHUP) != 0);
}

#define	SMALL_BUFFER	4096
#define	SMALL_READS	100

static char small_text[SMALL_READS * 1000];

static void
send_text(void *so)
{
	t_send(so, small_text, sizeof(small_text));
}

/* A buffer below a full segment: ACKs make progress, and no timer. */
TEST(a_small_buffer_does_not_wait_for_timers)
{
	uint16_t port = next_port++;
	struct thread *td;
	struct pair p;
	char buf[1000];
	nsec_t start;

	p.head = t_listen(LO, port, 5);
	t_setint(p.head, SOL_SOCKET, SO_RCVBUF, SMALL_BUFFER);
	p.a = t_connect(LO, port);
	p.b = t_accept(p.head);
	t_setint(p.a, SOL_SOCKET, SO_SNDBUF, SMALL_BUFFER);
	start = mach_uptime();		/* virtual time: timers only */
	td = t_thread(send_text, p.a);
	for (unsigned i = 0; i < SMALL_READS; i++)
		t_recv(p.b, buf, sizeof(buf));
	t_join(td);
	CHECK(mach_uptime() - start < NSEC_PER_SEC / 2);
	take_down(&p);
}

TEST(bytes_go_both_ways_and_end)
{
	struct pair p;
	char buf[100];
	size_t n;

	set_up(&p);
	t_send(p.a, "hello", 5);
	CHECK_EQ(t_tryrecv(p.b, buf, sizeof(buf), 0, &n), 0);
	CHECK_EQ(n, 5);
	CHECK_EQ(memcmp(buf, "hello", 5), 0);
	t_send(p.b, "world!", 6);
	CHECK_EQ(soshutdown(p.b, SHUT_WR), 0);
	CHECK_EQ(t_tryrecv(p.a, buf, sizeof(buf), MSG_WAITALL, &n), 0);
	CHECK_EQ(n, 6);
	t_expect_eof(p.a);
	/* half closed: the other direction still works */
	t_send(p.a, "still here", 10);
	t_recv(p.b, buf, 10);
	CHECK_EQ(t_trysend(p.b, "x", 1, 0, &n), EPIPE);
	take_down(&p);
}

TEST(peek_leaves_and_dontwait_returns)
{
	struct pair p;
	char buf[10];
	size_t n;

	set_up(&p);
	CHECK_EQ(t_tryrecv(p.b, buf, 10, MSG_DONTWAIT, &n), EWOULDBLOCK);
	t_send(p.a, "abc", 3);
	CHECK_EQ(t_tryrecv(p.b, buf, 10, MSG_PEEK, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(soavail(p.b), 3);
	CHECK_EQ(t_tryrecv(p.b, buf, 2, 0, &n), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(soavail(p.b), 1);
	take_down(&p);
}

TEST(receive_timeout)
{
	struct pair p;
	struct timeval tv = { 0, 30000 };
	char c;
	size_t n;

	set_up(&p);
	CHECK_EQ(sosetopt(p.b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	CHECK_EQ(t_tryrecv(p.b, &c, 1, 0, &n), EWOULDBLOCK);
	t_send(p.a, "ab", 2);
	CHECK_EQ(t_tryrecv(p.b, &c, 1, 0, &n), 0);
	take_down(&p);
}

TEST(nobody_listens)
{
	struct sockaddr_in sin = t_addr(LO, 9);
	struct socket *so = t_socket(SOCK_STREAM);

	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    ECONNREFUSED);
	/* and again, on the same socket */
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    ECONNREFUSED);
	soclose(so);
}

TEST(no_route)
{
	struct sockaddr_in sin = t_addr("192.0.2.7", 9);
	struct socket *so = t_socket(SOCK_STREAM);

	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    ENETUNREACH);
	soclose(so);
}

TEST(connect_without_waiting)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(LO, port, 5), *b;
	struct socket *a = t_socket(SOCK_STREAM);
	struct sockaddr_in sin = t_addr(LO, port);
	int error;

	error = soconnect(a, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT);
	CHECK_EQ(error, EINPROGRESS);
	b = t_accept(head);
	while ((sopoll(a, POLLOUT) & POLLOUT) == 0)
		t_sleep(1);
	CHECK_EQ(t_getint(a, SOL_SOCKET, SO_ERROR), 0);
	/* as in Linux, the first call returns the result */
	CHECK_EQ(soconnect(a, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	CHECK_EQ(soconnect(a, (struct sockaddr *)&sin, sizeof(sin), 0),
	    EISCONN);
	soclose(a);
	soclose(b);
	soclose(head);
}

TEST(refused_without_waiting)
{
	struct sockaddr_in sin = t_addr(LO, 9);
	struct socket *so = t_socket(SOCK_STREAM);

	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	while ((sopoll(so, POLLOUT) & POLLERR) == 0)
		t_sleep(1);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), 0);
	soclose(so);
}

TEST(bind_conflicts)
{
	struct sockaddr_in sin = t_addr(LO, next_port++), other;
	struct socket *a = t_socket(SOCK_STREAM), *b = t_socket(SOCK_STREAM);
	socklen_t len = sizeof(other);

	CHECK_EQ(sobind(a, (struct sockaddr *)&sin, sizeof(sin)), 0);
	CHECK_EQ(sobind(a, (struct sockaddr *)&sin, sizeof(sin)), EINVAL);
	CHECK_EQ(sobind(b, (struct sockaddr *)&sin, sizeof(sin)), EADDRINUSE);
	other = t_addr("203.0.113.1", 80);
	CHECK_EQ(sobind(b, (struct sockaddr *)&other, sizeof(other)),
	    EADDRNOTAVAIL);
	other.sin_family = AF_UNIX;
	CHECK_EQ(sobind(b, (struct sockaddr *)&other, sizeof(other)),
	    EAFNOSUPPORT);
	CHECK_EQ(sobind(b, (struct sockaddr *)&other, 4), EINVAL);
	other = t_addr("0.0.0.0", 0);
	CHECK_EQ(sobind(b, (struct sockaddr *)&other, sizeof(other)), 0);
	CHECK_EQ(sogetsockname(b, (struct sockaddr *)&other, &len), 0);
	CHECK(ntohs(other.sin_port) >= 10000);
	CHECK_EQ(sogetpeername(b, (struct sockaddr *)&other, &len), ENOTCONN);
	soclose(a);
	soclose(b);
}

TEST(two_listeners_on_a_port)
{
	uint16_t port = next_port++;
	struct sockaddr_in sin = t_addr("0.0.0.0", port);
	struct socket *a = t_listen(LO, port, 5), *b = t_socket(SOCK_STREAM);

	t_setint(b, SOL_SOCKET, SO_REUSEADDR, 1);
	CHECK_EQ(sobind(b, (struct sockaddr *)&sin, sizeof(sin)), EADDRINUSE);
	soclose(a);
	CHECK_EQ(sobind(b, (struct sockaddr *)&sin, sizeof(sin)), 0);
	CHECK_EQ(solisten(b, 1), 0);
	soclose(b);
}

TEST(names_of_both_ends)
{
	struct pair p;
	struct sockaddr_in one, two;
	socklen_t len = sizeof(one);

	set_up(&p);
	CHECK_EQ(sogetsockname(p.a, (struct sockaddr *)&one, &len), 0);
	CHECK_EQ(sogetpeername(p.b, (struct sockaddr *)&two, &len), 0);
	CHECK_EQ(one.sin_port, two.sin_port);
	CHECK_EQ(one.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	take_down(&p);
}

static struct socket *
datagrams(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	struct socket *so = t_socket(SOCK_DGRAM);

	CHECK_EQ(sobind(so, (const struct sockaddr *)from, sizeof(*from)), 0);
	CHECK_EQ(soconnect(so, (const struct sockaddr *)to, sizeof(*to), 0),
	    0);
	return (so);
}

/* A cached connection must include its protocol. */
TEST(datagrams_between_the_names_of_a_connection)
{
	struct pair p;
	struct sockaddr_in one, two;
	struct socket *u, *v;
	socklen_t len = sizeof(one);

	set_up(&p);
	CHECK_EQ(sogetsockname(p.a, (struct sockaddr *)&one, &len), 0);
	CHECK_EQ(sogetpeername(p.a, (struct sockaddr *)&two, &len), 0);
	u = datagrams(&one, &two);
	v = datagrams(&two, &one);
	for (int i = 0; i < 3; i++) {
		t_send(p.a, "segment", 7);
		t_expect(p.b, "segment");
		t_send(u, "datagram", 8);
		t_expect(v, "datagram");
		t_send(p.b, "back", 4);
		t_expect(p.a, "back");
		t_send(v, "answer", 6);
		t_expect(u, "answer");
	}
	take_down(&p);
	t_send(u, "still", 5);
	t_expect(v, "still");
	soclose(u);
	soclose(v);
}

TEST(linger_zero_resets)
{
	struct pair p;
	struct linger l = { 1, 0 };
	char c;
	size_t n;

	set_up(&p);
	CHECK_EQ(sosetopt(p.a, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	soclose(p.a);
	p.a = NULL;
	CHECK_EQ(t_tryrecv(p.b, &c, 1, 0, &n), ECONNRESET);
	CHECK_EQ(t_tryrecv(p.b, &c, 1, 0, &n), 0);
	CHECK_EQ(t_trysend(p.b, "x", 1, 0, &n), EPIPE);
	CHECK(sopoll(p.b, POLLIN) & POLLHUP);
	take_down(&p);
}

TEST(send_before_connect)
{
	struct socket *so = t_socket(SOCK_STREAM);
	char c;
	size_t n;

	CHECK_EQ(t_trysend(so, "x", 1, 0, &n), EPIPE);
	CHECK_EQ(t_tryrecv(so, &c, 1, 0, &n), ENOTCONN);
	CHECK_EQ(soshutdown(so, SHUT_WR), ENOTCONN);
	soclose(so);
}

TEST(a_full_buffer_takes_what_fits)
{
	struct pair p;
	char *buf = calloc(1, 400000);
	size_t n, total = 0;

	set_up(&p);
	t_setint(p.a, SOL_SOCKET, SO_SNDBUF, 50000);
	t_setint(p.b, SOL_SOCKET, SO_RCVBUF, 50000);
	while (t_trysend(p.a, buf, 400000, MSG_DONTWAIT, &n) == 0) {
		CHECK(n > 0);
		total += n;
		t_sleep(1);
	}
	CHECK((sopoll(p.a, POLLOUT) & POLLOUT) == 0);
	CHECK(total < 3000000);
	while (total > 0) {
		CHECK_EQ(t_tryrecv(p.b, buf, 400000, 0, &n), 0);
		total -= n;
	}
	while ((sopoll(p.a, POLLOUT) & POLLOUT) == 0)
		t_sleep(1);
	free(buf);
	take_down(&p);
}

TEST(options_read_back)
{
	struct pair p;
	char name[16];
	socklen_t len = sizeof(name);

	set_up(&p);
	CHECK_EQ(t_getint(p.a, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	CHECK_EQ(t_getint(p.a, SOL_SOCKET, SO_DOMAIN), AF_INET);
	CHECK_EQ(t_getint(p.a, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	CHECK_EQ(t_getint(p.a, SOL_SOCKET, SO_ACCEPTCONN), 0);
	CHECK_EQ(t_getint(p.head, SOL_SOCKET, SO_ACCEPTCONN), 1);
	t_setint(p.a, SOL_SOCKET, SO_SNDBUF, 100000);
	CHECK_EQ(t_getint(p.a, SOL_SOCKET, SO_SNDBUF), 200000);
	CHECK_EQ(t_getint(p.a, IPPROTO_TCP, TCP_NODELAY), 0);
	t_setint(p.a, IPPROTO_TCP, TCP_NODELAY, 1);
	CHECK_EQ(t_getint(p.a, IPPROTO_TCP, TCP_NODELAY), 1);
	CHECK(t_getint(p.a, IPPROTO_TCP, TCP_MAXSEG) > 1000);
	CHECK_EQ(sosetopt(p.a, IPPROTO_TCP, TCP_CONGESTION, "vegas", 5),
	    ENOENT);
	CHECK_EQ(sogetopt(p.a, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	CHECK_STREQ(name, "cubic");
	CHECK_EQ(sosetopt(p.a, SOL_SOCKET, 9999, &len, sizeof(len)),
	    ENOPROTOOPT);
	CHECK_EQ(sosetopt(p.a, SOL_SOCKET, SO_SNDBUF, &len, 1), EINVAL);
	take_down(&p);
}

TEST(tcp_info_tells_the_state)
{
	struct pair p;
	struct tcp_info ti;
	char room[512];
	socklen_t len = sizeof(ti);

	set_up(&p);
	t_send(p.a, "x", 1);
	CHECK_EQ(sogetopt(p.a, IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	CHECK_EQ(ti.tcpi_state, TCP_ESTABLISHED);
	CHECK(ti.tcpi_snd_cwnd >= 10);
	CHECK(ti.tcpi_rtt > 0);
	CHECK_EQ(ti.tcpi_snd_ssthresh, INT32_MAX);
	/* the size that the newest programs request */
	len = sizeof(room);
	CHECK_EQ(sogetopt(p.a, IPPROTO_TCP, TCP_INFO, room, &len), 0);
	CHECK_EQ(len, 280);
	len = sizeof(ti);
	soclose(p.b);
	p.b = NULL;
	CHECK(t_until(is_readable, p.a));
	/* the connection has ended, the descriptor is open */
	CHECK_EQ(sogetopt(p.a, IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	take_down(&p);
}

TEST(the_accept_queue_is_bounded)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(LO, port, 2), *so[8];
	struct sockaddr_in sin = t_addr(LO, port);
	uint64_t before = t_sysctl("net.inet.tcp.stats.listendrop");
	int connected = 0;

	for (size_t i = 0; i < nitems(so); i++) {
		so[i] = t_socket(SOCK_STREAM);
		CHECK_EQ(soconnect(so[i], (struct sockaddr *)&sin,
		    sizeof(sin), MSG_DONTWAIT), EINPROGRESS);
		t_sleep(2);
		connected += (sopoll(so[i], POLLOUT) & POLLOUT) != 0;
	}
	CHECK_EQ(connected, 3);
	CHECK(t_sysctl("net.inet.tcp.stats.listendrop") > before);
	for (size_t i = 0; i < nitems(so); i++)
		soclose(so[i]);
	soclose(head);
}

TEST(closing_a_listener_resets_those_who_wait)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(LO, port, 5), *a = t_connect(LO, port);
	char c;
	size_t n;

	t_sleep(5);
	soclose(head);
	CHECK(t_until(is_hungup, a));
	CHECK_EQ(t_tryrecv(a, &c, 1, 0, &n), ECONNRESET);
	soclose(a);
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	t_boot();
	return (check_main(argc, argv));
}
