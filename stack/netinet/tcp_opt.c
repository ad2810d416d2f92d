/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP options, to and from the wire.  The functions use only bytes, so that a
 * fuzzer can call them.
 */
#include <arpa/inet.h>
#include <string.h>

#include "kern/systm.h"
#include "netinet/tcp_opt.h"

enum {
	OPT_EOL = 0, OPT_NOP = 1, OPT_MSS = 2, OPT_WSCALE = 3,
	OPT_SACKOK = 4, OPT_SACK = 5, OPT_TS = 8, OPT_MD5 = 19, OPT_FASTOPEN = 34,
	OPT_EXPERIMENT = 254
};

/* RFC 7413 section 10: Fast Open's experiment, two more bytes (RFC 6994) */
#define	EXP_FASTOPEN	0xf989
#define	EXP_LEN		2
#define	MD5_LEN		18	/* RFC 2385 section 3.0 */

/* NOP, NOP, and a timestamps option's kind and length. */
#define	TS_ALONE	(OPT_NOP << 24 | OPT_NOP << 16 | OPT_TS << 8 | 10)

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return (ntohl(v));
}

static uint8_t *
put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, sizeof(v));
	return (p + sizeof(v));
}

__cold static bool
parse_sack(const uint8_t *p, unsigned len, struct tcpopts *to)
{
	if (len < 10 || (len - 2) % 8 != 0)
		return (false);
	to->nsack = 0;
	to->fastopen = 0;
	for (p += 2, len -= 2; len > 0 && to->nsack < TCP_SACK_MAX;
	    p += 8, len -= 8) {
		to->sack[to->nsack].start = get32(p);
		to->sack[to->nsack].end = get32(p + 4);
		to->nsack++;
	}
	return (true);
}

/* RFC 7413 section 4.1.1: an invalid option is ignored. */
__cold static void
parse_fastopen(const uint8_t *p, unsigned len, bool syn, struct tcpopts *to)
{
	const unsigned cookie = len - TCP_FASTOPEN_REQUEST;

	if (!syn || len % 2 != 0 || cookie > TCP_FASTOPEN_MAX ||
	    (cookie > 0 && cookie < TCP_FASTOPEN_MIN))
		return;
	to->nsack = 0;
	to->fastopen = (uint8_t)len;
	to->fastopen_exp = false;
	memcpy(to->cookie, p + TCP_FASTOPEN_REQUEST, cookie);
}

/* Fast Open's option of before it had a number of its own. */
__cold static void
parse_experiment(const uint8_t *p, unsigned len, bool syn, struct tcpopts *to)
{
	const unsigned before = to->fastopen;

	if (len < 2 + EXP_LEN || (p[2] << 8 | p[3]) != EXP_FASTOPEN)
		return;
	to->fastopen = 0;
	parse_fastopen(p + EXP_LEN, len - EXP_LEN, syn, to);
	if (to->fastopen != 0)
		to->fastopen_exp = true;
	else
		to->fastopen = (uint8_t)before;
}

/* One option of len bytes, kind and length included. */
static bool
parse_one(const uint8_t *p, unsigned len, bool syn, struct tcpopts *to)
{
	switch (p[0]) {
	case OPT_MSS:
		if (len != 4)
			return (false);
		if (syn) {
			to->has_mss = true;
			to->mss = (uint16_t)(p[2] << 8 | p[3]);
		}
		return (true);
	case OPT_WSCALE:
		if (len != 3)
			return (false);
		if (syn) {
			to->has_wscale = true;
			to->wscale = p[2] < TCP_WSCALE_MAX ? p[2] :
			    TCP_WSCALE_MAX;
		}
		return (true);
	case OPT_SACKOK:
		if (len != 2)
			return (false);
		to->has_sackok = to->has_sackok || syn;
		return (true);
	case OPT_SACK:
		return (parse_sack(p, len, to));
	case OPT_TS:
		if (len != 10)
			return (false);
		to->has_ts = true;
		to->tsval = get32(p + 2);
		to->tsecr = get32(p + 6);
		return (true);
	case OPT_MD5:
		to->has_signature = len == MD5_LEN;
		return (to->has_signature);
	case OPT_FASTOPEN:
		parse_fastopen(p, len, syn, to);
		return (true);
	case OPT_EXPERIMENT:
		parse_experiment(p, len, syn, to);
		return (true);
	default:
		return (true);		/* RFC 9293 MUST-6: ignore */
	}
}

NOINLINE static bool
parse_all(const uint8_t *p, size_t left, bool syn, struct tcpopts *to)
{
	unsigned len;

	while (left > 0 && p[0] != OPT_EOL) {
		if (p[0] == OPT_NOP) {
			p++;
			left--;
			continue;
		}
		if (left < 2)
			return (false);
		len = p[1];
		if (len < 2 || len > left || !parse_one(p, len, syn, to))
			return (false);
		p += len;
		left -= len;
	}
	return (!to->has_signature);
}

bool
tcp_opt_parse(const uint8_t *p, size_t left, bool syn, struct tcpopts *to)
{
	memset(to, 0, sizeof(*to));
	/* RFC 7323 appendix A: nearly all segments have only this option */
	if (__predict_false(left != 12) ||
	    __predict_false(get32(p) != TS_ALONE))
		return (parse_all(p, left, syn, to));
	to->has_ts = true;
	to->tsval = get32(p + 4);
	to->tsecr = get32(p + 8);
	return (true);
}

/* Writes as many blocks as fit after used bytes. */
__cold static uint8_t *
build_sack(uint8_t *p, unsigned used, const struct tcpopts *to)
{
	unsigned n = (TCP_OPT_MAX - used - 4) / 8;

	if (n > to->nsack)
		n = to->nsack;
	*p++ = OPT_NOP;
	*p++ = OPT_NOP;
	*p++ = OPT_SACK;
	*p++ = (uint8_t)(2 + 8 * n);
	for (unsigned i = 0; i < n; i++) {
		p = put32(p, to->sack[i].start);
		p = put32(p, to->sack[i].end);
	}
	return (p);
}

__cold static uint8_t *
build_fastopen(uint8_t *p, const struct tcpopts *to)
{
	const unsigned len = to->fastopen + (to->fastopen_exp ? EXP_LEN : 0);

	*p++ = to->fastopen_exp ? OPT_EXPERIMENT : OPT_FASTOPEN;
	*p++ = (uint8_t)len;
	if (to->fastopen_exp) {
		*p++ = EXP_FASTOPEN >> 8;
		*p++ = EXP_FASTOPEN & 0xff;
	}
	memcpy(p, to->cookie, to->fastopen - TCP_FASTOPEN_REQUEST);
	p += to->fastopen - TCP_FASTOPEN_REQUEST;
	if (len % 4 != 0) {
		*p++ = OPT_NOP;
		*p++ = OPT_NOP;
	}
	return (p);
}

unsigned
tcp_opt_timestamps(uint8_t *buf, uint32_t tsval, uint32_t tsecr)
{
	uint8_t *p = put32(buf, TS_ALONE);

	p = put32(p, tsval);
	return ((unsigned)(put32(p, tsecr) - buf));
}

unsigned
tcp_opt_build(uint8_t *buf, const struct tcpopts *to)
{
	uint8_t *p = buf;

	if (to->has_mss) {
		*p++ = OPT_MSS;
		*p++ = 4;
		*p++ = (uint8_t)(to->mss >> 8);
		*p++ = (uint8_t)to->mss;
	}
	/* SACK-permitted replaces the two NOPs before timestamps. */
	if (to->has_sackok || to->has_ts) {
		*p++ = to->has_sackok && to->has_ts ? OPT_SACKOK : OPT_NOP;
		*p++ = to->has_sackok && to->has_ts ? 2 : OPT_NOP;
	}
	if (to->has_ts) {
		*p++ = OPT_TS;
		*p++ = 10;
		p = put32(p, to->tsval);
		p = put32(p, to->tsecr);
	} else if (to->has_sackok) {
		*p++ = OPT_SACKOK;
		*p++ = 2;
	}
	if (to->has_wscale) {
		*p++ = OPT_NOP;
		*p++ = OPT_WSCALE;
		*p++ = 3;
		*p++ = to->wscale;
	}
	if (to->fastopen != 0)
		p = build_fastopen(p, to);
	if (to->nsack > 0 && TCP_OPT_MAX - (p - buf) >= 12)
		p = build_sack(p, (unsigned)(p - buf), to);
	return ((unsigned)(p - buf));
}
