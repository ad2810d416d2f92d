/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks that threads hold and wait for, as ddb(4)'s show locks and show
 * alllocks, and the call stacks of threads inside the stack.
 *
 * The view of a running thread may be inconsistent; that of a hung thread is
 * not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kern/ddb.h"
#include "kern/lock_private.h"

#define	STACK_MAX	32	/* calls shown */

/* Other threads change the data meanwhile; readers take no lock. */
#define	RACY	__attribute__((no_sanitize("thread")))

/* Copies the locks of a thread, approximately at one moment. */
RACY static unsigned
copy_locks(const struct thread *td, struct lock_held held[LOCK_HELD_MAX],
    struct lock_held *wanted)
{
	const struct lock_track *lt = &td->td_track;
	unsigned n = lt->lt_nheld;

	if (n > LOCK_HELD_MAX)
		n = LOCK_HELD_MAX;
	for (unsigned i = 0; i < n; i++) {
		held[i].lh_lock = lt->lt_held[i].lh_lock;
		held[i].lh_class = lt->lt_held[i].lh_class;
		held[i].lh_site = lt->lt_held[i].lh_site;
	}
	wanted->lh_lock = lt->lt_wanted.lh_lock;
	wanted->lh_class = lt->lt_wanted.lh_class;
	wanted->lh_site = lt->lt_wanted.lh_site;
	return (n);
}

static void
show_lock(struct ctl_out *co, const char *what, const struct lock_held *lh)
{
	if (lh->lh_lock != NULL && lh->lh_site != NULL)
		ddb_printf(co, "  %s %s (%p) @ %s:%u", what,
		    lock_classes[lh->lh_class].lc_name, lh->lh_lock,
		    lh->lh_site->ls_file, lh->lh_site->ls_line);
}

/* False: the thread neither holds nor waits for a lock. */
static bool
show_thread(struct ctl_out *co, const struct ddb_thread *dt)
{
	struct lock_held held[LOCK_HELD_MAX], wanted;
	const unsigned n = copy_locks(dt->dt_td, held, &wanted);

	if (n == 0 && wanted.lh_lock == NULL)
		return (false);
	ddb_printf(co, "%s (%u):", dt->dt_name, dt->dt_id);
	for (unsigned i = 0; i < n; i++)
		show_lock(co, "holds", &held[i]);
	show_lock(co, "waits for", &wanted);
	return (true);
}

void
ddb_alllocks(struct ctl_out *co)
{
	struct ddb_thread all[DDB_THREADS_MAX];
	const unsigned n = ddb_threads(all);
	bool some = false;

	for (unsigned i = 0; i < n; i++)
		some |= show_thread(co, &all[i]);
	if (!some)
		ddb_printf(co, "no thread holds a lock");
}

static int
ddb_locks(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	struct ddb_thread all[DDB_THREADS_MAX];
	const unsigned n = ddb_threads(all);

	if (argc != 1) {
		snprintf(why, len, "usage: %s ID, of a thread as ps shows it",
		    command);
		return (EINVAL);
	}
	for (unsigned i = 0; i < n; i++)
		if (all[i].dt_id == strtoul(argv[0], NULL, 10)) {
			if (!show_thread(co, &all[i]))
				ddb_printf(co, "%s holds no lock",
				    all[i].dt_name);
			return (0);
		}
	snprintf(why, len, "no thread of the stack has the id '%s'", argv[0]);
	return (ESRCH);
}

static void
show_stack(struct ctl_out *co, const struct ddb_thread *dt)
{
	void *calls[STACK_MAX];
	char name[128];
	int n;

	ddb_printf(co, "%s (%u):", dt->dt_name, dt->dt_id);
	n = mach_thread_calls(dt->dt_id, calls, STACK_MAX);
	if (n <= 0)
		ddb_printf(co, "  no answer");
	for (int i = 0; i < n; i++) {
		mach_call_name(calls[i], name, sizeof(name));
		ddb_printf(co, "  #%d %s", i, name);
	}
}

/*
 * A program's thread outside the stack is skipped, because the signal may
 * disturb it.
 */
void
ddb_stacks(struct ctl_out *co)
{
	struct ddb_thread all[DDB_THREADS_MAX];
	const unsigned n = ddb_threads(all);

	for (unsigned i = 0; i < n; i++)
		if (all[i].dt_kernel || all[i].dt_wmesg != NULL ||
		    all[i].dt_blocked != NULL)
			show_stack(co, &all[i]);
}

void
ddb_locks_init(void)
{
	ctl_command_register("show locks", ddb_locks);
	ctl_view_register("show alllocks", ddb_alllocks);
	ctl_view_register("show stacks", ddb_stacks);
}
