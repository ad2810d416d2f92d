/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs: which host CPUs the stack uses, and placement and scheduling of its
 * threads.
 *
 * A stack built for one CPU confines every thread that enters it to that CPU,
 * because its atomic operations depend on it (machine/atomic_up.h).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"
#include "machine/posix/cpulist.h"
#include "machine/posix/host.h"

#ifdef MACH_UP
#define	BUILT_UP	true
#else
#define	BUILT_UP	false
#endif

/* Host CPUs by stack CPU number; set before any thread is created. */
static int cpus[CPU_SETSIZE];
static unsigned ncpus;
/* stack CPU number by host CPU; 0 for others */
static uint16_t numbers[CPU_SETSIZE];
static bool confined = BUILT_UP;

static cpu_set_t allowed;	/* CPUs allowed to this process when it began */
static bool allowed_known;

static bool pinned;
static atomic_u32 next_pin;
static int policy = SCHED_OTHER, priority;

/* Returns an errno value. */
static int
look_at_allowed(void)
{
	if (!allowed_known &&
	    sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return (errno);
	allowed_known = true;
	return (0);
}

static void
number_cpus(void)
{
	memset(numbers, 0, sizeof(numbers));
	for (unsigned i = 0; i < ncpus; i++)
		numbers[cpus[i]] = (uint16_t)i;
}

static void
cpus_default(void)
{
	if (look_at_allowed() != 0)
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed))
			cpus[ncpus++] = i;
	number_cpus();
	if (confined)
		(void)mach_cpus_confine();
}

int
mach_cpus_set(const char *list)
{
	int found[CPU_SETSIZE], error = look_at_allowed();
	unsigned n = 0;

	if (error == 0)
		error = cpulist_parse(list, found, &n);
	for (unsigned i = 0; i < n && error == 0; i++)
		if (!CPU_ISSET(found[i], &allowed))
			error = ENODEV;
	if (error == 0) {
		memcpy(cpus, found, n * sizeof(found[0]));
		ncpus = n;
		number_cpus();
	}
	return (error);
}

/* Whether one of the first n CPUs is a thread of the same core. */
static bool
has_sibling(int cpu, unsigned n)
{
	char path[80], text[256];
	int siblings[CPU_SETSIZE];
	unsigned nsiblings;
	ssize_t len;

	snprintf(path, sizeof(path),
	    "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	len = mach_readfile(path, text, sizeof(text) - 1);
	if (len <= 0)
		return (false);		/* unknown topology: assume none */
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (cpulist_parse(text, siblings, &nsiblings) != 0)
		return (false);
	for (unsigned i = 0; i < nsiblings; i++)
		for (unsigned k = 0; k < n; k++)
			if (siblings[i] == cpus[k])
				return (true);
	return (false);
}

void
mach_cpus_nosmt(void)
{
	unsigned all = mach_ncpus();

	ncpus = 0;
	for (unsigned i = 0; i < all; i++)
		if (!has_sibling(cpus[i], ncpus))
			cpus[ncpus++] = cpus[i];
	number_cpus();
}

static void
cpus_get(cpu_set_t *set, int cpu)
{
	CPU_ZERO(set);
	for (unsigned i = 0; i < ncpus; i++)
		if (cpu == MACH_CPU_ANY || (unsigned)cpu == i)
			CPU_SET(cpus[i], set);
}

int
mach_cpus_confine(void)
{
	cpu_set_t one;

	confined = true;
	if (mach_ncpus() > 1)
		ncpus = 1;
	number_cpus();
	cpus_get(&one, 0);
	return (sched_setaffinity(0, sizeof(one), &one) == 0 ? 0 : errno);
}

bool
mach_up(void)
{
	return (confined);
}

unsigned
mach_ncpus(void)
{
	if (ncpus == 0)
		cpus_default();
	return (ncpus > 0 ? ncpus : 1);
}

unsigned
mach_curcpu(void)
{
	const unsigned host = (unsigned)cpu_current();

	/* 0: an application's thread on another CPU */
	return (host < CPU_SETSIZE ? numbers[host] : 0);
}

void
mach_cache_flush(const void *p, size_t len)
{
	const size_t line = 64;

	for (size_t i = 0; i < len; i += line) {
		const char *at = (const char *)p + i;

#if defined(__x86_64__)
		__builtin_ia32_clflush(at);
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0" : : "r" (at) : "memory");
#else
		(void)at;	/* it keeps its CPUs */
#endif
	}
}

void
mach_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Tested on the calling thread, whose policy is restored afterwards. */
int
mach_sched_set(enum mach_sched how, int prio)
{
	static const int policies[] = { [MACH_SCHED_OTHER] = SCHED_OTHER,
	    [MACH_SCHED_BATCH] = SCHED_BATCH, [MACH_SCHED_FIFO] = SCHED_FIFO,
	    [MACH_SCHED_RR] = SCHED_RR };
	struct sched_param old, new = { .sched_priority =
	    how == MACH_SCHED_FIFO || how == MACH_SCHED_RR ? prio : 0 };
	int before = sched_getscheduler(0);

	if (before < 0 || sched_getparam(0, &old) != 0 ||
	    sched_setscheduler(0, policies[how], &new) != 0 ||
	    sched_setscheduler(0, before, &old) != 0)
		return (errno);
	policy = policies[how];
	priority = new.sched_priority;
	return (0);
}

void
mach_placement_set(bool pin)
{
	pinned = pin;
}

void
cpu_place(pthread_attr_t *attr, int cpu)
{
	unsigned n = mach_ncpus();
	cpu_set_t set;

	if (pinned && cpu == MACH_CPU_ANY)
		cpu = (int)(atomic_fetchadd_u32(&next_pin, 1) % n);
	cpus_get(&set, cpu);
	if (CPU_COUNT(&set) > 0)
		pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

void
cpu_schedule(void)
{
	const struct sched_param param = { .sched_priority = priority };

	if (policy != SCHED_OTHER)
		(void)sched_setscheduler(0, policy, &param);
}

void
cpu_attach(void)
{
	cpu_set_t one;

	if (!confined || mach_ncpus() == 0)
		return;
	cpus_get(&one, 0);
	(void)sched_setaffinity(0, sizeof(one), &one);
}
