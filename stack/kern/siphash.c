/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 of whole words.
 */
#include "kern/siphash.h"

struct sipstate {
	uint64_t	 v0, v1, v2, v3;
};

static inline uint64_t
rotl(uint64_t x, unsigned n)
{
	return (x << n | x >> (64 - n));
}

static inline void
sipround(struct sipstate *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

static inline void
sipword(struct sipstate *s, uint64_t word)
{
	s->v3 ^= word;
	sipround(s);
	sipround(s);
	s->v0 ^= word;
}

uint64_t
siphash_words(const struct siphash_key *key, const uint64_t *words,
    size_t len)
{
	struct sipstate s = {
		.v0 = key->k[0] ^ 0x736f6d6570736575ULL,
		.v1 = key->k[1] ^ 0x646f72616e646f6dULL,
		.v2 = key->k[0] ^ 0x6c7967656e657261ULL,
		.v3 = key->k[1] ^ 0x7465646279746573ULL,
	};

	for (size_t i = 0; i < len; i++)
		sipword(&s, words[i]);
	sipword(&s, (uint64_t)(len * 8) << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sipround(&s);
	return (s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
}
