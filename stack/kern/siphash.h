/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012): the keyed hash behind connection tables, ephemeral ports and
 * initial sequence numbers, which a stranger must not be able to predict.
 */
#ifndef KERN_SIPHASH_H
#define KERN_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t	 k[2];
};

/* len is in 8-byte words. */
uint64_t siphash_words(const struct siphash_key *, const uint64_t *words,
	    size_t len);

#endif /* KERN_SIPHASH_H */
