/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call stacks of other threads: not supported here, because a debugger sees
 * the same execution in another run.
 */
#include <stdio.h>

#include "machine/machine.h"

int
mach_thread_calls(uint32_t id, void *calls[], int max)
{
	(void)id;
	(void)calls;
	(void)max;
	return (0);
}

void
mach_call_name(void *call, char *buf, size_t len)
{
	snprintf(buf, len, "%p", call);
}
