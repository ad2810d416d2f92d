/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines: several flows of control in one thread of the host, each on a
 * stack of its own, which hand it to one another.
 */
#ifndef MACHINE_SIM_CONTEXT_H
#define MACHINE_SIM_CONTEXT_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(SIM_UCONTEXT)
#define	SIM_UCONTEXT	/* elsewhere the C library's, with two system calls */
#endif

#ifdef SIM_UCONTEXT
#include <ucontext.h>

struct context {
	ucontext_t	 uc;
};
#else
struct context {
	void		*sp;	/* its registers lie there */
};
#endif

/*
 * Prepares a flow that begins in entry(), which must not return, on size bytes
 * of stack from there.  The flow that runs already needs no preparation.
 */
void	 context_create(struct context *, void (*entry)(void), void *stack,
	    size_t size);
/* The calling flow stops here until somebody switches back to it. */
void	 context_switch(struct context *from, struct context *to);

#endif /* MACHINE_SIM_CONTEXT_H */
