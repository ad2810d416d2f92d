/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of CPUs as Linux writes them (cpuset(7), "List format").
 */
#ifndef MACHINE_POSIX_CPULIST_H
#define MACHINE_POSIX_CPULIST_H

#include <sched.h>

/* The numbers of "0-1,3", at most CPU_SETSIZE; 0, or EINVAL: it is no list. */
int	 cpulist_parse(const char *list, int found[], unsigned *n);

#endif /* MACHINE_POSIX_CPULIST_H */
