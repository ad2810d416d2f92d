/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A view of the threads of a running stack, as ddb(4)'s ps.
 */
#include "kern/ddb.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kern/kern_private.h"

struct thread_list {
	struct ddb_thread *all;
	unsigned	 n;
};

static void
add_thread(struct thread *td, void *arg) REQUIRES(threads_lock)
{
	struct thread_list *list = arg;
	struct ddb_thread *dt = &list->all[list->n];

	if (td->td_ended || list->n == DDB_THREADS_MAX)
		return;
	list->n++;
	dt->dt_td = td;
	dt->dt_id = atomic_load_u32(&td->td_id);
	dt->dt_kernel = td->td_kernel;
	dt->dt_wmesg = td->td_wmesg;
	dt->dt_blocked = td->td_blocked;
	memcpy(dt->dt_name, td->td_name, sizeof(dt->dt_name));
}
_Static_assert(sizeof(((struct ddb_thread *)NULL)->dt_name) ==
    sizeof(((struct thread *)NULL)->td_name), "a whole name");

unsigned
ddb_threads(struct ddb_thread all[])
{
	struct thread_list list = { .all = all };

	thread_foreach(add_thread, &list);
	return (list.n);
}

void
ddb_printf(struct ctl_out *co, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (co != NULL)
		ctl_printf(co, "%s\n", line);
	else
		console("%s", line);
}

static void
show_thread(struct ctl_out *co, const struct ddb_thread *dt)
{
	const char *wmesg = dt->dt_wmesg, *blocked = dt->dt_blocked;
	char what[20];

	if (blocked != NULL)
		snprintf(what, sizeof(what), "*%s", blocked);
	else
		snprintf(what, sizeof(what), "%s", wmesg != NULL ? wmesg : "");
	ddb_printf(co, "%8u %12llu %-8s %-19s %s", dt->dt_id,
	    (unsigned long long)(mach_thread_cputime(dt->dt_id) /
	    NSEC_PER_USEC),
	    blocked != NULL ? "lock" : wmesg != NULL ? "sleep" : "run", what,
	    dt->dt_name);
}

void
ddb_ps(struct ctl_out *co)
{
	struct ddb_thread all[DDB_THREADS_MAX];
	const unsigned n = ddb_threads(all);

	ddb_printf(co, "%8s %12s %-8s %-19s %s", "id", "CPU us", "state",
	    "wait channel, *lock", "thread");
	for (unsigned i = 0; i < n; i++)
		show_thread(co, &all[i]);
}

void
ddb_init(void)
{
	ctl_view_register("ps", ddb_ps);
}
