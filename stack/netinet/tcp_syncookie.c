/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SYN cookies.  Our initial sequence number has 24 bits of a keyed hash of the
 * connection, the peer's number and the time, and 8 bits for the options of
 * the peer's SYN:
 *
 *	7	parity of the epoch
 *	6	SACK permitted
 *	5-3	maximum segment size, an index
 *	2-0	window scale, an index; 0: not offered
 *
 * An ACK of such a number proves that its sender received our SYN-ACK in this
 * epoch or the previous one.  Timestamps need no bit, because the ACK either
 * has them or not.
 */
#include <netinet/tcp.h>

#include "netinet/tcp_syncache.h"

#define	EPOCH		(16 * NSEC_PER_SEC)
#define	HASH_MASK	0xffffff00U
/* Cookies are accepted this long after the last was sent: two epochs. */
#define	COOKIE_LIFE	(2 * EPOCH)

/* Common sizes; the offered one is rounded down. */
static const uint16_t mss_table[8] = {
	TCP_MSS_MIN, 536, 1200, 1360, 1400, 1440, 1452, 1460
};
static const uint8_t scale_table[8] = { 0, 0, 1, 2, 4, 6, 7, 8 };

static struct siphash_key cookie_key;	/* [I] after boot */
static atomic_u64 last_sent;		/* [a] time, 0: never */

void
tcp_syncookie_init(void)
{
	mach_random(&cookie_key, sizeof(cookie_key));
}

static tcp_seq
cookie(const struct in_conninfo *c, tcp_seq irs, uint8_t bits,
    uint64_t epoch)
{
	uint64_t words[IN_CONNWORDS + 2];
	size_t n = in_connwords(c, words);

	words[n++] = (uint64_t)irs << 8 | bits;
	words[n++] = epoch;
	return (((tcp_seq)siphash_words(&cookie_key, words, n) & HASH_MASK) |
	    bits);
}

void
tcp_syncookie_send(struct tcp_half *h)
{
	const uint64_t epoch = mach_uptime() / EPOCH;
	uint8_t bits, mss = 7, scale = 7;

	while (mss > 0 && mss_table[mss] > h->hf_peermss)
		mss--;
	while (scale > 1 && scale_table[scale] > h->hf_peerscale)
		scale--;
	if ((h->hf_flags & TF_WSCALE) == 0)
		scale = 0;
	bits = (uint8_t)((epoch & 1) << 7 |
	    (h->hf_flags & TF_SACK ? 1U << 6 : 0) | mss << 3 | scale);
	h->hf_flags &= ~(unsigned)TF_ECN; /* the cookie has no bit for ECN */
	h->hf_iss = cookie(&h->hf_conn, h->hf_irs, bits, epoch);
	atomic_store_u64(&last_sent, mach_uptime());
	TCPSTAT_INC(syncookiesent);
	(void)tcp_half_send(h, TH_SYN | TH_ACK);
}

bool
tcp_syncookie_check(struct socket *head, const struct tcpseg *sg,
    struct tcp_half *h) REQUIRES(head->so_lock)
{
	const tcp_seq iss = sg->sg_ack - 1, irs = sg->sg_seq - 1;
	const uint8_t bits = iss & ~HASH_MASK, scale = bits & 7;
	const nsec_t now = mach_uptime(), sent = atomic_load_u64(&last_sent);
	const struct tcpopts to = {
		.has_mss = true, .mss = mss_table[bits >> 3 & 7],
		.has_wscale = scale != 0, .wscale = scale_table[scale],
		.has_sackok = (bits >> 6 & 1) != 0,
		.has_ts = sg->sg_opt.has_ts, .tsval = sg->sg_opt.tsval,
	};
	uint64_t epoch = now / EPOCH;

	if (sent == 0 || now - sent > COOKIE_LIFE)
		return (false);
	if ((epoch & 1) != bits >> 7)
		epoch--;
	if (cookie(&sg->sg_conn, irs, bits, epoch) != iss)
		return (false);
	TCPSTAT_INC(syncookierecv);
	tcp_half_init(h, head, &sg->sg_conn, irs, &to);
	h->hf_iss = iss;
	return (true);
}
