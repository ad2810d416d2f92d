/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the threads of a running stack do and hold, as ddb(4) shows it.
 */
#ifndef KERN_DDB_H
#define KERN_DDB_H

#include "kern/ctl.h"
#include "kern/thread.h"

#define	DDB_THREADS_MAX	4096

/* Those there are: how many; a struct thread stays one for ever. */
unsigned ddb_threads(struct thread *all[DDB_THREADS_MAX]);

/* A line, without its end, of an answer; NULL: on the console. */
void	 ddb_printf(struct ctl_out *, const char *fmt, ...) PRINTFLIKE(2, 3);

void	 ddb_ps(struct ctl_out *);
#ifdef LOCK_TRACKING
void	 ddb_alllocks(struct ctl_out *);	/* held, and waited for */
void	 ddb_stacks(struct ctl_out *);		/* of who is in the stack */
void	 ddb_locks_init(void);			/* views of these */
#endif

#endif /* KERN_DDB_H */
