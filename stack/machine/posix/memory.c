/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: the C library's.
 */
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

void *
mach_alloc(size_t size, size_t align)
{
	void *p;

	if (align == 0)
		return (calloc(1, size));
	p = aligned_alloc(align, size);
	return (p != NULL ? memset(p, 0, size) : NULL);
}

void
mach_free(void *p)
{
	free(p);
}
