/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for several descriptors.
 *
 * If all of them are sockets of the stack, the thread sleeps in the stack
 * (msleep).  With kernel descriptors, or a signal mask to be swapped
 * atomically, it sleeps in the kernel's ppoll(), and the stack wakes it
 * through the thread's eventfd.
 */
#include <pthread.h>

#include "api/api.h"
#include "kern/synch.h"

/*
 * The longest single sleep in the stack.  The kernel never restarts a finite
 * sleep by itself after a signal.
 */
#define	SLEEP_MAX	(3600 * NSEC_PER_SEC)

static pthread_once_t eventfd_once = PTHREAD_ONCE_INIT;
static pthread_key_t eventfd_key;	/* descriptor + 1 */

static void
eventfd_destroy(void *arg)
{
	fd_hidden_close((int)(intptr_t)arg - 1);
}

static void
eventfd_init(void)
{
	if (pthread_key_create(&eventfd_key, eventfd_destroy) != 0)
		panic("libstack: no thread key left");
}

/* The eventfd of this thread; -1 and errno if it cannot be created. */
static int
thread_eventfd(void)
{
	int fd;

	pthread_once(&eventfd_once, eventfd_init);
	fd = (int)(intptr_t)pthread_getspecific(eventfd_key) - 1;
	if (fd != -1)
		return (fd);
	fd = fd_hidden_event();
	if (fd == -1)
		return (-1);
	pthread_setspecific(eventfd_key, (void *)(intptr_t)(fd + 1));
	return (fd);
}

/* The descriptor of the thread that called fork() has been closed. */
void
wait_forked(void)
{
	pthread_once(&eventfd_once, eventfd_init);
	pthread_setspecific(eventfd_key, NULL);
}

int
waiter_init(struct waiter *w, bool kernel)
{
	mtx_init(&w->wt_lock, LC_EPOLL);
	mtx_private(&w->wt_lock);
	w->wt_woken = false;
	w->wt_eventfd = -1;
	if (kernel && (w->wt_eventfd = thread_eventfd()) == -1)
		return (errno);
	return (0);
}

void
waiter_wake(struct waiter *w)
{
	const uint64_t one = 1;

	mtx_lock(&w->wt_lock);
	if (!w->wt_woken) {
		w->wt_woken = true;
		if (w->wt_eventfd == -1)
			wakeup(w);
		else
			(void)!real.write(w->wt_eventfd, &one, sizeof(one));
	}
	mtx_unlock(&w->wt_lock);
}

void
waiter_reset(struct waiter *w)
{
	uint64_t count;

	KASSERT(w->wt_lock.mtx_class == LC_EPOLL, ("waiter_reset: no waiter"));
	mtx_lock(&w->wt_lock);
	if (w->wt_woken && w->wt_eventfd != -1)
		(void)!real.read(w->wt_eventfd, &count, sizeof(count));
	w->wt_woken = false;
	mtx_unlock(&w->wt_lock);
}

int
waiter_sleep(struct waiter *w, nsec_t deadline)
{
	nsec_t left;
	int error = 0;

	KASSERT(w->wt_eventfd == -1, ("waiter_sleep: waits in the kernel"));
	mtx_lock(&w->wt_lock);
	while (!w->wt_woken && error == 0) {
		left = time_left(deadline);
		if (left == 0) {
			error = EWOULDBLOCK;
			break;
		}
		error = msleep(w, &w->wt_lock, PCATCH, "select",
		    left < SLEEP_MAX ? left : SLEEP_MAX);
		if (error == EWOULDBLOCK)
			error = 0;	/* decided by the code above */
	}
	if (w->wt_woken)
		error = 0;
	mtx_unlock(&w->wt_lock);
	return (error);
}

/*
 * All signals are blocked between the test for caught signals and ppoll(),
 * which unblocks them atomically with its sleep.
 */
int
kernel_poll(struct pollfd *fds, nfds_t n, nsec_t deadline,
    const sigset_t *mask)
{
	nsec_t left = time_left(deadline);
	struct timespec ts = {
		.tv_sec = (time_t)(left / NSEC_PER_SEC),
		.tv_nsec = (long)(left % NSEC_PER_SEC)
	};
	sigset_t all, old;
	int cancel, count;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (api_signalled()) {
		errno = EINTR;
		count = -1;
	} else
		count = real.ppoll(fds, n, left == NSEC_FOREVER ? NULL : &ts,
		    mask != NULL ? mask : &old);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(cancel, NULL);
	return (count);
}

nsec_t
deadline_ms(int ms)
{
	if (ms < 0)
		return (NSEC_FOREVER);
	return (mach_uptime() + (nsec_t)ms * NSEC_PER_MSEC);
}

int
deadline_ts(const struct timespec *ts, nsec_t *deadline)
{
	*deadline = NSEC_FOREVER;
	if (ts == NULL)
		return (0);
	if (ts->tv_sec < 0 || ts->tv_nsec < 0 ||
	    ts->tv_nsec >= (long)NSEC_PER_SEC)
		return (EINVAL);
	if ((uint64_t)ts->tv_sec < NSEC_FOREVER / NSEC_PER_SEC / 2)
		*deadline = mach_uptime() +
		    (nsec_t)ts->tv_sec * NSEC_PER_SEC + (nsec_t)ts->tv_nsec;
	return (0);
}

nsec_t
time_left(nsec_t deadline)
{
	nsec_t now;

	if (deadline == NSEC_FOREVER)
		return (NSEC_FOREVER);
	now = mach_uptime();
	return (deadline > now ? deadline - now : 0);
}
