/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs and threads on POSIX threads.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

struct mach_thread {
	pthread_t	 pthread;
	struct cpu_turn	*turn;
	atomic_u32	 done;		/* fn returned; who joins parks on it */
	char		 name[16];
	void		(*fn)(void *);
	void		*arg;
};

/* Host CPUs by stack CPU number; set before any thread is made. */
static int cpus[CPU_SETSIZE];
static unsigned ncpus;

/* The library is there when the program starts, so its offset is known. */
_Thread_local struct thread *mach_self;
_Thread_local intptr_t mach_counters;
static _Thread_local void (*self_exit)(struct thread *);
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void
cpus_default(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpus[ncpus++] = i;
}

/* Adds "3" or "0-2"; returns an errno value. */
static int
cpus_add(const char *item, int found[], unsigned *n)
{
	cpu_set_t allowed;
	int first, last, used = 0;

	if (sscanf(item, "%d-%d%n", &first, &last, &used) != 2) {
		used = 0;
		if (sscanf(item, "%d%n", &first, &used) != 1)
			return (EINVAL);
		last = first;
	}
	if (item[used] != '\0' || first < 0 || last < first ||
	    last >= CPU_SETSIZE)
		return (EINVAL);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return (errno);
	for (int i = first; i <= last; i++) {
		if (!CPU_ISSET(i, &allowed))
			return (ENODEV);
		if (*n == CPU_SETSIZE)
			return (EINVAL);
		found[(*n)++] = i;
	}
	return (0);
}

int
mach_cpus_set(const char *list)
{
	char copy[256], *save = NULL;
	int found[CPU_SETSIZE], error = 0;
	unsigned n = 0;

	if (strlen(list) >= sizeof(copy))
		return (EINVAL);
	strcpy(copy, list);
	for (char *item = strtok_r(copy, ",", &save); item != NULL && error == 0;
	    item = strtok_r(NULL, ",", &save))
		error = cpus_add(item, found, &n);
	if (error == 0 && n == 0)
		error = EINVAL;
	if (error == 0) {
		memcpy(cpus, found, n * sizeof(found[0]));
		ncpus = n;
	}
	return (error);
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
	int host = sched_getcpu();

	for (unsigned i = 0; i < ncpus; i++)
		if (cpus[i] == host)
			return (i);
	return (0);	/* an application's thread, elsewhere */
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

void
mach_yield(void)
{
	sched_yield();
}

static void
thread_exited(void *arg)
{
	struct thread *td = arg;

	if (self_exit != NULL)
		self_exit(td);
	mach_self = NULL;
}

static void
exit_key_make(void)
{
	pthread_key_create(&exit_key, thread_exited);
}

void
mach_thread_attach(struct thread *td, void (*on_exit)(struct thread *))
{
	pthread_once(&exit_once, exit_key_make);
	mach_self = td;
	self_exit = on_exit;
	pthread_setspecific(exit_key, td);
}

static void *
thread_start(void *arg)
{
	struct mach_thread *mt = arg;

	pthread_setname_np(pthread_self(), mt->name);
	cpu_start(mt->turn);
	mt->fn(mt->arg);
	atomic_store_rel_u32(&mt->done, 1);
	mach_unpark(&mt->done, 1);
	cpu_leave();
	return (NULL);
}

static void
set_affinity(pthread_attr_t *attr, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < mach_ncpus() && i < ncpus; i++)
		if (cpu == MACH_CPU_ANY || (unsigned)cpu == i)
			CPU_SET(cpus[i], &set);
	if (CPU_COUNT(&set) > 0)
		pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

/*
 * The stack's threads take no signals: those are the application's.
 */
int
mach_thread_create(const char *name, int cpu, void (*fn)(void *), void *arg,
    struct mach_thread **mtp)
{
	struct mach_thread *mt = calloc(1, sizeof(*mt));
	sigset_t all, old;
	pthread_attr_t attr;
	int error;

	if (mt == NULL)
		return (ENOMEM);
	snprintf(mt->name, sizeof(mt->name), "%s", name);
	mt->fn = fn;
	mt->arg = arg;
	pthread_attr_init(&attr);
	set_affinity(&attr, cpu);
	mt->turn = cpu_queue();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&mt->pthread, &attr, thread_start, mt);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		cpu_cancel(mt->turn);
		free(mt);
	} else
		*mtp = mt;
	return (error);
}

void
mach_thread_join(struct mach_thread *mt)
{
	while (atomic_load_acq_u32(&mt->done) == 0)
		(void)mach_park(&mt->done, 0, NSEC_FOREVER);
	pthread_join(mt->pthread, NULL);
	free(mt);
}
