/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that go to the host's kernel directly.  Under LD_PRELOAD the C
 * library's names (read, poll, close, ...) are the stack's own.  And who may
 * run: in real time that is the host's affair.
 */
#ifndef MACHINE_POSIX_HOST_H
#define MACHINE_POSIX_HOST_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * The CPU of virtual time (machine/virtual/clock.c); in real time these do
 * nothing.  A thread queues for one that it is about to make, which then
 * starts when its turn comes; a thread that waits for the host leaves the
 * CPU meanwhile, and one that ends leaves it for good.
 */
struct cpu_turn;
struct cpu_turn *cpu_queue(void);
void	 cpu_cancel(struct cpu_turn *);	/* the thread could not be made */
void	 cpu_start(struct cpu_turn *);
void	 cpu_enter(void);
void	 cpu_leave(void);
/* The host's CPU that this thread is on. */
int	 cpu_current(void);

/*
 * Where a thread that is about to be made may run (cpu as in
 * mach_thread_create()); how the host schedules it, said by itself; and what
 * holds for threads that come from elsewhere.
 */
void	 cpu_place(pthread_attr_t *, int cpu);
void	 cpu_schedule(void);
void	 cpu_attach(void);

/*
 * Whether the last signal only asked what this thread does (calls.c); and
 * takes that signal out of a set of those that the stack's threads block.
 */
#ifdef LOCK_TRACKING
bool	 calls_disturbed(void);
void	 calls_allow(sigset_t *);
#else
static inline void
calls_allow(sigset_t *blocked)
{
	(void)blocked;
}

static inline bool
calls_disturbed(void)
{
	return (false);
}
#endif

#define	KERNEL_SIGSET	8L	/* bytes of the kernel's sigset_t */

static inline long
host_close(int fd)
{
	return (syscall(SYS_close, fd));
}

static inline ssize_t
host_readv(int fd, const struct iovec *iov, int n)
{
	long len = syscall(SYS_readv, fd, iov, n);

	return (len >= 0 ? len : -errno);
}

static inline ssize_t
host_writev(int fd, const struct iovec *iov, int n)
{
	long len = syscall(SYS_writev, fd, iov, n);

	return (len >= 0 ? len : -errno);
}

/* A timeout of NULL waits for ever.  -1 with errno, as ppoll(2). */
static inline int
host_poll(struct pollfd *fds, unsigned n, const struct timespec *timeout)
{
	struct timespec ts = { 0 };
	int count;

	if (timeout != NULL)
		ts = *timeout;	/* the system call writes the rest back */
	cpu_leave();
	count = (int)syscall(SYS_ppoll, fds, (long)n,
	    timeout != NULL ? &ts : NULL, NULL, KERNEL_SIGSET);
	cpu_enter();
	return (count);
}

#endif /* MACHINE_POSIX_HOST_H */
