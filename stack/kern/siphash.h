/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012).  This keyed hash makes connection tables, ephemeral ports and initial
 * sequence numbers unpredictable for attackers.
 */
#ifndef KERN_SIPHASH_H
#define KERN_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t	 k[2];
};

/* len counts 8-byte words. */
uint64_t siphash_words(const struct siphash_key *, const uint64_t *words,
	    size_t len);

#endif /* KERN_SIPHASH_H */
