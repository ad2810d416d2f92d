/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What code costs: the compiler calls __sanitizer_cov_trace_pc() in each basic
 * block of the stack and of what runs on it (-fsanitize-coverage=trace-pc),
 * and the linker leads memcpy() and its like here (--wrap).
 *
 * This file and the rest of machine/sim are built without the former.
 */
#include <string.h>

#include "machine/sim/sim_private.h"

uint64_t sim_blocks;
bool	 sim_every_block;

void	 __sanitizer_cov_trace_pc(void);
void	*__real_memcpy(void *, const void *, size_t);
void	*__real_memmove(void *, const void *, size_t);
void	*__real_memset(void *, int, size_t);
void	*__wrap_memcpy(void *, const void *, size_t);
void	*__wrap_memmove(void *, const void *, size_t);
void	*__wrap_memset(void *, int, size_t);

void
__sanitizer_cov_trace_pc(void)
{
	sim_blocks++;
	if (__builtin_expect(sim_every_block, 0))
		sim_sync();
}

void *
__wrap_memcpy(void *to, const void *from, size_t len)
{
	sim_charge(len * SIM_COST(copy));
	return (__real_memcpy(to, from, len));
}

void *
__wrap_memmove(void *to, const void *from, size_t len)
{
	sim_charge(len * SIM_COST(copy));
	return (__real_memmove(to, from, len));
}

void *
__wrap_memset(void *to, int byte, size_t len)
{
	sim_charge(len * SIM_COST(copy));
	return (__real_memset(to, byte, len));
}
