/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work deferred until a thread holds no locks.
 */
#include "kern/ast.h"

#include "kern/thread.h"

void
ast_enter(void)
{
	curthread->td_astdepth++;
}

bool
ast_entered(void)
{
	return (thread_known()->td_astdepth > 0);
}

bool
ast_take(struct ast *a)
{
	struct thread *td = thread_known();
	struct ast **p;

	if (td->td_astdepth == 0)
		return (false);
	for (p = &td->td_asts; *p != NULL; p = &(*p)->ast_next)
		KASSERT(*p != a, ("ast_take: taken already"));
	a->ast_next = NULL;
	*p = a;
	return (true);
}

void
ast_run(struct thread *td)
{
	struct ast *a;

	if (td->td_asts != NULL)
		witness_none("ast_run");
	td->td_astdepth++; /* work that this work causes is run here, too */
	while ((a = td->td_asts) != NULL) {
		td->td_asts = a->ast_next;
		a->ast_fn(a);
	}
	td->td_astdepth--;
}

void
ast_leave(void)
{
	struct thread *td = thread_known();

	KASSERT(td->td_astdepth > 0, ("ast_leave: not entered"));
	if (--td->td_astdepth == 0 && td->td_asts != NULL)
		ast_run(td);
}
