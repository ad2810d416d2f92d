/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP_INFO in the words of Linux's header, which is longer than the C
 * library's.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <linux/tcp.h>

#include "machine/virtual/virtual.h"
#include "tests/net.h"

#define	LO	"127.0.0.1"
#define	PORT	8088

/* Linux's numbers (include/net/tcp_states.h). */
enum { LINUX_ESTABLISHED = 1, LINUX_LISTEN = 10 };

static uint8_t bytes[100000];

struct pair {
	struct socket	*head, *a, *b;
};

static void
set_up(struct pair *p)
{
	p->head = t_listen(LO, PORT, 5);
	p->a = t_connect(LO, PORT);
	p->b = t_accept(p->head);
}

static void
take_down(struct pair *p)
{
	soclose(p->a);
	soclose(p->b);
	soclose(p->head);
}

static struct tcp_info
info(struct socket *so)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	memset(&ti, 0xff, sizeof(ti));
	CHECK_EQ(sogetopt(so, IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	CHECK_EQ(len, sizeof(ti));
	return (ti);
}

static bool
all_acked(void *arg)
{
	return (info(arg).tcpi_unacked == 0);
}

TEST(both_ends_tell_the_same_story)
{
	struct pair p;
	struct tcp_info a, b;

	set_up(&p);
	t_send(p.a, bytes, sizeof(bytes));
	t_recv(p.b, bytes, sizeof(bytes));
	CHECK(t_until(all_acked, p.a));
	a = info(p.a);
	b = info(p.b);
	CHECK_EQ(a.tcpi_state, LINUX_ESTABLISHED);
	CHECK_EQ(a.tcpi_bytes_sent - a.tcpi_bytes_retrans, sizeof(bytes));
	CHECK_EQ(a.tcpi_bytes_acked, sizeof(bytes));
	CHECK_EQ(b.tcpi_bytes_received, sizeof(bytes));
	CHECK(a.tcpi_data_segs_out >= sizeof(bytes) / a.tcpi_snd_mss);
	CHECK(a.tcpi_segs_out >= a.tcpi_data_segs_out);
	CHECK(b.tcpi_data_segs_in > 0);
	CHECK(b.tcpi_segs_in >= b.tcpi_data_segs_in);
	CHECK_EQ(b.tcpi_data_segs_out, 0);
	CHECK(a.tcpi_delivered >= sizeof(bytes) / a.tcpi_snd_mss);
	CHECK_EQ(a.tcpi_notsent_bytes, 0);
	CHECK(a.tcpi_rtt > 0);
	CHECK(a.tcpi_rto >= a.tcpi_rtt);
	CHECK(a.tcpi_pmtu > a.tcpi_snd_mss);
	CHECK_EQ(a.tcpi_options & TCPI_OPT_TIMESTAMPS, TCPI_OPT_TIMESTAMPS);
	take_down(&p);
}

/* The program does not read: data beyond the window is not sent. */
TEST(what_waits_is_told)
{
	struct pair p;
	struct tcp_info ti;
	size_t done;

	set_up(&p);
	t_setint(p.b, SOL_SOCKET, SO_RCVBUF, 4096);
	while (t_trysend(p.a, bytes, sizeof(bytes), MSG_DONTWAIT, &done) == 0)
		continue;
	ti = info(p.a);
	CHECK(ti.tcpi_notsent_bytes > 0);
	CHECK(ti.tcpi_bytes_sent + ti.tcpi_notsent_bytes >=
	    ti.tcpi_bytes_acked);
	take_down(&p);
}

/* Time is virtual: it passes only here. */
TEST(time_is_told_by_what_it_was_spent_on)
{
	struct pair p;
	struct tcp_info ti;
	size_t done;

	set_up(&p);
	t_sleep(1000);
	ti = info(p.a);
	CHECK_EQ(ti.tcpi_busy_time, 0);
	t_setint(p.b, SOL_SOCKET, SO_RCVBUF, 4096);
	while (t_trysend(p.a, bytes, sizeof(bytes), MSG_DONTWAIT, &done) == 0)
		continue;
	t_sleep(1000);
	ti = info(p.a);
	CHECK(ti.tcpi_rwnd_limited >= 900000);
	CHECK(ti.tcpi_rwnd_limited <= 1100000);
	CHECK(ti.tcpi_busy_time >= ti.tcpi_rwnd_limited);
	CHECK_EQ(ti.tcpi_sndbuf_limited, 0);
	take_down(&p);
}

TEST(a_listener_has_a_state_too)
{
	struct pair p;

	set_up(&p);
	CHECK_EQ(info(p.head).tcpi_state, LINUX_LISTEN);
	take_down(&p);
}

/* Programs built for an older header request less. */
TEST(room_may_be_short)
{
	struct pair p;
	uint8_t state[4] = { 0, 0, 0, 77 };
	socklen_t len = 1;

	set_up(&p);
	CHECK_EQ(sogetopt(p.a, IPPROTO_TCP, TCP_INFO, state, &len), 0);
	CHECK_EQ(len, 1);
	CHECK_EQ(state[0], LINUX_ESTABLISHED);
	CHECK_EQ(state[3], 77);
	take_down(&p);
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	return (check_main(argc, argv));
}
