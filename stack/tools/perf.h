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
 * Starts to count the last-level cache misses of a thread, including those in
 * the kernel if the user may see them (*kernel).  Returns a descriptor for
 * perf_read(), or -1 with errno; ENOENT means that the CPU or virtual machine
 * has no such counter.
 */
int	 perf_open(pid_t thread, bool *kernel);
uint64_t perf_read(int counter);

#endif /* TOOLS_PERF_H */
