/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer with selective acknowledgements, and what the stack sends it.
 */
#include "tests/sacker.h"

#include "tests/check.h"

#define	PORT	8082

uint8_t sacker_bytes[SEGS * MSS];

struct tcpcb *
sacker_block(const struct sacker *f)
{
	return (sototcpcb(f->so));
}

uint32_t
sacker_cwnd(const struct sacker *f)
{
	uint32_t n;

	so_resume(f->so);
	n = sacker_block(f)->snd_cwnd;
	so_pause(f->so);
	return (n);
}

static uint8_t *
put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
	return (p + 4);
}

void
sacker_options(struct sacker *f, uint32_t tsecr, const uint32_t *sack,
    unsigned n)
{
	uint8_t *p = f->options;

	if (f->ts) {
		memcpy(p, "\1\1\10\12", 4);
		p = put32(put32(p + 4, 1), tsecr);
	}
	if (n > 0) {
		memcpy(p, "\1\1\5", 3);
		p[3] = (uint8_t)(2 + 4 * n);
		p += 4;
		for (unsigned i = 0; i < n; i++)
			p = put32(p, f->p.rcv_nxt + sack[i]);
	}
	f->p.options = f->options;
	f->p.optlen = (unsigned)(p - f->options);
}

void
sacker_sack(struct sacker *f, uint32_t upto, const uint32_t *sack, unsigned n)
{
	sacker_options(f, 0, sack, n);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + upto, NULL, 0);
}

void
sacker_ack(struct sacker *f, uint32_t upto)
{
	sacker_sack(f, upto, NULL, 0);
}

void
sacker_ack_ts(struct sacker *f, uint32_t upto, uint32_t tsecr)
{
	sacker_options(f, tsecr, NULL, 0);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + upto, NULL, 0);
}

uint32_t
sacker_tsval(const struct peer_seg *s)
{
	struct tcpopts to;

	CHECK(tcp_opt_parse(s->options, s->optlen, false, &to));
	CHECK(to.has_ts);
	return (to.tsval);
}

static void
handshake(struct sacker *f, unsigned how)
{
	static const uint8_t offers[] = { 2, 4, MSS >> 8, MSS & 0xff,
	    4, 2, 1, 1, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0 };
	struct peer_seg s;

	f->p = (struct peer){ .window = 60000, .options = offers,
	    .optlen = how & NO_SACK ? 4 : how & WITH_TS ? 20 : 8 };
	peer_syn(&f->p, PORT, 0, &s);
	f->ts = (how & WITH_TS) != 0;
	f->seg = f->ts ? MSS - TCP_TS_LEN : MSS;
	t_sleep(RTT);
	if (f->ts)
		sacker_ack_ts(f, 0, sacker_tsval(&s));
	else
		sacker_ack(f, 0);
}

void
sacker_up(struct sacker *f, unsigned how)
{
	struct peer_seg s;

	for (size_t i = 0; i < sizeof(sacker_bytes); i++)
		sacker_bytes[i] = (uint8_t)(i * 7 + i / 256);
	memset(f, 0, sizeof(*f));
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	handshake(f, how);
	f->so = t_accept(f->head);
	t_send(f->so, sacker_bytes, f->seg);
	peer_await(&s, 1000);
	t_sleep(RTT);
	if (f->ts)
		sacker_ack_ts(f, f->seg, sacker_tsval(&s));
	else
		sacker_ack(f, f->seg);
	f->p.rcv_nxt += f->seg;
	peer_forget();
	f->timeouts = t_sysctl("net.inet.tcp.stats.rexmttimeo");
	f->undone = t_sysctl("net.inet.tcp.stats.undone");
}

void
sacker_down(struct sacker *f)
{
	peer_reset(&f->p, f->so, f->head);
}

void
sacker_no_timeout(const struct sacker *f)
{
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rexmttimeo"), f->timeouts);
}

void
sacker_expect(struct sacker *f, const uint32_t *wanted)
{
	struct peer_seg s;

	for (; *wanted != NEVER; wanted++) {
		CHECK(peer_next(&s));
		for (uint32_t off = 0; off < s.len; off += f->seg) {
			CHECK_EQ((s.seq - f->p.rcv_nxt + off) / f->seg,
			    *wanted);
			if (off + f->seg < s.len)
				wanted++;
		}
	}
	if (peer_next(&s)) {
		fprintf(stderr, "sent besides: %u bytes from %u\n", s.len,
		    s.seq - f->p.rcv_nxt);
		abort();
	}
}

void
sacker_expect_later(struct sacker *f, uint32_t wanted, struct peer_seg *s)
{
	peer_await(s, 10000);
	CHECK_EQ((s->seq - f->p.rcv_nxt) / f->seg, wanted);
}

void
sacker_send(struct sacker *f, uint32_t n)
{
	t_send(f->so, sacker_bytes, n * f->seg);
	peer_forget();
}

void
sacker_await_timeout(struct sacker *f, struct peer_seg *s)
{
	do {
		peer_await(s, 10000);
	} while (t_sysctl("net.inet.tcp.stats.rexmttimeo") == f->timeouts);
	CHECK_EQ(s->seq, f->p.rcv_nxt);
	CHECK_EQ(s->len, f->seg);
}
