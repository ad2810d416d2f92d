/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll: the calls, and waiting for the stack's sockets (epoll_set.c) and
 * kernel descriptors together.
 */
#include <limits.h>
#include <pthread.h>

#include "api/epoll.h"
#include "api/remote.h"
#include "kern/synch.h"

/* Removes the set's eventfd from the kernel's events. */
static int
drop_wake(struct epoll_event *out, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (out[i].data.u64 != EPSET_WAKE)
			out[kept++] = out[i];
	return (kept);
}

/* Polls the kernel's events without sleeping. */
static int
kernel_look(int epfd, struct epoll_event *out, int max)
{
	int cancel, n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	n = real.epoll_pwait(epfd, out, max, 0, NULL);
	pthread_setcancelstate(cancel, NULL);
	return (n > 0 ? drop_wake(out, n) : n);
}

/*
 * Gets the kernel's events, with the set's eventfd; sleeps until deadline.
 * Returns -1 and errno, or a count.
 */
static int
kernel_epoll(int epfd, struct epoll_event *out, int max, nsec_t deadline,
    const sigset_t *mask)
{
	const nsec_t left = time_left(deadline);
	const nsec_t ms = (left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	sigset_t all, old;
	int cancel, n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (left > 0 && api_signalled()) {
		errno = EINTR;
		n = -1;
	} else
		n = real.epoll_pwait(epfd, out, max,
		    left == NSEC_FOREVER || ms > INT32_MAX ? -1 : (int)ms,
		    left == 0 || mask == NULL ? &old : mask);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(cancel, NULL);
	return (n);
}

static int
kernel_sleep(int epfd, struct epset *es, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int n;

	mtx_lock(&es->es_lock);
	es->es_sleepers++;
	epset_kick(es);		/* an event arrived meanwhile */
	mtx_unlock(&es->es_lock);
	n = kernel_epoll(epfd, out, max, deadline, mask);
	if (n > 0)
		n = drop_wake(out, n);
	mtx_lock(&es->es_lock);
	KASSERT(es->es_sleepers > 0, ("kernel_sleep: no sleeper"));
	es->es_sleepers--;
	mtx_unlock(&es->es_lock);
	return (n);
}

static bool
has_news(void *arg)
{
	return (epset_may_be_ready(arg) || api_signalled());
}

/*
 * Sleeping and waking in the kernel takes five system calls, more than the
 * rest of a small message.  The thread therefore spins first, as one that
 * waits for a single socket does; kernel descriptors wait meanwhile.  True:
 * poll again.
 */
static bool
await_news(struct epset *es)
{
	return (atomic_load_u32(&es->es_sockets) != 0 &&
	    spin_until(has_news, es) && epset_may_be_ready(es));
}

/*
 * The number of entries for the kernel's events, which are collected first.
 * If the stack may have events, they get at least one entry, or every second
 * call if there is only one.
 */
static int
kernel_share(struct epset *es, int max)
{
	if (atomic_load_u32(&es->es_kernel) == 0)
		return (0);
	if (!epset_may_be_ready(es))
		return (max);
	if (max > 1)
		return (max - 1);
	return ((int)(atomic_fetchadd_u32(&es->es_turn, 1) & 1));
}

static int
epset_wait(int epfd, struct epset *es, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int n, k, share;
	bool expired, skipped;

	for (;;) {
		expired = time_left(deadline) == 0;
		share = kernel_share(es, max);
		skipped = share == 0 && atomic_load_u32(&es->es_kernel) != 0;
		if (atomic_load_u32(&es->es_nests) != 0)
			epoll_refresh();
		k = share > 0 ? kernel_look(epfd, out, share) : 0;
		n = k > 0 ? k : 0;
		n += epset_collect(es, out + n, max - n);
		if (k < 0 && n == 0)
			return (-1);
		if (n > 0 || (expired && !skipped))
			return (n);
		if (expired || skipped || await_news(es))
			continue;
		k = kernel_sleep(epfd, es, out, max, deadline, mask);
		if (k != 0)
			return (k);
	}
}

static atomic_u32 client_nests;	/* in a client: a set is in another one */

/*
 * In a client: the eventfd among the kernel's events means that the server may
 * have others.
 */
static int
client_wait(int epfd, struct file *f, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int k, n;

	do {
		if (atomic_load_u32(&client_nests) != 0)
			remote_epoll_refresh();
		k = kernel_epoll(epfd, out, max, deadline, mask);
		if (k <= 0)
			return (k);
		n = drop_wake(out, k);
		if (n < k)
			n += remote_epoll_collect(f, out + n, max - n);
	} while (n == 0 && time_left(deadline) > 0);
	return (n);
}

/*
 * epoll_pwait() on a set with sockets of the stack, until deadline; releases
 * f.
 */
static int
epoll_until(int epfd, struct file *f, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int n;

	if (max <= 0 || max > INT_MAX / (int)sizeof(*out) ||
	    address_bad(out)) {
		const int error = address_bad(out) && max > 0 ? EFAULT : EINVAL;

		frele(f);
		return ((int)api_return(error, 0));
	}
	api_enter();
	n = f->f_ep != NULL ?
	    epset_wait(epfd, f->f_ep, out, max, deadline, mask) :
	    client_wait(epfd, f, out, max, deadline, mask);
	frele(f);
	api_leave(n < 0 ? errno : 0);
	return (n);
}

EXPORT int
epoll_pwait(int epfd, struct epoll_event *out, int max, int ms,
    const sigset_t *mask)
{
	struct file *f = fget_type(epfd, FT_EPOLL);

	if (f == NULL && fd_ours(epfd))
		return ((int)api_return(EINVAL, 0));
	if (f == NULL)
		return (real.epoll_pwait(fd_kernel(epfd), out, max, ms,
		    mask));
	return (epoll_until(epfd, f, out, max, deadline_ms(ms), mask));
}

EXPORT int
epoll_wait(int epfd, struct epoll_event *out, int max, int ms)
{
	return (epoll_pwait(epfd, out, max, ms, NULL));
}

EXPORT int
epoll_pwait2(int epfd, struct epoll_event *out, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct file *f = fget_type(epfd, FT_EPOLL);
	nsec_t deadline;

	if (f == NULL && fd_ours(epfd))
		return ((int)api_return(EINVAL, 0));
	if (f == NULL)
		return (real.epoll_pwait2(fd_kernel(epfd), out, max, timeout,
		    mask));
	if (deadline_ts(timeout, &deadline) != 0) {
		frele(f);
		return ((int)api_return(EINVAL, 0));
	}
	return (epoll_until(epfd, f, out, max, deadline, mask));
}

/* The file of a new set for the kernel's one; returns an errno value. */
static int
set_file(int epfd, struct file **f)
{
	if (api_state() == API_CLIENT)
		return (remote_epoll_create(epfd, f));
	*f = file_new(FT_EPOLL);
	(*f)->f_ep = epset_new(epfd);
	if ((*f)->f_ep != NULL)
		return (0);
	file_close(*f);
	return (EMFILE);
}

EXPORT int
epoll_create1(int flags)
{
	struct file *f;
	int fd = real.epoll_create1(flags), error;

	if (fd == -1 || fd >= API_MAXFD || api_state() == API_PASSIVE)
		return (fd);
	api_enter();
	error = set_file(fd, &f);
	if (error == 0)
		fd_adopt(fd, f, (flags & EPOLL_CLOEXEC) != 0);
	else
		real.close(fd);
	api_leave(0);
	return ((int)api_return(error, fd));
}

EXPORT int
epoll_create(int size)
{
	if (size <= 0)
		return ((int)api_return(EINVAL, 0));
	return (epoll_create1(0));
}

/* Adds a kernel descriptor to the kernel's set; es is NULL in a client. */
static int
kernel_ctl(struct epset *es, int epfd, int op, int fd,
    struct epoll_event *event)
{
	struct file *nested = fget_type(fd, FT_EPOLL);
	int r;

	if (nested != NULL) {
		if (nested->f_ep != NULL)
			epoll_expose(nested->f_ep);
		atomic_store_u32(es != NULL ? &es->es_nests : &client_nests,
		    1);
		frele(nested);
	}
	r = real.epoll_ctl(epfd, op, fd_kernel(fd), event);
	if (r == 0 && op == EPOLL_CTL_ADD && es != NULL)
		atomic_store_u32(&es->es_kernel, 1);
	return (r);
}

EXPORT int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct file *set = fget_type(epfd, FT_EPOLL), *f;
	int r;

	if (set == NULL && fd_ours(epfd))
		return ((int)api_return(EINVAL, 0));
	if (op != EPOLL_CTL_DEL && address_bad(event)) {
		if (set != NULL)
			frele(set);
		return ((int)api_return(EFAULT, 0));
	}
	f = fget_type(fd, FT_SOCKET);
	if (set == NULL || !api_own_process()) {
		if (set != NULL)
			frele(set);
		if (f != NULL)
			frele(f);
		return (real.epoll_ctl(fd_kernel(epfd), op, fd_kernel(fd),
		    event));
	}
	api_enter();
	if (f == NULL)
		r = kernel_ctl(set->f_ep, epfd, op, fd, event);
	else {
		r = (int)api_return(set->f_ep != NULL ?
		    epset_ctl(set->f_ep, op, f, fd, event) :
		    remote_epoll_ctl(set, op, f, fd, event), 0);
		frele(f);
	}
	frele(set);
	api_leave(0);
	return (r);
}
