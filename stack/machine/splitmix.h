/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reproducible pseudorandom numbers: splitmix64 (Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", 2014).
 */
#ifndef MACHINE_SPLITMIX_H
#define MACHINE_SPLITMIX_H

#include <stdint.h>

#define	SPLITMIX_STEP	0x9e3779b97f4a7c15ULL	/* increment of the state */

/* Returns the output for a state. */
static inline uint64_t
splitmix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31);
}

#endif /* MACHINE_SPLITMIX_H */
