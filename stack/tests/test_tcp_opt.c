/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP options on the wire, and the keyed hash behind TCP's tables. */
#include "tests/check.h"

#include "kern/siphash.h"
#include "netinet/tcp_opt.h"

TEST(options_of_a_syn_survive_the_wire)
{
	const struct tcpopts in = { .has_mss = true, .mss = 1460,
	    .has_wscale = true, .wscale = 7, .has_sackok = true,
	    .has_ts = true, .tsval = 0x01020304, .tsecr = 0xfffefdfc };
	struct tcpopts out;
	uint8_t buf[TCP_OPT_MAX];
	unsigned len = tcp_opt_build(buf, &in);

	CHECK_EQ(len % 4, 0);
	CHECK(tcp_opt_parse(buf, len, true, &out));
	CHECK_EQ(memcmp(&in, &out, sizeof(in)), 0);
	/* the same in a segment without SYN: only timestamps count */
	CHECK(tcp_opt_parse(buf, len, false, &out));
	CHECK(out.has_ts && !out.has_mss && !out.has_wscale &&
	    !out.has_sackok);
}

TEST(timestamps_alone_are_the_same_bytes)
{
	const struct tcpopts to = { .has_ts = true, .tsval = 0x01020304,
	    .tsecr = 0xfffefdfc };
	uint8_t all[TCP_OPT_MAX], alone[TCP_OPT_MAX];
	unsigned len = tcp_opt_build(all, &to);

	CHECK_EQ(tcp_opt_timestamps(alone, to.tsval, to.tsecr), len);
	CHECK_EQ(memcmp(all, alone, len), 0);
}

TEST(as_many_sack_blocks_as_fit)
{
	struct tcpopts in = { .has_ts = true, .nsack = 4 }, out;
	uint8_t buf[TCP_OPT_MAX];
	unsigned len;

	for (unsigned i = 0; i < 4; i++)
		in.sack[i] = (struct tcp_sackblock){ i * 100, i * 100 + 50 };
	len = tcp_opt_build(buf, &in);
	CHECK_EQ(len, 40);
	CHECK(tcp_opt_parse(buf, len, false, &out));
	CHECK_EQ(out.nsack, 3);
	CHECK_EQ(out.sack[2].end, 250);
}

TEST(malformed_options_end_the_list)
{
	static const struct { uint8_t b[8]; size_t len; } bad[] = {
		{ { 2 }, 1 },				/* no length */
		{ { 2, 0, 1, 1 }, 4 },			/* length 0 */
		{ { 2, 1, 1, 1 }, 4 },			/* length 1 */
		{ { 8, 10, 1, 1 }, 4 },			/* beyond the end */
		{ { 2, 3, 1, 1 }, 4 },			/* MSS of 3 bytes */
		{ { 5, 4, 1, 1 }, 4 },			/* half a block */
		{ { 200, 255, 1, 1 }, 4 },		/* unknown, too long */
	};
	static const uint8_t fine[] = { 1, 254, 4, 9, 9, 1, 0, 77 };
	struct tcpopts to;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!tcp_opt_parse(bad[i].b, bad[i].len, true, &to));
	CHECK(tcp_opt_parse(fine, sizeof(fine), true, &to));
	CHECK(tcp_opt_parse(fine, 0, true, &to));
}

/* RFC 7413 section 4.1.1. */
TEST(cookies_survive_the_wire)
{
	static const unsigned lens[] = { 0, 4, 8, 16 };
	uint8_t buf[TCP_OPT_MAX];
	struct tcpopts to = { .has_mss = true, .mss = 1460, .has_ts = true,
	    .has_wscale = true, .has_sackok = true }, got;

	for (size_t i = 0; i < sizeof(to.cookie); i++)
		to.cookie[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned n;

		to.fastopen = (uint8_t)(TCP_FASTOPEN_REQUEST + lens[i]);
		n = tcp_opt_build(buf, &to);
		CHECK_EQ(n % 4, 0);
		CHECK(tcp_opt_parse(buf, n, true, &got));
		CHECK_EQ(got.fastopen, to.fastopen);
		CHECK(memcmp(got.cookie, to.cookie, lens[i]) == 0);
		CHECK(got.has_mss && got.has_ts && got.has_wscale);
		CHECK(tcp_opt_parse(buf, n, false, &got));
		CHECK_EQ(got.fastopen, 0);
	}
}

TEST(the_experimental_option_has_the_same_cookies)
{
	static const uint8_t other[] = { 254, 8, 0xf9, 0x88, 1, 2, 3, 4 };
	static const uint8_t both[] = { 254, 8, 0xf9, 0x89, 1, 2, 3, 4,
	    254, 5, 0xf9, 0x89, 1, 1 };
	uint8_t buf[TCP_OPT_MAX];
	struct tcpopts to = { .fastopen = TCP_FASTOPEN_REQUEST + 6,
	    .fastopen_exp = true, .cookie = { 1, 2, 3, 4, 5, 6 } }, got;

	CHECK_EQ(tcp_opt_build(buf, &to), 12);
	CHECK(tcp_opt_parse(buf, 12, true, &got));
	CHECK_EQ(got.fastopen, to.fastopen);
	CHECK(got.fastopen_exp);
	CHECK(memcmp(got.cookie, to.cookie, 6) == 0);
	CHECK(tcp_opt_parse(other, sizeof(other), true, &got));
	CHECK_EQ(got.fastopen, 0);
	/* an invalid one does not replace what came before */
	CHECK(tcp_opt_parse(both, sizeof(both), true, &got));
	CHECK_EQ(got.fastopen, 6);
	CHECK(got.fastopen_exp);
}

/* A SYN has no SACK blocks: the last of both options counts. */
TEST(a_cookie_is_no_sack_block)
{
	static const uint8_t b[] = { 5, 10, 0, 0, 0, 1, 0, 0, 0, 2,
	    34, 6, 9, 8, 7, 6 };
	struct tcpopts to;

	CHECK(tcp_opt_parse(b, sizeof(b), true, &to));
	CHECK_EQ(to.fastopen, 6);
	CHECK_EQ(to.nsack, 0);
	CHECK(tcp_opt_parse(b, sizeof(b), false, &to));
	CHECK_EQ(to.fastopen, 0);
	CHECK_EQ(to.nsack, 1);
}

TEST(window_scale_is_limited)
{
	static const uint8_t b[] = { 3, 3, 15, 0 };
	struct tcpopts to;

	CHECK(tcp_opt_parse(b, sizeof(b), true, &to));
	CHECK_EQ(to.wscale, TCP_WSCALE_MAX);
}

/* The first and the ninth of the authors' vectors: key 00 01 .. 0f. */
TEST(siphash_vectors)
{
	const struct siphash_key key = { { 0x0706050403020100ULL,
	    0x0f0e0d0c0b0a0908ULL } };
	const uint64_t word = 0x0706050403020100ULL;

	CHECK(siphash_words(&key, NULL, 0) == 0x726fdb47dd0e0e31ULL);
	CHECK(siphash_words(&key, &word, 1) == 0x93f5f5799a932462ULL);
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
