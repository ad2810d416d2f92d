/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real time: the host's clocks and randomness, and park and unpark on
 * futexes (futex(2)).  machine/virtual has the same functions for virtual
 * time.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#if defined(__GNUC__) && !defined(__clang__) && __has_include(<sys/rseq.h>)
#define	CPU_BY_RSEQ		/* clang 14 has no __builtin_thread_pointer */
#include <sys/rseq.h>
#endif

#include "machine/machine.h"
#include "machine/posix/host.h"

/* The time of the first call is the boot time; one word needs no lock. */
static atomic_u64 boot_time;

static uint64_t
monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec);
}

static uint64_t __attribute__((cold, noinline))
begin(void)
{
	uint64_t date = monotonic(), zero = 0;

	return (atomic_cmpset_u64(&boot_time, &zero, date) ? date : zero);
}

static uint64_t
boot(void)
{
	uint64_t date = atomic_load_u64(&boot_time);

	return (date != 0 ? date : begin());
}

nsec_t
mach_uptime(void)
{
	uint64_t start = boot();

	return (monotonic() - start);
}

void
mach_walltime(struct timespec *ts)
{
	clock_gettime(CLOCK_REALTIME, ts);
}

void
mach_random(void *buf, size_t len)
{
	char *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			abort();	/* every supported kernel has it */
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

int
mach_park(atomic_u32 *word, uint32_t expected, nsec_t deadline)
{
	struct timespec ts, *tsp = NULL;

	if (deadline != NSEC_FOREVER) {
		uint64_t date = deadline + boot();

		ts.tv_sec = (time_t)(date / NSEC_PER_SEC);
		ts.tv_nsec = (long)(date % NSEC_PER_SEC);
		tsp = &ts;
	}
	/* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time. */
	if (host_call(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
	    expected, tsp, NULL, FUTEX_BITSET_MATCH_ANY) == 0)
		return (0);
	if (errno == EINTR && calls_disturbed())
		return (0);
	return (errno == ETIMEDOUT || errno == EINTR ? errno : 0);
}

void
mach_unpark(atomic_u32 *word, int nthreads)
{
	host_call(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, nthreads,
	    NULL, NULL, 0);
}

/* In real time the host schedules its CPUs. */
struct cpu_turn *
cpu_queue(void)
{
	return (NULL);
}

void
cpu_cancel(struct cpu_turn *turn)
{
	(void)turn;
}

void
cpu_start(struct cpu_turn *turn)
{
	(void)turn;
}

void
cpu_enter(void)
{
}

void
cpu_leave(void)
{
}

void
mach_yield(void)
{
	sched_yield();
}

/* Called for each packet: since glibc 2.35 the kernel stores the CPU here. */
int
cpu_current(void)
{
#ifdef CPU_BY_RSEQ
	const struct rseq *rs = (const struct rseq *)(const void *)
	    ((const char *)__builtin_thread_pointer() + __rseq_offset);
	const int cpu = (int)*(const volatile uint32_t *)&rs->cpu_id;

	if (__builtin_expect(cpu >= 0, 1))
		return (cpu);
#endif
	return (sched_getcpu());
}
