/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP's socket options do, against single segments and in virtual
 * time.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8087
#define	MSS	1000		/* the peer's window */

static uint8_t bytes[8 * MSS];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

static void
open_pair(struct fixture *f)
{
	f->so = peer_accept(&f->p, PORT, &f->head);
}

static void
close_pair(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

TEST(quickack_delays_nothing)
{
	struct fixture f;
	struct peer_seg s;

	open_pair(&f);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	CHECK(!peer_next(&s));
	t_setint(f.so, IPPROTO_TCP, TCP_QUICKACK, 1);
	CHECK(peer_next(&s));		/* the data held back */
	CHECK_EQ(s.ack, f.p.snd_nxt + 10);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 10, f.p.rcv_nxt, bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 20);
	t_setint(f.so, IPPROTO_TCP, TCP_QUICKACK, 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 20, f.p.rcv_nxt, bytes, 10);
	CHECK(!peer_next(&s));
	close_pair(&f);
}

/* The peer's window takes one segment. */
static void
open_narrow(struct fixture *f)
{
	open_pair(f);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt++, f->p.rcv_nxt, bytes, 1);
	f->p.window = MSS;
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
}

/* Of the bytes that the window does not allow, only a few may be queued. */
TEST(notsent_lowat_bounds_what_waits)
{
	struct fixture f;
	size_t done;

	open_narrow(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 500);
	t_send(f.so, bytes, MSS);
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	t_send(f.so, bytes, 600);
	CHECK(!(sopoll(f.so, POLLOUT) & POLLOUT));
	CHECK_EQ(t_trysend(f.so, bytes, 1, MSG_DONTWAIT, &done), EWOULDBLOCK);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + MSS, NULL, 0);
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	close_pair(&f);
}

/* A large write adds one buffer at a time until the limit is reached. */
TEST(notsent_lowat_cuts_a_large_write)
{
	static uint8_t large[100000];
	struct fixture f;
	size_t done;

	open_narrow(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 500);
	CHECK_EQ(t_trysend(f.so, large, sizeof(large), MSG_DONTWAIT, &done),
	    0);
	CHECK_EQ(done, MJUMBYTES);
	CHECK(!(sopoll(f.so, POLLOUT) & POLLOUT));
	/* a large write adds a whole buffer, which exceeds the limit */
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, MJUMBYTES);
	CHECK_EQ(t_trysend(f.so, large, sizeof(large), MSG_DONTWAIT, &done),
	    0);
	CHECK_EQ(done, MJUMBYTES);
	close_pair(&f);
}

TEST(notsent_lowat_of_all_sockets)
{
	struct fixture f;

	t_sysctl_set("net.inet.tcp.notsent_lowat", "500");
	open_narrow(&f);
	t_send(f.so, bytes, MSS + 600);
	CHECK(!(sopoll(f.so, POLLOUT) & POLLOUT));
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 601);
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0);
	CHECK(!(sopoll(f.so, POLLOUT) & POLLOUT));
	t_sysctl_set("net.inet.tcp.notsent_lowat", "4294967295");
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	close_pair(&f);
}

/* The largest limits are none. */
TEST(notsent_lowat_may_be_as_large_as_possible)
{
	static const int limits[] = { -1, -2, INT32_MAX, INT32_MAX - 1 };
	struct fixture f;

	open_narrow(&f);
	t_send(f.so, bytes, MSS + 600);
	for (size_t i = 0; i < nitems(limits); i++) {
		t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, limits[i]);
		CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	}
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0);
	t_sysctl_set("net.inet.tcp.notsent_lowat", "4294967294");
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	t_sysctl_set("net.inet.tcp.notsent_lowat", "4294967295");
	close_pair(&f);
}

static void
write_more(void *so)
{
	t_send(so, bytes, 600);
}

/* A writer continues when unsent data is sent, not when it is acknowledged. */
TEST(notsent_lowat_wakes_a_writer)
{
	struct thread *writer;
	struct peer_seg s;
	struct fixture f;

	open_narrow(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 500);
	t_send(f.so, bytes, MSS + 600);
	writer = t_thread(write_more, f.so);
	t_sleep(10);
	peer_forget();
	/* the window opens, but nothing is acknowledged */
	f.p.window = 2 * MSS;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, 600);
	t_join(writer);
	close_pair(&f);
}

static void
handshake(struct peer *p)
{
	struct peer_seg s;

	*p = (struct peer){ .window = 1000 };
	peer_syn(p, PORT, 0, &s);
	peer_send(p, TH_ACK, p->snd_nxt, p->rcv_nxt, NULL, 0);
}

TEST(defer_accept_waits_for_a_request)
{
	struct fixture f;

	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	t_setint(f.head, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5);
	peer_forget();
	handshake(&f.p);
	CHECK_EQ(soready(f.head), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, "GET", 3);
	CHECK(sopoll(f.head, POLLIN) & POLLIN);
	f.so = t_accept(f.head);
	close_pair(&f);
}

/*
 * After the timeout any ACK completes it, for example of a retransmitted SYN-
 * ACK.
 */
TEST(defer_accept_ends)
{
	struct fixture f;

	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	t_setint(f.head, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5);
	peer_forget();
	handshake(&f.p);
	t_sleep(6000);
	CHECK_EQ(soready(f.head), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	f.so = t_accept(f.head);
	close_pair(&f);
}

/* Timeouts back off to 0.2, 0.6 and 1.4 seconds; the user timeout is exact. */
TEST(user_timeout_is_met)
{
	struct fixture f;
	nsec_t start;
	size_t done;
	char c;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000);
	t_send(f.so, bytes, 10);
	start = mach_uptime();
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &done), ETIMEDOUT);
	CHECK((mach_uptime() - start) / NSEC_PER_MSEC - 1000 < 100);
	close_pair(&f);
}

/* Waits until the connection has timed out; returns the milliseconds. */
static unsigned
time_out(struct fixture *f)
{
	const nsec_t start = mach_uptime();

	while (t_getint(f->so, SOL_SOCKET, SO_ERROR) != ETIMEDOUT)
		t_sleep(10);
	return ((unsigned)((mach_uptime() - start) / NSEC_PER_MSEC));
}

/*
 * At a shut window it counts from the first probe, as in Linux, whether the
 * peer answers or not.
 */
TEST(user_timeout_is_met_at_a_shut_window)
{
	struct fixture f;
	unsigned ms;

	for (unsigned limit = 1000; limit <= 10000; limit += 3000) {
		open_pair(&f);
		t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)limit);
		peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
		f.p.window = 0;
		peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
		t_send(f.so, bytes, 11);
		ms = time_out(&f);
		CHECK(ms >= limit + 190 && ms <= limit + 230);
		close_pair(&f);
	}
}

TEST(user_timeout_is_met_between_keepalive_probes)
{
	struct fixture f;
	unsigned ms;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPIDLE, 10);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPINTVL, 75);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 13000);
	t_setint(f.so, SOL_SOCKET, SO_KEEPALIVE, 1);
	ms = time_out(&f);
	CHECK(ms >= 12900 && ms <= 13100);
	close_pair(&f);
}

TEST(user_timeout_counts_instead_of_keepalive_probes)
{
	struct fixture f;
	nsec_t start;
	size_t done;
	char c;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPIDLE, 10);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPCNT, 100);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 13000);
	t_setint(f.so, SOL_SOCKET, SO_KEEPALIVE, 1);
	start = mach_uptime();
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &done), ETIMEDOUT);
	CHECK((mach_uptime() - start) / NSEC_PER_SEC < 15);
	close_pair(&f);
}

/* A close() in another thread. */
struct closing {
	struct socket	*so;
	atomic_u32	 done;
};

static void
close_it(void *arg)
{
	struct closing *c = arg;

	CHECK_EQ(soclose(c->so), 0);
	atomic_store_rel_u32(&c->done, 1);
}

/*
 * SO_LINGER waits for the ACK of data and FIN, in each order of closing (first:
 * the peer's FIN comes before).
 */
static void
check_linger(bool first, uint32_t len)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 3 };
	struct closing c = { .done = 0 };
	struct fixture f;
	struct thread *td;

	open_pair(&f);
	c.so = f.so;
	CHECK_EQ(sosetopt(f.so, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	if (first)
		peer_send(&f.p, TH_FIN | TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt,
		    NULL, 0);
	if (len > 0)
		t_send(f.so, bytes, len);
	td = t_thread(close_it, &c);
	t_sleep(100);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + len, NULL, 0);
	t_sleep(100);
	CHECK_EQ(atomic_load_acq_u32(&c.done), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + len + 1, NULL, 0);
	t_sleep(1);
	CHECK_EQ(atomic_load_acq_u32(&c.done), 1);
	t_join(td);
	peer_send(&f.p, TH_RST, f.p.snd_nxt, 0, NULL, 0);
	soclose(f.head);
	peer_forget();
}

TEST(linger_waits_for_the_ack_of_the_end)
{
	check_linger(false, 0);
	check_linger(false, 100);
	check_linger(true, 0);
	check_linger(true, 100);
}

TEST(linger_ends_with_its_time_or_the_connection)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 3 };
	struct fixture f;
	nsec_t start;

	open_pair(&f);
	CHECK_EQ(sosetopt(f.so, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	start = mach_uptime();
	CHECK_EQ(soclose(f.so), 0);
	CHECK_EQ((mach_uptime() - start) / (100 * NSEC_PER_MSEC), 30);
	peer_send(&f.p, TH_RST, f.p.snd_nxt, 0, NULL, 0);
	soclose(f.head);
	open_pair(&f);			/* unread data: a reset, at once */
	CHECK_EQ(sosetopt(f.so, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	start = mach_uptime();
	CHECK_EQ(soclose(f.so), 0);
	CHECK(mach_uptime() - start < NSEC_PER_SEC);
	soclose(f.head);
	peer_forget();
}

/*
 * Delivers segments of MSS bytes and reads them; returns the window of the last
 * ACK.
 */
static uint16_t
stream(struct fixture *f, unsigned segments)
{
	struct peer_seg s = { .window = 0 };
	uint8_t got[MSS];

	for (unsigned i = 0; i < segments; i++) {
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, bytes,
		    MSS);
		f->p.snd_nxt += MSS;
		t_recv(f->so, got, MSS);
		while (peer_next(&s))
			;
	}
	return (s.window);
}

TEST(window_is_clamped)
{
	struct fixture f;

	open_pair(&f);
	CHECK(stream(&f, 80) > 60000);
	t_setint(f.so, IPPROTO_TCP, TCP_WINDOW_CLAMP, 3000);
	/* an advertised window does not shrink */
	CHECK(stream(&f, 80) <= 3000);
	close_pair(&f);
}

TEST(as_many_syns_as_asked_for)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 9000);
	struct socket *so = t_socket(SOCK_STREAM);
	struct peer_seg s;
	unsigned syns = 0;

	t_setint(so, IPPROTO_TCP, TCP_SYNCNT, 2);
	peer_forget();
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0),
	    ETIMEDOUT);
	while (peer_next(&s))
		syns += (s.flags & TH_SYN) != 0;
	CHECK_EQ(syns, 3);
	soclose(so);
}

/*
 * Whether a connection exists this many milliseconds after it entered
 * FIN_WAIT_2.
 */
static bool
lingers(int linger2, unsigned ms)
{
	struct fixture f;
	struct peer_seg s;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_LINGER2, linger2);
	soclose(f.so);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + 1, NULL, 0);
	t_sleep(ms);
	peer_forget();
	peer_send(&f.p, TH_FIN | TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + 1, NULL,
	    0);
	CHECK(peer_next(&s));
	soclose(f.head);
	peer_send(&f.p, TH_RST, f.p.snd_nxt + 1, 0, NULL, 0);
	return ((s.flags & TH_RST) == 0);
}

TEST(time_in_fin_wait_2_is_as_asked_for)
{
	CHECK(lingers(0, 50000));
	CHECK(!lingers(0, 70000));
	CHECK(lingers(3, 2000));
	CHECK(!lingers(3, 4000));
	CHECK(!lingers(-1, 0));
}

/* Invalid values give the errors of tcp(7) and Linux. */
TEST(values_and_errors_are_those_of_linux)
{
	static const struct { int name, set, error, get; } cases[] = {
		{ TCP_SYNCNT, 0, EINVAL, 6 }, { TCP_SYNCNT, 128, EINVAL, 6 },
		{ TCP_SYNCNT, 127, 0, 127 },
		{ TCP_LINGER2, 121, 0, 120 }, { TCP_LINGER2, -5, 0, -1 },
		{ TCP_LINGER2, 0, 0, 60 },
		{ TCP_WINDOW_CLAMP, 1, 0, 1152 }, { TCP_WINDOW_CLAMP, 0, 0, 0 },
		{ TCP_MAXSEG, 87, EINVAL, 536 }, { TCP_MAXSEG, 88, 0, 88 },
		{ TCP_MAXSEG, 32768, EINVAL, 88 }, { TCP_MAXSEG, 0, 0, 536 },
		{ TCP_KEEPIDLE, 0, EINVAL, 7200 },
		{ TCP_KEEPIDLE, 32768, EINVAL, 7200 },
		{ TCP_KEEPIDLE, 5, 0, 5 }, { TCP_KEEPINTVL, 32767, 0, 32767 },
		{ TCP_KEEPINTVL, 0, EINVAL, 32767 },
		{ TCP_KEEPCNT, 0, EINVAL, 9 }, { TCP_KEEPCNT, 128, EINVAL, 9 },
		{ TCP_KEEPCNT, 1, 0, 1 },
		{ TCP_USER_TIMEOUT, -1, EINVAL, 0 },
		{ TCP_USER_TIMEOUT, 4000, 0, 4000 },
		{ TCP_DEFER_ACCEPT, -1, 0, 0 },
		{ TCP_CORK, 7, 0, 1 }, { TCP_CORK, 0, 0, 0 },
		{ TCP_NODELAY, -1, 0, 1 }, { TCP_QUICKACK, 1, 0, 1 },
		{ TCP_FASTOPEN, -1, EINVAL, 0 }, { TCP_FASTOPEN, 7, 0, 7 },
		{ TCP_FASTOPEN, 70000, 0, SOMAXCONN },
		{ TCP_FASTOPEN_CONNECT, 2, EINVAL, 0 },
		{ TCP_FASTOPEN_CONNECT, 1, 0, 1 },
		{ TCP_FASTOPEN_CONNECT, 0, 0, 0 },
		{ TCP_INQ, 2, EINVAL, 0 }, { TCP_INQ, 1, 0, 1 },
		{ TCP_NOTSENT_LOWAT, 1, 0, 1 },
	};
	struct socket *so = t_socket(SOCK_STREAM);

	for (size_t i = 0; i < nitems(cases); i++) {
		const int error = sosetopt(so, IPPROTO_TCP, cases[i].name,
		    &cases[i].set, sizeof(cases[i].set));
		const int got = t_getint(so, IPPROTO_TCP, cases[i].name);

		if (error != cases[i].error || got != cases[i].get) {
			fprintf(stderr, "option %d set to %d: error %d, then "
			    "it is %d\n", cases[i].name, cases[i].set, error,
			    got);
			abort();
		}
	}
	soclose(so);
}

TEST(clamp_of_a_connection_stays)
{
	struct fixture f;
	const int none = 0;

	open_pair(&f);
	CHECK_EQ(sosetopt(f.so, IPPROTO_TCP, TCP_WINDOW_CLAMP, &none,
	    sizeof(none)), EINVAL);
	close_pair(&f);
}

/* Quick ACKs of the first segments of a receiver, if enabled. */
TEST(first_acks_are_quick)
{
	struct fixture f;
	struct peer_seg s;

	t_sysctl_set("net.inet.tcp.quickacks", "2");
	open_pair(&f);
	for (unsigned i = 0; i < 3; i++) {
		peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
		CHECK_EQ(peer_next(&s), i < 2);
	}
	close_pair(&f);
	open_pair(&f);
	/* the program answers: no quick ACK needed */
	t_sysctl_set("net.inet.tcp.delacktime", "500");
	peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
	CHECK(peer_next(&s));
	t_send(f.so, bytes, 1);
	peer_forget();
	peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt + 1, bytes, 1);
	CHECK(!peer_next(&s));
	t_sysctl_set("net.inet.tcp.delacktime", "40");
	t_sysctl_set("net.inet.tcp.quickacks", "0");
	close_pair(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
