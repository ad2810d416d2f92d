/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Size classes of an allocator: four to a power of two, so that a block is at
 * most a quarter larger than requested.
 */
#ifndef MACHINE_SIZECLASS_H
#define MACHINE_SIZECLASS_H

#include <stddef.h>
#include <stdint.h>

#define	SIZECLASS_UNIT	16	/* min block, and alignment */

/* The block size of a class. */
static inline size_t
sizeclass_size(uint32_t class)
{
	const uint32_t shift = class > 8 ? (class - 5) / 4 : 0;

	return (((size_t)SIZECLASS_UNIT << shift) * (class - 4 * shift));
}

/* The smallest class for a size; *size is set to its block size. */
static inline uint32_t
sizeclass_of(size_t *size)
{
	size_t step = SIZECLASS_UNIT, steps;
	uint32_t class = 0;

	while (*size > 8 * step) {
		step *= 2;
		class += 4;
	}
	steps = (*size + step - 1) / step; /* 5 to 8, except for the smallest */
	*size = steps * step;
	return (class + (uint32_t)steps);
}

#endif /* MACHINE_SIZECLASS_H */
