/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that a thread puts off until it holds no locks: until it leaves a
 * socket call, or sleeps in one (BSD's asynchronous system traps).  So a
 * program that talks to itself runs the input of its own packets, as a
 * sender on Linux's loopback does, and no other thread need be woken.
 */
#ifndef KERN_AST_H
#define KERN_AST_H

#include "kern/systm.h"

struct thread;

/* Belongs to the thread that took it until ast_fn is called. */
struct ast {
	void		(*ast_fn)(struct ast *);	/* sleeps with PDUE alone */
	struct ast	*ast_next;
};

/* Around a call at whose end the thread may work. */
void	 ast_enter(void);
void	 ast_leave(void);	/* no locks held */
/* Whether this thread is in such a call, so that it can take work. */
bool	 ast_entered(void);
/* True: this thread will call ast_fn().  False: somebody else has to. */
bool	 ast_take(struct ast *);
/* What this thread has taken, now.  No locks held. */
void	 ast_run(struct thread *);

#endif /* KERN_AST_H */
