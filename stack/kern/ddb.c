/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at what the threads of a running stack do, as ddb(4)'s ps.
 */
#include "kern/ddb.h"

#include <stdarg.h>
#include <stdio.h>

#include "kern/kern_private.h"

struct thread_list {
	struct thread	**all;
	unsigned	 n;
};

static void
add_thread(struct thread *td, void *arg)
{
	struct thread_list *list = arg;

	if (!td->td_ended && list->n < DDB_THREADS_MAX)
		list->all[list->n++] = td;
}

unsigned
ddb_threads(struct thread *all[DDB_THREADS_MAX])
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
show_thread(struct ctl_out *co, struct thread *td)
{
	const char *wmesg = td->td_wmesg, *blocked = td->td_blocked;
	uint32_t id = atomic_load_u32(&td->td_id);
	char what[20];

	if (blocked != NULL)
		snprintf(what, sizeof(what), "*%s", blocked);
	else
		snprintf(what, sizeof(what), "%s", wmesg != NULL ? wmesg : "");
	ddb_printf(co, "%8u %12llu %-8s %-19s %s", id,
	    (unsigned long long)(mach_thread_cputime(id) / NSEC_PER_USEC),
	    blocked != NULL ? "lock" : wmesg != NULL ? "sleep" : "run", what,
	    td->td_name);
}

void
ddb_ps(struct ctl_out *co)
{
	struct thread *all[DDB_THREADS_MAX];
	const unsigned n = ddb_threads(all);

	ddb_printf(co, "%8s %12s %-8s %-19s %s", "id", "CPU us", "state",
	    "wait channel, *lock", "thread");
	for (unsigned i = 0; i < n; i++)
		show_thread(co, all[i]);
}

void
ddb_init(void)
{
	ctl_view_register("ps", ddb_ps);
}
