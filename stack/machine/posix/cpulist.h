/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of CPUs as Linux writes them (cpuset(7), "List format").
 */
#ifndef MACHINE_POSIX_CPULIST_H
#define MACHINE_POSIX_CPULIST_H

#include <sched.h>

/*
 * Parses "0-1,3" into at most CPU_SETSIZE numbers.  Returns 0, or EINVAL for
 * bad syntax.
 */
int	 cpulist_parse(const char *list, int found[], unsigned *n);

#endif /* MACHINE_POSIX_CPULIST_H */
