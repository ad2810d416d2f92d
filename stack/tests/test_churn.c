/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections and many threads: nothing leaks, nothing blocks for
 * ever, ports and TIME_WAIT are used again.
 */
#include "tests/check.h"

#include <errno.h>

#include "tests/net.h"

#define	LO		"127.0.0.1"
#define	CONNECTIONS	10000
#define	THREADS		4
#define	PIECES		2000
#define	PIECE		64

static bool
all_gone(void *start)
{
	return (so_count() <= *(uint32_t *)start);
}

static bool
forty_skipped(void *before)
{
	return (t_sysctl("net.inet.tcp.stats.timewaitover") >=
	    *(uint64_t *)before + 40);
}

static bool
mbufs_back(void *start)
{
	return (t_sysctl("mbuf.outstanding") <= *(uint64_t *)start);
}

static void
accept_and_close(void *arg)
{
	struct socket *head = arg;
	char c = 0;
	size_t n;

	for (int i = 0; i < CONNECTIONS; i++) {
		struct socket *so = t_accept(head);

		CHECK_EQ(t_tryrecv(so, &c, 1, 0, &n), 0);
		soclose(so);
	}
}

TEST(ten_thousand_connections_leave_nothing)
{
	uint32_t start = so_count();
	uint64_t mbufs = t_sysctl("mbuf.outstanding");
	struct socket *head;
	struct thread *td;

	t_sysctl_set("net.inet.tcp.msl", "1");
	head = t_listen(LO, 7500, 100);
	td = t_thread(accept_and_close, head);
	for (int i = 0; i < CONNECTIONS; i++) {
		struct socket *so = t_connect(LO, 7500);

		if (i % 2 == 0)
			t_send(so, "x", 1);
		soclose(so);
	}
	t_join(td);
	soclose(head);
	CHECK(t_until(all_gone, &start));
	CHECK(t_until(mbufs_back, &mbufs));
	t_sysctl_set("net.inet.tcp.msl", "30000");
}

TEST(time_wait_is_bounded)
{
	uint64_t before = t_sysctl("net.inet.tcp.stats.timewaitover");
	uint32_t bound = so_count() + 10;
	struct socket *head = t_listen(LO, 7501, 100), *a, *b;

	t_sysctl_set("net.inet.tcp.maxtimewait", "10");
	for (int i = 0; i < 50; i++) {
		a = t_connect(LO, 7501);
		b = t_accept(head);
		soclose(a);
		t_expect_eof(b);
		soclose(b);
	}
	soclose(head);
	CHECK(t_until(forty_skipped, &before));
	CHECK(t_until(all_gone, &bound));
	t_sysctl_set("net.inet.tcp.maxtimewait", "32768");
}

/* Threads share a socket: each piece is whole, since writes are atomic. */
static void
write_pieces(void *arg)
{
	char piece[PIECE];

	memset(piece, 'a' + (int)(((uintptr_t)arg >> 4) % 26), sizeof(piece));
	for (int i = 0; i < PIECES; i++)
		t_send(arg, piece, sizeof(piece));
}

struct tally {
	struct socket	*so;
	atomic_u64	 bytes;
};

static void
read_all(void *arg)
{
	struct tally *t = arg;
	char buf[1000];
	size_t n;

	while (t_tryrecv(t->so, buf, sizeof(buf), 0, &n) == 0 && n > 0)
		atomic_count_u64(&t->bytes, n);
}

TEST(threads_share_a_socket)
{
	struct socket *head = t_listen(LO, 7502, 5);
	struct socket *a = t_connect(LO, 7502), *b = t_accept(head);
	struct tally t = { .so = b };
	struct thread *w[THREADS], *r[THREADS];

	for (int i = 0; i < THREADS; i++) {
		w[i] = t_thread(write_pieces, a);
		r[i] = t_thread(read_all, &t);
	}
	for (int i = 0; i < THREADS; i++)
		t_join(w[i]);
	CHECK_EQ(soshutdown(a, SHUT_WR), 0);
	for (int i = 0; i < THREADS; i++)
		t_join(r[i]);
	CHECK_EQ(atomic_load_u64(&t.bytes), THREADS * PIECES * PIECE);
	soclose(a);
	soclose(b);
	soclose(head);
}

/* Sockets are closed while others read, write and poll them. */
static void
use_until_closed(void *arg)
{
	struct socket *so = arg;
	char buf[5000] = "";
	size_t n;
	int error;

	do {
		error = t_trysend(so, buf, sizeof(buf), MSG_DONTWAIT, &n);
		(void)sopoll(so, 1);
		if (error == EWOULDBLOCK)
			error = t_tryrecv(so, buf, sizeof(buf), MSG_DONTWAIT,
			    &n);
	} while (error == 0 || error == EWOULDBLOCK);
	sorele(so);
}

TEST(close_races_with_use)
{
	uint32_t start = so_count();
	struct socket *head = t_listen(LO, 7503, 5);

	t_sysctl_set("net.inet.tcp.msl", "1");
	for (int i = 0; i < 100; i++) {
		struct socket *a = t_connect(LO, 7503), *b = t_accept(head);
		struct thread *td[2];

		soref(a);
		soref(b);
		td[0] = t_thread(use_until_closed, a);
		td[1] = t_thread(use_until_closed, b);
		t_sleep(1);
		soclose(a);
		soclose(b);
		t_join(td[0]);
		t_join(td[1]);
	}
	soclose(head);
	CHECK(t_until(all_gone, &start));
	t_sysctl_set("net.inet.tcp.msl", "30000");
}

/* A thread reads all sockets repeatedly, as netstat -a does. */
struct onlooker {
	/* of the values read, which forces the reads */
	uint64_t	 sum;
	atomic_u32	 seen;		/* sockets */
	atomic_u32	 enough;
};

static void
look_at(struct socket *so, void *arg)
{
	struct onlooker *o = arg;

	o->sum += so->so_state + so->so_rcv.sb_cc + so->so_snd.sb_cc;
	atomic_fetchadd_u32(&o->seen, 1);
}

static void
look_on(void *arg)
{
	struct onlooker *o = arg;

	while (atomic_load_u32(&o->enough) == 0) {
		so_foreach(look_at, o);
		t_sleep(1);
	}
}

TEST(sockets_are_looked_at_while_they_come_and_go)
{
	struct socket *head = t_listen(LO, 7504, 5);
	struct onlooker o = { .sum = 0 };
	struct thread *td = t_thread(look_on, &o);

	t_sysctl_set("net.inet.tcp.msl", "1");
	/* On a busy machine the thread may begin after 200 connections. */
	for (int i = 0; i < 200 || atomic_load_u32(&o.seen) == 0; i++) {
		struct socket *a = t_connect(LO, 7504), *b = t_accept(head);

		t_send(a, "there", 5);
		t_expect(b, "there");
		soclose(a);
		soclose(b);
	}
	atomic_store_u32(&o.enough, 1);
	t_join(td);
	soclose(head);
	t_sysctl_set("net.inet.tcp.msl", "30000");
}

int
main(int argc, char **argv)
{
	t_boot();
	return (check_main(argc, argv));
}
