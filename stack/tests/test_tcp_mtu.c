/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path's MTU if routers drop large packets without an ICMP error, in
 * virtual time.
 */
#include "tests/check.h"

#include <errno.h>
#include <netinet/ip_icmp.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8089
#define	AMOUNT	4000000

/* MSS 1460. */
static const uint8_t options[] = { 2, 4, 1460 >> 8, 1460 & 0xff };
static uint8_t bytes[65536];
/* which bytes are lost; never the last */
static uint8_t arrived[AMOUNT + 1];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
	tcp_seq		 start;
	size_t		 sent;
};

static void
set_up(struct fixture *f, const char *probing)
{
	struct peer_seg s;

	memset(arrived, 0, sizeof(arrived));
	f->sent = 0;
	t_sysctl_set("net.inet.tcp.mtu_probing", probing);
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	f->p = (struct peer){ .window = 65535, .options = options,
	    .optlen = sizeof(options) };
	peer_syn(&f->p, PORT, 0, &s);
	f->start = f->p.rcv_nxt;
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	f->so = t_accept(f->head);
}

static void
take_down(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

/*
 * Sends AMOUNT bytes, of which segments with more than most bytes vanish;
 * at most for so many seconds.  True: all arrived.
 */
static bool
transfer(struct fixture *f, uint32_t most, unsigned seconds)
{
	nsec_t end = mach_uptime() + seconds * NSEC_PER_SEC;
	struct peer_seg s;
	size_t n;

	while (f->p.rcv_nxt - f->start < AMOUNT && mach_uptime() < end) {
		n = AMOUNT - f->sent;
		if (n > sizeof(bytes))
			n = sizeof(bytes);
		if (n > 0 && t_trysend(f->so, bytes, n, MSG_DONTWAIT,
		    &n) == 0)
			f->sent += n;
		if (!peer_next(&s)) {
			t_sleep(10);
			continue;
		}
		if (s.segsz > most)
			continue;
		memset(arrived + (s.seq - f->start), 1, s.len);
		while (arrived[f->p.rcv_nxt - f->start] != 0)
			f->p.rcv_nxt++;
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	}
	return (f->p.rcv_nxt - f->start == AMOUNT);
}

static int
segment_size(struct fixture *f)
{
	return (t_getint(f->so, IPPROTO_TCP, TCP_MAXSEG));
}

TEST(a_black_hole_is_escaped_and_the_size_found)
{
	struct fixture f;

	set_up(&f, "1");
	CHECK_EQ(segment_size(&f), 1460);
	CHECK(transfer(&f, 1200, 300));
	CHECK(segment_size(&f) > 1200 - 16 && segment_size(&f) <= 1200);
	take_down(&f);
}

/* A max burst below a segment is one segment, also of what was lost. */
TEST(the_least_tsomax_permits_whole_segments)
{
	struct peer_seg s;
	struct fixture f;

	t_sysctl_set("net.inet.tcp.tsomax", "1460");
	set_up(&f, "0");
	peer_forget();
	t_send(f.so, bytes, 3 * 1460);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(peer_next(&s));
		CHECK_EQ(s.seq, f.start + i * 1460);
		CHECK_EQ(s.len, 1460);
	}
	peer_await(&s, 2000);
	CHECK_EQ(s.len, 1460);
	peer_forget();
	/* the rest of the lost */
	f.p.rcv_nxt += 1460;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	peer_await(&s, 10000);
	CHECK_EQ(s.seq, f.p.rcv_nxt);
	CHECK_EQ(s.len, 1460);
	take_down(&f);
	t_sysctl_set("net.inet.tcp.tsomax", "65536");
}

TEST(a_narrow_hole_is_escaped)
{
	struct fixture f;

	set_up(&f, "1");
	CHECK(transfer(&f, 600, 300));
	CHECK(segment_size(&f) <= 600);
	take_down(&f);
}

TEST(without_probing_a_black_hole_is_for_ever)
{
	struct fixture f;

	set_up(&f, "0");
	CHECK(!transfer(&f, 1200, 100));
	CHECK_EQ(segment_size(&f), 1460);
	take_down(&f);
}

TEST(probing_always_begins_low_and_ends_high)
{
	struct fixture f;

	set_up(&f, "2");
	CHECK_EQ(segment_size(&f), 1024);
	CHECK(transfer(&f, 1460, 100));
	CHECK_EQ(segment_size(&f), 1460);
	take_down(&f);
}

/* Two timeouts may be an outage: the old size is restored at once. */
TEST(an_outage_is_not_taken_for_a_hole_for_long)
{
	struct fixture f;

	set_up(&f, "1");
	CHECK(!transfer(&f, 0, 5));
	CHECK(segment_size(&f) < 1460);
	CHECK(transfer(&f, 1460, 300));
	CHECK_EQ(segment_size(&f), 1460);
	take_down(&f);
}

/*
 * A report is kept by the host: the next connection begins with it, but offers
 * what the link can receive (RFC 1191 section 3, RFC 9293 section 3.7.1).
 */
TEST(a_path_is_remembered_for_ten_minutes)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, "0");
	CHECK_EQ(segment_size(&f), 1460);
	t_send(f.so, bytes, 1460);
	peer_icmp(&f.p, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, 1200,
	    f.p.rcv_nxt);
	CHECK_EQ(segment_size(&f), 1160);
	take_down(&f);
	set_up(&f, "0");
	CHECK_EQ(segment_size(&f), 1160);
	CHECK_EQ(t_getint(f.so, IPPROTO_IP, IP_MTU), 1200);
	/* a larger report about what is in flight changes nothing */
	t_send(f.so, bytes, 1160);
	peer_icmp(&f.p, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, 1400,
	    f.p.rcv_nxt);
	CHECK_EQ(segment_size(&f), 1160);
	take_down(&f);
	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	f.p = (struct peer){ .window = 65535, .options = options,
	    .optlen = sizeof(options) };
	peer_syn(&f.p, PORT, 0, &s);
	CHECK_EQ(s.options[2] << 8 | s.options[3], 1460);
	peer_send(&f.p, TH_RST, f.p.snd_nxt, 0, NULL, 0);
	soclose(f.head);
	t_sleep(601 * 1000);
	set_up(&f, "0");
	CHECK_EQ(segment_size(&f), 1460);
	CHECK_EQ(t_getint(f.so, IPPROTO_IP, IP_MTU), 1500);
	take_down(&f);
}

/*
 * A search begins with what is known of the path: no probe is lost.  A timeout
 * later, the first probe is that size again.
 */
TEST(a_search_begins_with_the_remembered_size)
{
	struct fixture f;
	uint64_t probes;

	set_up(&f, "0");
	t_send(f.so, bytes, 1460);
	peer_icmp(&f.p, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, 1400,
	    f.p.rcv_nxt);
	take_down(&f);
	for (unsigned outage = 0; outage <= 1; outage++) {
		set_up(&f, outage ? "1" : "2");
		CHECK_EQ(segment_size(&f), outage ? 1360 : 1024);
		probes = t_sysctl("net.inet.tcp.stats.mtuprobe");
		if (outage) {
			CHECK(!transfer(&f, 0, 5));
			CHECK(segment_size(&f) < 1360);
		}
		CHECK(transfer(&f, 1360, 300));
		CHECK_EQ(segment_size(&f), 1360);
		CHECK_EQ(t_sysctl("net.inet.tcp.stats.mtuprobe"), probes + 1);
		take_down(&f);
	}
	t_sleep(601 * 1000);	/* forgotten */
}

/* One about data that was not sent is forged (RFC 5927). */
TEST(a_forged_report_is_not_remembered)
{
	struct fixture f;

	set_up(&f, "0");
	t_send(f.so, bytes, 1460);
	peer_icmp(&f.p, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, 1200,
	    f.p.rcv_nxt + 100000);
	take_down(&f);
	set_up(&f, "0");
	CHECK_EQ(segment_size(&f), 1460);
	take_down(&f);
}

/* The option's value; 0 means none, and a tiny one is not served. */
TEST(the_segment_size_of_a_peer_has_a_floor)
{
	static const struct { uint16_t mss; int wanted; } cases[] = {
		{ 0, 536 }, { 1, 88 }, { 87, 88 }, { 88, 88 }, { 100, 100 },
		{ 1461, 1460 }, { 65535, 1460 },
	};
	uint8_t option[] = { 2, 4, 0, 0 };
	struct fixture f;
	struct peer_seg s;

	for (unsigned i = 0; i < 2 * nitems(cases); i++) {
		const uint16_t mss = cases[i / 2].mss;

		t_sysctl_set("net.inet.tcp.syncookies", i % 2 ? "2" : "1");
		option[2] = (uint8_t)(mss >> 8);
		option[3] = (uint8_t)mss;
		f.head = t_listen(PEER_STACK_IP, PORT, 5);
		f.p = (struct peer){ .window = 65535, .options = option,
		    .optlen = sizeof(option) };
		peer_syn(&f.p, PORT, 0, &s);
		peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
		f.so = t_accept(f.head);
		if (i % 2 == 0 || mss != 100)	/* a cookie rounds down */
			CHECK_EQ(segment_size(&f), cases[i / 2].wanted);
		else
			CHECK_EQ(segment_size(&f), 88);
		take_down(&f);
	}
	t_sysctl_set("net.inet.tcp.syncookies", "1");
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
