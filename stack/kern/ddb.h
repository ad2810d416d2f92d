/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of a running stack and the locks they hold, as ddb(4) shows them.
 */
#ifndef KERN_DDB_H
#define KERN_DDB_H

#include "kern/ctl.h"
#include "kern/thread.h"

#define	DDB_THREADS_MAX	2048

/*
 * A snapshot of one thread.  It keeps the identity, because the struct thread
 * may be reused.
 */
struct ddb_thread {
	struct thread	*dt_td;
	uint32_t	 dt_id;
	bool		 dt_kernel;
	const char	*dt_wmesg, *dt_blocked;	/* as td_wmesg, td_blocked */
	char		 dt_name[24];
};
/* Stores at most DDB_THREADS_MAX threads; returns how many. */
unsigned ddb_threads(struct ddb_thread all[]);

/*
 * Prints one line without its newline to an answer, or to the console if out
 * is NULL.
 */
void	 ddb_printf(struct ctl_out *, const char *fmt, ...) PRINTFLIKE(2, 3);

void	 ddb_ps(struct ctl_out *);
#ifdef LOCK_TRACKING
void	 ddb_alllocks(struct ctl_out *);	/* locks held and waited for */
void	 ddb_stacks(struct ctl_out *); /* of threads inside the stack */
void	 ddb_locks_init(void);			/* registers these views */
#endif

#endif /* KERN_DDB_H */
