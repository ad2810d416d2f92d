/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs of code.  The compiler inserts a call of __sanitizer_cov_trace_pc()
 * into each basic block of the stack and of programs on it
 * (-fsanitize-coverage=trace-pc), and the linker redirects memcpy() and
 * similar functions (--wrap).  A block costs by its number of instructions,
 * which tools/simweights.py counts in the linked program.
 *
 * This file and the rest of machine/sim are built without that option.
 */
#include <string.h>

#include "machine/sim/sim_private.h"

/* Max bytes of a program's code. */
#define	SIM_TEXT	(2 << 20)

/*
 * The number of instructions of each block, indexed by the offset of its first
 * instruction.  All are zero if they were not counted.
 */
extern uint8_t	 sim_weights[SIM_TEXT];
uint8_t sim_weights[SIM_TEXT] __attribute__((section(".sim_weights")));
extern const char __executable_start[];

uint64_t sim_blocks, sim_instructions;
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
	uintptr_t at = (uintptr_t)__builtin_return_address(0) -
	    (uintptr_t)__executable_start;

	sim_blocks++;
	sim_instructions += at < SIM_TEXT && sim_weights[at] != 0 ?
	    sim_weights[at] : SIM_BLOCK;
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
