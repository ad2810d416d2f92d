/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at what the threads of a running stack do, as ddb(4)'s ps.
 */
#include <stdio.h>

#include "kern/ctl.h"
#include "kern/kern_private.h"
#include "kern/thread.h"

static void
show_thread(struct thread *td, void *co)
{
	const char *wmesg = td->td_wmesg, *blocked = td->td_blocked;
	uint32_t id = atomic_load_u32(&td->td_id);
	char what[20];

	if (td->td_ended)
		return;
	if (blocked != NULL)
		snprintf(what, sizeof(what), "*%s", blocked);
	else
		snprintf(what, sizeof(what), "%s", wmesg != NULL ? wmesg : "");
	ctl_printf(co, "%8u %12llu %-8s %-19s %s\n", id,
	    (unsigned long long)(mach_thread_cputime(id) / NSEC_PER_USEC),
	    blocked != NULL ? "lock" : wmesg != NULL ? "sleep" : "run", what,
	    td->td_name);
}

static void
ddb_ps(struct ctl_out *co)
{
	ctl_printf(co, "%8s %12s %-8s %-19s %s\n", "id", "CPU us", "state",
	    "wait channel, *lock", "thread");
	thread_foreach(show_thread, co);
}

void
ddb_init(void)
{
	ctl_view_register("ps", ddb_ps);
}
