/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct system calls of the host's kernel.  Under LD_PRELOAD the C library's
 * names (read, poll, close, ...) resolve to the stack's functions.  Also
 * the calls with which virtual time controls which thread runs; in real time
 * the host's scheduler decides.
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
 * As syscall(2): -1 and errno if it fails.  libstack.so replaces the C library's
 * syscall(), too.  Each argument is an integer or a pointer and is converted to
 * long, which the kernel reads; missing ones are 0.
 */
#define	host_call(...)							\
	HOST_CALL(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define	HOST_CALL(number, a, b, c, d, e, f, ...)			\
	host_call6(number, (long)(a), (long)(b), (long)(c), (long)(d),	\
	    (long)(e), (long)(f))
long	 host_call6(long number, long, long, long, long, long, long);

/*
 * The CPU of virtual time (machine/virtual/clock.c); in real time these
 * functions do nothing.  A thread queues a turn for each thread that it is
 * about to create; the new thread starts at that turn.  A thread leaves the
 * CPU while it waits for the host, and when it ends.
 */
struct cpu_turn;
struct cpu_turn *cpu_queue(void);
void	 cpu_cancel(struct cpu_turn *);	/* the thread could not be created */
void	 cpu_start(struct cpu_turn *);
void	 cpu_enter(void);
void	 cpu_leave(void);
/* The host CPU on which this thread runs. */
int	 cpu_current(void);

/*
 * cpu_place() sets where a new thread may run (cpu as in
 * mach_thread_create()).  cpu_schedule() sets the scheduling policy of the
 * calling thread.  The last function applies both to threads that the stack
 * did not create.
 */
void	 cpu_place(pthread_attr_t *, int cpu);
void	 cpu_schedule(void);
void	 cpu_attach(void);

/*
 * calls_disturbed() is true if the last signal only requested the call stack
 * (calls.c).  The other function removes that signal from a set of signals
 * that the stack's threads block.
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
	return (host_call(SYS_close, fd));
}

static inline ssize_t
host_readv(int fd, const struct iovec *iov, int n)
{
	long len = host_call(SYS_readv, fd, iov, n);

	return (len >= 0 ? len : -errno);
}

static inline ssize_t
host_writev(int fd, const struct iovec *iov, int n)
{
	long len = host_call(SYS_writev, fd, iov, n);

	return (len >= 0 ? len : -errno);
}

/* ppoll(2); a NULL timeout waits without limit.  Returns -1 with errno. */
static inline int
host_poll(struct pollfd *fds, unsigned n, const struct timespec *timeout)
{
	struct timespec ts = { 0 };
	int count;

	if (timeout != NULL)
		/* the system call writes the remaining time back */
		ts = *timeout;
	cpu_leave();
	count = (int)host_call(SYS_ppoll, fds, (long)n,
	    timeout != NULL ? &ts : NULL, NULL, KERNEL_SIGSET);
	cpu_enter();
	return (count);
}

#endif /* MACHINE_POSIX_HOST_H */
