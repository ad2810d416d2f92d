/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data out of order: what is kept, what is dropped, and what it may cost.
 */
#include "tests/check.h"

#include "tests/states.h"

#define	LEN	1000		/* segment size in bytes */
#define	BYTES	20000		/* sent in segments of one byte */
#define	MAXREASS	"64"
#define	DEFAULT_MAXREASS "1024"
#define	SEED	7

static uint8_t text[BYTES], taken[BYTES];

static uint64_t
dropped(void)
{
	return (t_sysctl("net.inet.tcp.stats.rcvoodrop"));
}

/* Bytes in mbufs and their 2 KB clusters; the peer's segments are freed. */
static uint64_t
memory(void)
{
	peer_forget();
	return (t_sysctl("mbuf.outstanding") * MSIZE +
	    t_sysctl("mbuf.cluster.outstanding") * MCLBYTES);
}

static void
set_up(struct peer_conn *c, const char *maxreass)
{
	t_sysctl_set("net.inet.tcp.maxreass", maxreass);
	peer_conn_open(c);
}

static void
take_down(struct peer_conn *c)
{
	peer_forget();
	peer_conn_close(c);
	t_sysctl_set("net.inet.tcp.maxreass", DEFAULT_MAXREASS);
}

/* Sends bytes [off, off + len) of the text. */
static void
send_part(struct peer_conn *c, uint32_t off, uint32_t len)
{
	peer_send(&c->p, TH_ACK, c->p.snd_nxt + off, c->p.rcv_nxt, text + off,
	    len);
}

TEST(out_of_order_segments_are_bounded)
{
	const uint64_t before = dropped();
	struct peer_conn c;
	char buf[4];

	set_up(&c, "8");
	for (unsigned i = 0; i < 1000; i++)
		peer_send(&c.p, TH_ACK, c.p.snd_nxt + 1 + 2 * i, c.p.rcv_nxt,
		    "x", 1);
	CHECK_EQ(dropped(), before + 992);
	/* what is in order is received, and with it one of the queue */
	peer_text(&c.p, "abcd");
	t_recv(c.so, buf, 4);
	CHECK(memcmp(buf, "abcd", 4) == 0);
	take_down(&c);
}

/* It needs a new block, although that one will join the next. */
TEST(a_segment_before_a_block_needs_room)
{
	const uint64_t before = dropped();
	struct peer_conn c;

	set_up(&c, "8");
	for (uint32_t i = 1; i <= 8; i++)
		send_part(&c, 10 * i, 1);
	CHECK_EQ(dropped(), before);
	send_part(&c, 79, 1);
	CHECK_EQ(dropped(), before + 1);
	/* the whole block and more replace it */
	send_part(&c, 79, 2);
	CHECK_EQ(dropped(), before + 1);
	take_down(&c);
}

/* Only segments of a FIN need a block each, too. */
TEST(segments_with_only_a_fin_are_bounded)
{
	const uint64_t before = dropped();
	struct peer_conn c;

	set_up(&c, "8");
	for (uint32_t i = 1000; i > 0; i--)
		peer_send(&c.p, TH_FIN | TH_ACK, c.p.snd_nxt + i, c.p.rcv_nxt,
		    NULL, 0);
	CHECK_EQ(dropped(), before + 992);
	take_down(&c);
}

/* The orders in which a peer may send single bytes. */
static uint32_t
descending(uint32_t i)
{
	return (BYTES - i);
}

static uint32_t
with_holes(uint32_t i)
{
	return (i < BYTES / 2 ? 2 * i : 2 * (i - BYTES / 2) + 1);
}

static uint32_t
from_both_ends(uint32_t i)
{
	return (i % 2 == 0 ? 1 + i / 2 : BYTES - 1 - i / 2);
}

static uint32_t
from_the_middle(uint32_t i)
{
	return (i % 2 == 0 ? BYTES / 2 + i / 2 : BYTES / 2 - 1 - i / 2);
}

/*
 * A segment of one byte occupies an mbuf and a cluster: together they hold at
 * most eight times the window.  What was dropped arrives when it is sent again.
 */
static void
single_bytes(uint32_t (*order)(uint32_t))
{
	struct peer_conn c;
	uint64_t before;
	size_t n;

	set_up(&c, MAXREASS);
	before = memory();
	for (uint32_t i = 1; i < BYTES; i++) {
		const uint32_t off = order(i);

		CHECK(off < BYTES);
		if (off > 0)
			send_part(&c, off, 1);
		if (i % LEN == 0)
			CHECK(memory() <= before + 8 * UINT16_MAX);
	}
	for (uint32_t off = 0; off < BYTES; off += LEN)
		send_part(&c, off, LEN);
	CHECK(memory() <= before + 8 * UINT16_MAX);
	for (size_t at = 0; at < BYTES; at += n)
		CHECK_EQ(t_tryrecv(c.so, taken + at, BYTES - at, MSG_DONTWAIT,
		    &n), 0);
	CHECK(memcmp(taken, text, BYTES) == 0);
	c.p.snd_nxt += BYTES;
	take_down(&c);
}

TEST(single_bytes_do_not_fill_the_memory)
{
	t_stream_fill(SEED, 0, text, sizeof(text));
	single_bytes(descending);
	single_bytes(with_holes);
	single_bytes(from_both_ends);
	single_bytes(from_the_middle);
}

/* A peer with a scaled window; all but the first segment of it arrive. */
static void
fill_window(uint32_t step, uint32_t len)
{
	/* MSS 1000, window scale 0 */
	static const uint8_t options[] = { 2, 4, 1000 >> 8, 1000 & 0xff, 1, 3,
	    3, 0 };
	static const char bytes[LEN];
	const uint64_t before = dropped();
	struct socket *head = t_listen(PEER_STACK_IP, 2999, 5), *so;
	struct peer p = { .window = 60000, .options = options,
	    .optlen = sizeof(options) };
	const uint32_t end = 1000000;	/* the initial buffer has 1 MB */
	struct peer_seg s;

	peer_syn(&p, 2999, 0, &s);
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, NULL, 0);
	so = t_accept(head);
	/* the ACK has the scaled window */
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, bytes, LEN);
	p.snd_nxt += LEN;
	t_recv(so, (char[LEN]){ 0 }, LEN);
	t_sleep(100);
	for (uint32_t off = len; off < end; off += step)
		peer_send(&p, TH_ACK, p.snd_nxt + off, p.rcv_nxt, bytes, len);
	CHECK_EQ(dropped(), before);
	peer_forget();
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, bytes, len);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, p.snd_nxt + (step == len ? end : 2 * len));
	p.snd_nxt = s.ack;
	peer_reset(&p, so, head);
}

TEST(a_window_of_segments_is_kept_out_of_order)
{
	t_sysctl_set("net.inet.tcp.maxreass", "100");
	fill_window(500, 500);
	fill_window(2 * LEN, LEN);	/* each second one is lost */
	t_sysctl_set("net.inet.tcp.maxreass", DEFAULT_MAXREASS);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
