/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache misses, by perf_event_open(2).
 */
#include "tools/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
perf_try(pid_t thread, bool kernel)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
	    .size = sizeof(attr), .config = PERF_COUNT_HW_CACHE_MISSES,
	    .exclude_kernel = !kernel, .exclude_hv = 1 };

	return ((int)syscall(SYS_perf_event_open, &attr, thread, -1, -1,
	    PERF_FLAG_FD_CLOEXEC));
}

int
perf_open(pid_t thread, bool *kernel)
{
	int fd = perf_try(thread, true);

	*kernel = fd >= 0;
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = perf_try(thread, false);
	return (fd);
}

uint64_t
perf_read(int counter)
{
	uint64_t count = 0;

	return (read(counter, &count, sizeof(count)) == sizeof(count) ? count :
	    0);
}
