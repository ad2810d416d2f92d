/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() and the locks of the C library.  Its fork() takes those of malloc() and
 * of streams if the process has several threads, so that the child finds them
 * free.  In a handler it would wait for a lock of the code that the signal has
 * interrupted.  In a program with one thread it takes none, and such programs
 * fork in handlers (POSIX.1-2008 2.4.3).
 *
 * The stack's threads must not change that.  They use neither these locks nor
 * the program's memory.  In a handler of a program with one thread, fork() is
 * therefore _Fork() with the handlers of pthread_atfork(3), which this file
 * lists for that case, too.
 */
#include <pthread.h>
#include <unistd.h>

#include "api/api.h"
#include "kern/thread.h"

/* The program, or the library that registered them, which may be unloaded. */
extern int __cxa_atexit(void (*)(void *), void *, void *);

/* In a list without a lock: a signal's handler may read it at any time. */
struct atfork {
	void		(*prepare)(void);
	void		(*parent)(void);
	void		(*child)(void);
	atomic_u32	 gone;		/* [a] its library is unloaded */
	struct atfork	*older;		/* [I] */
};
static atomic_uptr newest;

/*
 * The thread sanitizer registers its handlers before instrumented code can run,
 * and its fork() takes its own locks: there the list stays empty.
 */
#if defined(__SANITIZE_THREAD__)
#define	LISTS		false
#else
#define	LISTS		true
#endif

static atomic_u32 threaded;	/* [a] the program has made a thread */
static bool booting;		/* [I] after boot */

static void
forget(void *arg)
{
	atomic_store_rel_u32(&((struct atfork *)arg)->gone, 1);
}

EXPORT EARLY int __register_atfork(void (*)(void), void (*)(void),
    void (*)(void), void *);

static bool
list(void (*prepare)(void), void (*parent)(void), void (*child)(void),
    void *library)
{
	struct atfork *new = mach_alloc(sizeof(*new), 0);
	uintptr_t was = atomic_load_acq_uptr(&newest);

	if (new == NULL)
		return (false);
	new->prepare = prepare;
	new->parent = parent;
	new->child = child;
	do
		new->older = (struct atfork *)was;
	while (!atomic_cmpset_uptr(&newest, &was, (uintptr_t)new));
	if (library != NULL)
		(void)__cxa_atexit(forget, new, library);
	return (true);
}

/* pthread_atfork() of the program and of each library. */
EXPORT EARLY int
__register_atfork(void (*prepare)(void), void (*parent)(void),
    void (*child)(void), void *library)
{
	if (LISTS && !list(prepare, parent, child, library))
		return (ENOMEM);
	return (real.__register_atfork(prepare, parent, child, library));
}

static void
run(void (*fn)(void), struct atfork *af)
{
	if (fn != NULL && atomic_load_acq_u32(&af->gone) == 0)
		fn();
}

/* The newest first; pthread_atfork(3). */
static void
run_prepare(struct atfork *af)
{
	for (; af != NULL; af = af->older)
		run(af->prepare, af);
}

/* The oldest first. */
static void
run_after(struct atfork *af, bool child)
{
	if (af == NULL)
		return;
	run_after(af->older, child);
	run(child ? af->child : af->parent, af);
}

static pid_t
fork_in_handler(void)
{
	struct atfork *const all = (struct atfork *)atomic_load_acq_uptr(
	    &newest);
	pid_t pid;

	run_prepare(all);
	pid = real._Fork();
	run_after(all, pid == 0);
	return (pid);
}

EXPORT pid_t
fork(void)
{
	return (LISTS && signals_handling() &&
	    atomic_load_acq_u32(&threaded) == 0 ?
	    fork_in_handler() : real.fork());
}

/* fork(3) without the handlers of pthread_atfork(3). */
EXPORT pid_t
_Fork(void)
{
	pid_t pid;

	fork_prepare();
	pid = real._Fork();
	if (pid == 0)
		fork_child();
	else
		fork_parent();
	return (pid);
}

/*
 * A child with memory of its own: a descriptor table that it shared with the
 * parent could not have the sockets that it moves before exec().
 */
EXPORT pid_t
vfork(void)
{
	return (fork());
}

void
threads_boot(bool begins)
{
	booting = begins;
}

void
threads_alone(void)
{
	atomic_store_u32(&threaded, 0);
}

/* The caller makes a thread: is it the program, or the stack? */
static void
note_thread(void)
{
	const struct thread *td = mach_thread_self();

	if (!booting && !api_inside() && (td == NULL || !td->td_kernel))
		atomic_store_rel_u32(&threaded, 1);
}

EXPORT EARLY int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
    void *(*fn)(void *), void *restrict arg)
{
	note_thread();
	return (real.pthread_create(thread, attr, fn, arg));
}

/* <threads.h> and kern/lock.h both have mutexes. */
EXPORT int thrd_create(pthread_t *, int (*)(void *), void *);

EXPORT int
thrd_create(pthread_t *thread, int (*fn)(void *), void *arg)
{
	note_thread();
	return (real.thrd_create(thread, fn, arg));
}
