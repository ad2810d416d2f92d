/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll over the stack's sockets and kernel descriptors.
 *
 * The program's epoll descriptor is a real one.  Kernel descriptors are
 * registered with it as usual; the stack's sockets are kept here, as items
 * with a watcher each.  A watcher puts its item on the ready list; a thread
 * that sleeps does so in the kernel's epoll_pwait(), and an eventfd that is
 * registered there too wakes it.  The same eventfd makes the descriptor
 * readable for the kernel when it is itself polled or part of another set.
 *
 * An item on the ready list may be ready: whoever takes it off asks the
 * socket.  It comes off before the question, so that a change after the
 * answer puts it on again; level-triggered ones go back to the end when the
 * answer was yes.  This gives all of level, edge and one-shot.
 *
 * Locks: epoll_filelock is held while sets change and is taken before a
 * socket's lock; a watcher runs under the socket's lock and takes es_lock.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include "api/api.h"

#define	EPOLL_FLAGS	(EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)
#define	EPOLL_ALWAYS	(EPOLLERR | EPOLLHUP)

/*
 * Locks used to protect the members below:
 *	[I] immutable after creation
 *	[a] atomic
 *	[e] epoll_filelock
 *	[s] es_lock
 */
struct epitem {
	struct sowatch	 ei_watch;
	atomic_u32	 ei_refs;	/* [a] the set, threads collecting */
	struct epset	*ei_set;	/* [I] */
	struct file	*ei_file;	/* [I] identity; the file knows us */
	struct socket	*ei_so;		/* [I] referenced */
	int		 ei_fd;		/* [I] */
	struct epoll_event ei_event;	/* [s] events 0: one-shot has fired */
	bool		 ei_queued;	/* [s] on es_ready */
	bool		 ei_dead;	/* [s] removed */
	TAILQ_ENTRY(epitem) ei_ready;	/* [s] */
	LIST_ENTRY(epitem) ei_setlink;	/* [e] */
	LIST_ENTRY(epitem) ei_filelink;	/* [e] */
};

struct epset {
	struct mtx	 es_lock;
	int		 es_eventfd;	/* [I] registered in the kernel's set */
	LIST_HEAD(, epitem) es_items;	/* [e] */
	TAILQ_HEAD(, epitem) es_ready;	/* [s] */
	unsigned	 es_nready;	/* [s] */
	unsigned	 es_sleepers;	/* [s] threads in the kernel */
	bool		 es_signalled;	/* [s] eventfd is readable */
	bool		 es_exposed;	/* [s] the kernel polls the set */
	atomic_u32	 es_kernel;	/* [a] kernel descriptors were added */
	atomic_u32	 es_turn;	/* [a] whose turn when one event fits */
};

static struct mtx epoll_filelock;
static pthread_once_t epoll_once = PTHREAD_ONCE_INIT;

static void
epoll_init(void)
{
	mtx_init(&epoll_filelock, LC_FD);
}

struct epset *
epset_new(int epfd)
{
	struct epset *es = kmalloc(sizeof(*es));
	struct epoll_event wake = { .events = EPOLLIN, .data.ptr = es };

	pthread_once(&epoll_once, epoll_init);
	mtx_init(&es->es_lock, LC_EPOLL);
	LIST_INIT(&es->es_items);
	TAILQ_INIT(&es->es_ready);
	es->es_eventfd =
	    fd_hidden_copy(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (es->es_eventfd == -1 || real.epoll_ctl(epfd, EPOLL_CTL_ADD,
	    es->es_eventfd, &wake) != 0) {
		if (es->es_eventfd != -1) {
			fd_unhide(es->es_eventfd);
			real.close(es->es_eventfd);
		}
		kfree(es);
		return (NULL);
	}
	return (es);
}

/* Makes the eventfd readable if somebody looks at it and there is cause. */
static void
epset_kick(struct epset *es) REQUIRES(es->es_lock)
{
	const uint64_t one = 1;

	if (es->es_signalled || es->es_nready == 0 ||
	    (es->es_sleepers == 0 && !es->es_exposed))
		return;
	es->es_signalled = true;
	(void)!real.write(es->es_eventfd, &one, sizeof(one));
}

static void
epset_unkick(struct epset *es) REQUIRES(es->es_lock)
{
	uint64_t count;

	if (!es->es_signalled || es->es_nready > 0)
		return;
	es->es_signalled = false;
	(void)!real.read(es->es_eventfd, &count, sizeof(count));
}

static void
epitem_queue(struct epset *es, struct epitem *ei) REQUIRES(es->es_lock)
{
	if (ei->ei_queued || ei->ei_dead || ei->ei_event.events == 0)
		return;
	TAILQ_INSERT_TAIL(&es->es_ready, ei, ei_ready);
	ei->ei_queued = true;
	es->es_nready++;
}

static void
epitem_unqueue(struct epset *es, struct epitem *ei) REQUIRES(es->es_lock)
{
	if (!ei->ei_queued)
		return;
	KASSERT(es->es_nready > 0, ("epitem_unqueue: none ready"));
	TAILQ_REMOVE(&es->es_ready, ei, ei_ready);
	ei->ei_queued = false;
	es->es_nready--;
}

static void
epitem_wake(struct sowatch *watch, int events)
{
	struct epitem *ei = container_of(watch, struct epitem, ei_watch);
	struct epset *es = ei->ei_set;

	mtx_lock(&es->es_lock);
	if (events == 0 ||
	    ((uint32_t)events & (ei->ei_event.events | EPOLL_ALWAYS)) != 0) {
		epitem_queue(es, ei);
		epset_kick(es);
	}
	mtx_unlock(&es->es_lock);
}

static void
epitem_rele(struct epitem *ei)
{
	if (atomic_fetchadd_u32(&ei->ei_refs, (uint32_t)-1) != 1)
		return;
	KASSERT(ei->ei_dead, ("epitem_rele: still registered"));
	sorele(ei->ei_so);
	kfree(ei);
}

static struct epitem *
epitem_find(struct epset *es, struct file *f, int fd)
    REQUIRES(epoll_filelock)
{
	struct epitem *ei;

	LIST_FOREACH(ei, &f->f_items, ei_filelink)
		if (ei->ei_set == es && ei->ei_fd == fd)
			return (ei);
	return (NULL);
}

static void
epitem_remove(struct epitem *ei) REQUIRES(epoll_filelock)
{
	struct epset *es = ei->ei_set;

	sowatch_remove(ei->ei_so, &ei->ei_watch);
	LIST_REMOVE(ei, ei_setlink);
	LIST_REMOVE(ei, ei_filelink);
	mtx_lock(&es->es_lock);
	ei->ei_dead = true;
	epitem_unqueue(es, ei);
	epset_unkick(es);
	mtx_unlock(&es->es_lock);
	epitem_rele(ei);
}

static void
epitem_add(struct epset *es, struct file *f, int fd,
    const struct epoll_event *event) REQUIRES(epoll_filelock)
{
	struct epitem *ei = kmalloc(sizeof(*ei));
	int ready;

	atomic_store_u32(&ei->ei_refs, 1);
	ei->ei_set = es;
	ei->ei_file = f;
	ei->ei_so = f->f_so;
	ei->ei_fd = fd;
	ei->ei_event = *event;
	ei->ei_event.events |= EPOLL_ALWAYS;
	ei->ei_watch.sw_fn = epitem_wake;
	soref(ei->ei_so);
	LIST_INSERT_HEAD(&es->es_items, ei, ei_setlink);
	LIST_INSERT_HEAD(&f->f_items, ei, ei_filelink);
	ready = sowatch_add(ei->ei_so, &ei->ei_watch,
	    (int)(event->events & ~EPOLL_FLAGS) | EPOLL_ALWAYS);
	if (ready != 0)
		epitem_wake(&ei->ei_watch, 0);
}

static void
epitem_modify(struct epitem *ei, const struct epoll_event *event)
    REQUIRES(epoll_filelock)
{
	struct epset *es = ei->ei_set;

	mtx_lock(&es->es_lock);
	ei->ei_event = *event;
	ei->ei_event.events |= EPOLL_ALWAYS;
	epitem_queue(es, ei);	/* it may be ready: whoever waits will ask */
	epset_kick(es);
	mtx_unlock(&es->es_lock);
}

/* Errno value, as epoll_ctl(2). */
static int
epset_ctl(struct epset *es, int op, struct file *f, int fd,
    const struct epoll_event *event)
{
	struct epitem *ei;
	int error = 0;

	if (event == NULL && op != EPOLL_CTL_DEL)
		return (EFAULT);
	mtx_lock(&epoll_filelock);
	ei = epitem_find(es, f, fd);
	if (atomic_load_acq_u32(&f->f_fds) == 0)
		error = EBADF;		/* closed just now */
	else if (op == EPOLL_CTL_ADD && ei != NULL)
		error = EEXIST;
	else if (op != EPOLL_CTL_ADD && ei == NULL)
		error = ENOENT;
	else if (op == EPOLL_CTL_ADD)
		epitem_add(es, f, fd, event);
	else if (op == EPOLL_CTL_MOD)
		epitem_modify(ei, event);
	else if (op == EPOLL_CTL_DEL)
		epitem_remove(ei);
	else
		error = EINVAL;
	mtx_unlock(&epoll_filelock);
	return (error);
}

void
epoll_forget(struct file *f)
{
	struct epitem *ei;

	pthread_once(&epoll_once, epoll_init);
	mtx_lock(&epoll_filelock);
	while ((ei = LIST_FIRST(&f->f_items)) != NULL)
		epitem_remove(ei);
	mtx_unlock(&epoll_filelock);
}

void
epset_free(struct epset *es)
{
	struct epitem *ei;

	mtx_lock(&epoll_filelock);
	while ((ei = LIST_FIRST(&es->es_items)) != NULL)
		epitem_remove(ei);
	mtx_unlock(&epoll_filelock);
	fd_unhide(es->es_eventfd);
	real.close(es->es_eventfd);
	mtx_destroy(&es->es_lock);
	kfree(es);
}

void
epoll_expose(struct epset *es)
{
	mtx_lock(&es->es_lock);
	es->es_exposed = true;
	epset_kick(es);
	mtx_unlock(&es->es_lock);
}

/*
 * Takes the first item off the ready list, asks its socket, and stores what
 * is ready in *out.  Returns false if it was not ready after all.
 */
static bool
epset_take(struct epset *es, struct epoll_event *out) REQUIRES(es->es_lock)
{
	struct epitem *ei = TAILQ_FIRST(&es->es_ready);
	uint32_t wanted = ei->ei_event.events & ~EPOLL_FLAGS, got;
	bool ready;

	epitem_unqueue(es, ei);
	atomic_fetchadd_u32(&ei->ei_refs, 1);
	mtx_unlock(&es->es_lock);
	got = (uint32_t)sopoll(ei->ei_so, (int)wanted) & wanted;
	mtx_lock(&es->es_lock);
	ready = got != 0 && !ei->ei_dead && ei->ei_event.events != 0;
	if (ready) {
		out->events = got;
		out->data = ei->ei_event.data;
		if (ei->ei_event.events & EPOLLONESHOT)
			ei->ei_event.events = 0;
		else if (!(ei->ei_event.events & EPOLLET))
			epitem_queue(es, ei);
	}
	mtx_unlock(&es->es_lock);
	epitem_rele(ei);
	mtx_lock(&es->es_lock);
	return (ready);
}

/* Up to max events of the stack's sockets; returns how many. */
static int
epset_collect(struct epset *es, struct epoll_event *out, int max)
{
	unsigned look;
	int n = 0;

	mtx_lock(&es->es_lock);
	look = es->es_nready;
	while (n < max && look-- > 0 && es->es_nready > 0)
		n += epset_take(es, &out[n]);
	epset_unkick(es);
	epset_kick(es);		/* others may sleep though some is left */
	mtx_unlock(&es->es_lock);
	return (n);
}

/* Takes our own eventfd out of what the kernel reported. */
static int
drop_wake(const struct epset *es, struct epoll_event *out, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (out[i].data.ptr != es)
			out[kept++] = out[i];
	return (kept);
}

/* The kernel's events; sleeps until deadline.  -1 and errno, or a count. */
static int
kernel_epoll(int epfd, const struct epset *es, struct epoll_event *out,
    int max, nsec_t deadline, const sigset_t *mask)
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
	return (n > 0 ? drop_wake(es, out, n) : n);
}

static int
kernel_sleep(int epfd, struct epset *es, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int n;

	mtx_lock(&es->es_lock);
	es->es_sleepers++;
	epset_kick(es);		/* something came since we looked */
	mtx_unlock(&es->es_lock);
	n = kernel_epoll(epfd, es, out, max, deadline, mask);
	mtx_lock(&es->es_lock);
	es->es_sleepers--;
	mtx_unlock(&es->es_lock);
	return (n);
}

/*
 * Room for the stack's events, so that the kernel's have their share: all
 * but one entry, and every other time if there is one only.
 */
static int
stack_share(struct epset *es, int max)
{
	if (atomic_load_u32(&es->es_kernel) == 0)
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
	bool expired;

	for (;;) {
		expired = time_left(deadline) == 0;
		share = stack_share(es, max);
		n = epset_collect(es, out, share);
		k = 0;
		if (n < max && atomic_load_u32(&es->es_kernel) != 0)
			k = kernel_epoll(epfd, es, out + n, max - n, 0, NULL);
		if (k < 0 && n == 0)
			return (-1);
		n += k > 0 ? k : 0;
		if (n > 0 || (expired && share > 0))
			return (n);
		if (expired || share == 0)
			continue;
		k = kernel_sleep(epfd, es, out, max, deadline, mask);
		if (k != 0)
			return (k);
	}
}

/* epoll_pwait() on a set of ours until deadline; releases f. */
static int
epoll_until(int epfd, struct file *f, struct epoll_event *out, int max,
    nsec_t deadline, const sigset_t *mask)
{
	int n;

	if (api_state() == API_FORKED)	/* the sockets stayed in the parent */
		return (kernel_epoll(epfd, f->f_ep, out, max, deadline, mask));
	if (max <= 0) {
		frele(f);
		return ((int)api_return(EINVAL, 0));
	}
	api_enter();
	n = epset_wait(epfd, f->f_ep, out, max, deadline, mask);
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
		return (real.epoll_pwait(epfd, out, max, ms, mask));
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
		return (real.epoll_pwait2(epfd, out, max, timeout, mask));
	if (deadline_ts(timeout, &deadline) != 0) {
		frele(f);
		return ((int)api_return(EINVAL, 0));
	}
	return (epoll_until(epfd, f, out, max, deadline, mask));
}

EXPORT int
epoll_create1(int flags)
{
	struct file *f;
	int fd = real.epoll_create1(flags);

	if (fd == -1 || fd >= API_MAXFD || api_state() != API_UP)
		return (fd);
	api_enter();
	f = file_new(FT_EPOLL);
	if ((f->f_ep = epset_new(fd)) != NULL)
		fd_install(fd, f);
	frele(f);
	api_leave(0);
	if (!fd_ours(fd)) {
		real.close(fd);
		return ((int)api_return(EMFILE, 0));
	}
	return (fd);
}

EXPORT int
epoll_create(int size)
{
	if (size <= 0)
		return ((int)api_return(EINVAL, 0));
	return (epoll_create1(0));
}

/* A kernel descriptor goes into the kernel's set. */
static int
kernel_ctl(struct epset *es, int epfd, int op, int fd,
    struct epoll_event *event)
{
	struct file *nested = fget_type(fd, FT_EPOLL);
	int r;

	if (nested != NULL) {
		epoll_expose(nested->f_ep);
		frele(nested);
	}
	r = real.epoll_ctl(epfd, op, fd, event);
	if (r == 0 && op == EPOLL_CTL_ADD)
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
	if (set == NULL || !api_own_process()) {
		if (set != NULL)
			frele(set);
		return (real.epoll_ctl(epfd, op, fd, event));
	}
	f = fget_type(fd, FT_SOCKET);
	api_enter();
	if (f == NULL)
		r = kernel_ctl(set->f_ep, epfd, op, fd, event);
	else {
		r = (int)api_return(epset_ctl(set->f_ep, op, f, fd, event), 0);
		frele(f);
	}
	frele(set);
	api_leave(0);
	return (r);
}
