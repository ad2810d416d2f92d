/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets the time of day of one process: an offset in seconds is added to it, and
 * is read at each call from the file that PERFWEB_CLOCK names.  The monotonic
 * clock and sleeps stay as they are, as with clock_settime(2).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void
clock_open(void)
{
	const char *path = getenv("PERFWEB_CLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		offset = map;
	close(fd);
}

static int64_t
clock_offset(void)
{
	return (offset != NULL ? *offset : 0);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	int error;

	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	error = real(id, ts);
	if (error == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += clock_offset();
	return (error);
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return (0);
}

time_t
time(time_t *now)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (now != NULL)
		*now = ts.tv_sec;
	return (ts.tv_sec);
}
