/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads on POSIX threads.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

struct mach_thread {
	pthread_t	 pthread;
	struct cpu_turn	*turn;
	atomic_u32	 done; /* fn returned; the joining thread parks on it */
	char		 name[16];
	void		(*fn)(void *);
	void		*arg;
};

/* The library is loaded at program start, so the TLS offset is constant. */
_Thread_local struct thread *mach_self;
_Thread_local intptr_t mach_counters;
static _Thread_local void (*self_exit)(struct thread *);
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

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
	cpu_attach();
	mach_self = td;
	self_exit = on_exit;
	pthread_setspecific(exit_key, td);
}

uint32_t
mach_thread_id(void)
{
	return ((uint32_t)host_call(SYS_gettid));
}

/* The thread's CPU clock, composed like pthread_getcpuclockid(3) does. */
nsec_t
mach_thread_cputime(uint32_t id)
{
	const clockid_t clock = (clockid_t)(~id << 3 | 6);
	struct timespec ts;

	if (id == 0 || clock_gettime(clock, &ts) != 0)
		return (0);
	return ((nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec);
}

static void *
thread_start(void *arg)
{
	struct mach_thread *mt = arg;

	pthread_setname_np(pthread_self(), mt->name);
	cpu_schedule();
	cpu_start(mt->turn);
	mt->fn(mt->arg);
	atomic_store_rel_u32(&mt->done, 1);
	mach_unpark(&mt->done, 1);
	cpu_leave();
	return (NULL);
}

/* Threads of the stack block all signals, which belong to the application. */
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
	cpu_place(&attr, cpu);
	mt->turn = cpu_queue();
	sigfillset(&all);
	calls_allow(&all);
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
