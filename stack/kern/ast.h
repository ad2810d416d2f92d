/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that a thread defers until it holds no locks: until it leaves a socket
 * call or sleeps in one (BSD's asynchronous system traps).  A program that
 * sends to itself thus runs the input of its own packets, as on Linux's
 * loopback, without waking another thread.
 */
#ifndef KERN_AST_H
#define KERN_AST_H

#include "kern/systm.h"

struct thread;

/* Owned by the thread that took it until ast_fn is called. */
struct ast {
	void		(*ast_fn)(struct ast *); /* sleeps only with PDUE */
	struct ast	*ast_next;
};

/* Bracket a call; deferred work runs in ast_leave(). */
void	 ast_enter(void);
void	 ast_leave(void);	/* no locks held */
/* Whether this thread is in such a call and can take work. */
bool	 ast_entered(void);
/*
 * True: this thread will call ast_fn().  False: the caller must find another
 * thread.
 */
bool	 ast_take(struct ast *);
/* Runs the work that this thread has taken.  No locks held. */
void	 ast_run(struct thread *);

#endif /* KERN_AST_H */
