/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines: several flows of control in one host thread, each on its own
 * stack, with explicit switches.
 */
#ifndef MACHINE_SIM_CONTEXT_H
#define MACHINE_SIM_CONTEXT_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(SIM_UCONTEXT)
/* other CPUs: ucontext(3), two system calls for each switch */
#define	SIM_UCONTEXT
#endif

#ifdef SIM_UCONTEXT
#include <ucontext.h>

struct context {
	ucontext_t	 uc;
};
#else
struct context {
	void		*sp;	/* its registers are saved there */
};
#endif

/*
 * Prepares a coroutine that begins in entry(), which must not return, on the
 * given stack.  The coroutine that runs already needs no preparation.
 */
void	 context_create(struct context *, void (*entry)(void), void *stack,
	    size_t size);
/* Suspends the calling coroutine until another one switches back to it. */
void	 context_switch(struct context *from, struct context *to);

#endif /* MACHINE_SIM_CONTEXT_H */
