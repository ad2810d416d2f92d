/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines.  A switch is a function call, so only callee-saved registers are
 * saved: six registers and the stack pointer on x86-64 (System V ABI, AMD64
 * supplement, 3.2.1).  Signal masks and floating-point control words are not
 * saved, because the stack does not change them.
 */
#include "machine/sim/context.h"

#ifdef SIM_UCONTEXT

#include <stdlib.h>

void
context_create(struct context *c, void (*entry)(void), void *stack,
    size_t size)
{
	if (getcontext(&c->uc) != 0)
		abort();
	c->uc.uc_stack.ss_sp = stack;
	c->uc.uc_stack.ss_size = size;
	c->uc.uc_link = NULL;
	makecontext(&c->uc, entry, 0);
}

void
context_switch(struct context *from, struct context *to)
{
	if (swapcontext(&from->uc, &to->uc) != 0)
		abort();
}

#else

#include <stdint.h>
#include <string.h>

/* The frame that context_switch() pops, followed by a return address. */
struct frame {
	uint64_t	 r15, r14, r13, r12, rbx, rbp;
	void		(*rip)(void);
	void		*caller;	/* of entry(): none */
};

void
context_create(struct context *c, void (*entry)(void), void *stack,
    size_t size)
{
	/*
	 * At function entry the stack is 8 bytes off a multiple of 16 (ibid.).
	 */
	struct frame f = { .rip = entry };
	uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;

	c->sp = (void *)(top - sizeof(f));
	memcpy(c->sp, &f, sizeof(f));
}
_Static_assert(sizeof(struct frame) % 16 == 0, "entry() finds its stack right");

__attribute__((naked, noinline)) void
context_switch(struct context *from __attribute__((unused)),
    struct context *to __attribute__((unused)))
{
	__asm__(
	    "pushq %rbp\n\t"
	    "pushq %rbx\n\t"
	    "pushq %r12\n\t"
	    "pushq %r13\n\t"
	    "pushq %r14\n\t"
	    "pushq %r15\n\t"
	    "movq %rsp, (%rdi)\n\t"
	    "movq (%rsi), %rsp\n\t"
	    "popq %r15\n\t"
	    "popq %r14\n\t"
	    "popq %r13\n\t"
	    "popq %r12\n\t"
	    "popq %rbx\n\t"
	    "popq %rbp\n\t"
	    "ret");
}

#endif
