/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the threads of a running stack do and hold, as ddb(4) shows it.
 */
#ifndef KERN_DDB_H
#define KERN_DDB_H

#include "kern/ctl.h"
#include "kern/thread.h"

#define	DDB_THREADS_MAX	2048

/* A thread there is, and who it was then: another may use the struct later. */
struct ddb_thread {
	struct thread	*dt_td;
	uint32_t	 dt_id;
	bool		 dt_kernel;
	const char	*dt_wmesg, *dt_blocked;	/* as td_wmesg, td_blocked */
	char		 dt_name[24];
};
/* How many there are, at most DDB_THREADS_MAX. */
unsigned ddb_threads(struct ddb_thread all[]);

/* A line, without its end, of an answer; NULL: on the console. */
void	 ddb_printf(struct ctl_out *, const char *fmt, ...) PRINTFLIKE(2, 3);

void	 ddb_ps(struct ctl_out *);
#ifdef LOCK_TRACKING
void	 ddb_alllocks(struct ctl_out *);	/* held, and waited for */
void	 ddb_stacks(struct ctl_out *);		/* of who is in the stack */
void	 ddb_locks_init(void);			/* views of these */
#endif

#endif /* KERN_DDB_H */
