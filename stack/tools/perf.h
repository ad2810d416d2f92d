/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache misses of other programs' threads, counted by the CPU.
 */
#ifndef TOOLS_PERF_H
#define TOOLS_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Counts the misses of the last-level cache of a thread from now on, those in
 * the kernel too if this user may see them (*kernel).  A descriptor for
 * perf_read(), or -1 with errno: ENOENT where the CPU, or the virtual machine,
 * offers no such counter.
 */
int	 perf_open(pid_t thread, bool *kernel);
uint64_t perf_read(int counter);

#endif /* TOOLS_PERF_H */
