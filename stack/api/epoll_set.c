/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's sockets in an epoll set.
 *
 * The program's epoll descriptor is a kernel epoll.  Kernel descriptors are
 * registered with it as usual.  The stack's sockets are kept here, as items
 * with a watcher each.  A watcher puts its item on the ready list.  A waiting
 * thread polls that list for a while, and then sleeps in the kernel's
 * epoll_pwait(), where a registered eventfd wakes it.  The same eventfd makes
 * the descriptor readable if it is polled or in another set.
 *
 * An item on the ready list may be ready; the thread that removes it polls the
 * socket.  It is removed before the poll, so that a later change queues it
 * again.  Level-triggered items return to the end of the list if they were
 * ready.  This implements level, edge and one-shot.
 *
 * Locks: epoll_filelock is held while sets change and is taken before a
 * socket's lock.  It is no mutex, because a thread may sleep with it: some
 * strategies of locking let a call wait until another one has left the socket.
 * A watcher runs under the socket's lock and takes es_lock.
 */
#include <pthread.h>

#include "api/epoll.h"
#include "kern/synch.h"

#define	EPOLL_FLAGS	(EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)
#define	EPOLL_ALWAYS	(EPOLLERR | EPOLLHUP)

static struct mtx filelock_mtx;
static bool filelock_held GUARDED_BY(filelock_mtx);
/* Sets that the kernel polls: they are in a poll() or in another set. */
static LIST_HEAD(, epset) exposed GUARDED_BY(epoll_filelock) =
    LIST_HEAD_INITIALIZER(exposed);
static pthread_once_t epoll_once = PTHREAD_ONCE_INIT;

static void
epoll_init(void)
{
	mtx_init(&filelock_mtx, LC_FD);
}

struct epset *
epset_new(int epfd)
{
	struct epset *es = kmalloc(sizeof(*es));
	struct epoll_event wake = { .events = EPOLLIN, .data.u64 = EPSET_WAKE };

	pthread_once(&epoll_once, epoll_init);
	mtx_init(&es->es_lock, LC_EPOLL);
	mtx_private(&es->es_lock);
	role_assert(&epoll_filelock);	/* the set is new */
	LIST_INIT(&es->es_items);
	TAILQ_INIT(&es->es_ready);
	es->es_eventfd = fd_hidden_event();
	if (es->es_eventfd == -1 || real.epoll_ctl(epfd, EPOLL_CTL_ADD,
	    es->es_eventfd, &wake) != 0) {
		fd_hidden_close(es->es_eventfd);
		kfree(es);
		return (NULL);
	}
	return (es);
}

void
epset_kick(struct epset *es) REQUIRES(es->es_lock)
{
	const uint64_t one = 1;

	if (es->es_signalled || !epset_may_be_ready(es) ||
	    (es->es_sleepers == 0 && !epset_exposed(es)))
		return;
	es->es_signalled = true;
	(void)!real.write(es->es_eventfd, &one, sizeof(one));
}

static void
epset_unkick(struct epset *es) REQUIRES(es->es_lock)
{
	uint64_t count;

	if (!es->es_signalled || epset_may_be_ready(es))
		return;
	es->es_signalled = false;
	(void)!real.read(es->es_eventfd, &count, sizeof(count));
}

static void
epitem_queue(struct epset *es, struct epitem *ei)
    REQUIRES(es->es_lock, epset_role)
{
	if (ei->ei_queued || ei->ei_dead || ei->ei_event.events == 0)
		return;
	TAILQ_INSERT_TAIL(&es->es_ready, ei, ei_ready);
	ei->ei_queued = true;
	atomic_store_u32(&es->es_nready, atomic_load_u32(&es->es_nready) + 1);
}

static void
epitem_unqueue(struct epset *es, struct epitem *ei)
    REQUIRES(es->es_lock, epset_role)
{
	if (!ei->ei_queued)
		return;
	KASSERT(epset_may_be_ready(es), ("epitem_unqueue: none ready"));
	TAILQ_REMOVE(&es->es_ready, ei, ei_ready);
	ei->ei_queued = false;
	atomic_store_u32(&es->es_nready, atomic_load_u32(&es->es_nready) - 1);
}

static void
epitem_wake(struct sowatch *watch, int events)
{
	struct epitem *ei = container_of(watch, struct epitem, ei_watch);
	struct epset *es = ei->ei_set;

	mtx_lock_as(&es->es_lock, &epset_role);
	if (events == 0 ||
	    ((uint32_t)events & (ei->ei_event.events | EPOLL_ALWAYS)) != 0) {
		epitem_queue(es, ei);
		epset_kick(es);
	}
	mtx_unlock_as(&es->es_lock, &epset_role);
}

static void
epitem_rele(struct epitem *ei)
{
	if (atomic_fetchadd_u32(&ei->ei_refs, (uint32_t)-1) != 1)
		return;
	role_assert(&epset_role);	/* it was the last reference */
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
	atomic_store_u32(&es->es_sockets,
	    atomic_load_u32(&es->es_sockets) - 1);
	LIST_REMOVE(ei, ei_filelink);
	mtx_lock_as(&es->es_lock, &epset_role);
	KASSERT(!ei->ei_dead, ("epitem_remove: %d twice", ei->ei_fd));
	ei->ei_dead = true;
	epitem_unqueue(es, ei);
	epset_unkick(es);
	mtx_unlock_as(&es->es_lock, &epset_role);
	epitem_rele(ei);
}

static void
epitem_add(struct epset *es, struct file *f, int fd,
    const struct epoll_event *event) REQUIRES(epoll_filelock)
{
	struct epitem *ei = kmalloc(sizeof(*ei));
	int ready;

	role_assert(&epset_role);	/* the item is new */
	atomic_store_u32(&ei->ei_refs, 1);
	KASSERT(f->f_type == FT_SOCKET && f->f_so != NULL,
	    ("epitem_add: descriptor %d is no socket", fd));
	ei->ei_set = es;
	ei->ei_file = f;
	ei->ei_so = f->f_so;
	ei->ei_fd = fd;
	ei->ei_event = *event;
	ei->ei_event.events |= EPOLL_ALWAYS;
	ei->ei_exclusive = (event->events & EPOLLEXCLUSIVE) != 0;
	ei->ei_watch.sw_fn = epitem_wake;
	soref(ei->ei_so);
	LIST_INSERT_HEAD(&es->es_items, ei, ei_setlink);
	atomic_store_u32(&es->es_sockets,
	    atomic_load_u32(&es->es_sockets) + 1);
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

	mtx_lock_as(&es->es_lock, &epset_role);
	ei->ei_event = *event;
	ei->ei_event.events |= EPOLL_ALWAYS;
	ei->ei_modified++;
	/* it may be ready: a waiting thread will poll it */
	epitem_queue(es, ei);
	epset_kick(es);
	mtx_unlock_as(&es->es_lock, &epset_role);
}

/*
 * epoll_ctl(2): EPOLLEXCLUSIVE is valid only for EPOLL_CTL_ADD, permanent, and
 * combines with few flags.  All waiters are woken nevertheless, because "one
 * or more" is permitted.
 */
static bool
exclusive_ok(int op, const struct epoll_event *event, const struct epitem *ei)
{
	const uint32_t with = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP |
	    EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;

	if (op == EPOLL_CTL_DEL)
		return (true);
	if (op == EPOLL_CTL_MOD && ei != NULL && ei->ei_exclusive)
		return (false);
	return ((event->events & EPOLLEXCLUSIVE) == 0 ||
	    (op == EPOLL_CTL_ADD && (event->events & ~with) == 0));
}

/* Giant comes first, because polled sockets may need it. */
static void
filelock_enter(void) ACQUIRES(epoll_filelock)
{
	giant_enter();
	mtx_lock(&filelock_mtx);
	while (filelock_held)
		(void)msleep(&filelock_held, &filelock_mtx, PDUE, "epoll set",
		    NSEC_FOREVER);
	filelock_held = true;
	mtx_unlock(&filelock_mtx);
	role_take(&epoll_filelock);
}

static void
filelock_leave(void) RELEASES(epoll_filelock)
{
	role_drop(&epoll_filelock);
	mtx_lock(&filelock_mtx);
	filelock_held = false;
	wakeup(&filelock_held);
	mtx_unlock(&filelock_mtx);
	giant_exit();
}

int
epset_ctl(struct epset *es, int op, struct file *f, int fd,
    const struct epoll_event *event)
{
	struct epitem *ei;
	int error = 0;

	if (event == NULL && op != EPOLL_CTL_DEL)
		return (EFAULT);
	filelock_enter();
	ei = epitem_find(es, f, fd);
	if (atomic_load_acq_u32(&f->f_fds) == 0)
		error = EBADF;		/* closed meanwhile */
	else if (!exclusive_ok(op, event, ei))
		error = EINVAL;
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
	filelock_leave();
	return (error);
}

void
epoll_forget(struct file *f)
{
	struct epitem *ei;

	pthread_once(&epoll_once, epoll_init);
	filelock_enter();
	while ((ei = LIST_FIRST(&f->f_items)) != NULL)
		epitem_remove(ei);
	filelock_leave();
}

void
epset_free(struct epset *es)
{
	struct epitem *ei;

	filelock_enter();
	while ((ei = LIST_FIRST(&es->es_items)) != NULL)
		epitem_remove(ei);
	if (epset_exposed(es))
		LIST_REMOVE(es, es_link);
	filelock_leave();
	fd_hidden_close(es->es_eventfd);
	mtx_destroy(&es->es_lock);
	kfree(es);
}

/*
 * Removes the first item of the ready list and polls its socket.  The item is
 * referenced; *got is 0 if it is not ready, or if it was modified during the
 * poll: another thread may have consumed a one-shot event and its data, and
 * armed it again.
 */
static struct epitem *
epset_next(struct epset *es, uint32_t *got)
    REQUIRES(es->es_lock, epset_role)
{
	struct epitem *ei = TAILQ_FIRST(&es->es_ready);
	uint32_t wanted = ei->ei_event.events & ~EPOLL_FLAGS;
	unsigned modified = ei->ei_modified;

	KASSERT(ei->ei_queued && ei->ei_set == es,
	    ("epset_next: descriptor %d is not queued here", ei->ei_fd));
	epitem_unqueue(es, ei);
	atomic_fetchadd_u32(&ei->ei_refs, 1);
	mtx_unlock_as(&es->es_lock, &epset_role);
	*got = (uint32_t)sopoll(ei->ei_so, (int)wanted) & wanted;
	mtx_lock_as(&es->es_lock, &epset_role);
	if (ei->ei_dead || ei->ei_event.events == 0 ||
	    ei->ei_modified != modified)
		*got = 0;
	return (ei);
}

/*
 * Removes items that are not ready any more from the ready list, so that the
 * eventfd shows whether the set has events.
 */
static void
epset_refresh(struct epset *es)
{
	unsigned look;
	uint32_t got;

	mtx_lock_as(&es->es_lock, &epset_role);
	look = atomic_load_u32(&es->es_nready);
	while (look-- > 0 && epset_may_be_ready(es)) {
		struct epitem *ei = epset_next(es, &got);

		if (got != 0)
			epitem_queue(es, ei);
		mtx_unlock_as(&es->es_lock, &epset_role);
		epitem_rele(ei);
		mtx_lock_as(&es->es_lock, &epset_role);
	}
	epset_unkick(es);
	epset_kick(es);
	mtx_unlock_as(&es->es_lock, &epset_role);
}

void
epoll_expose(struct epset *es)
{
	filelock_enter();
	mtx_lock_as(&es->es_lock, &epset_role);
	if (!epset_exposed(es))
		LIST_INSERT_HEAD(&exposed, es, es_link);
	atomic_store_u32(&es->es_exposed, 1);
	mtx_unlock_as(&es->es_lock, &epset_role);
	epset_refresh(es);
	filelock_leave();
}

void
epoll_refresh(void)
{
	struct epset *es;

	filelock_enter();
	LIST_FOREACH(es, &exposed, es_link)
		epset_refresh(es);
	filelock_leave();
}

/* Stores the events of the first item of the ready list; false if it has none. */
static bool
epset_take(struct epset *es, struct epoll_event *out)
    REQUIRES(es->es_lock, epset_role)
{
	uint32_t got;
	struct epitem *ei = epset_next(es, &got);

	if (got != 0) {
		out->events = got;
		out->data = ei->ei_event.data;
		if (ei->ei_event.events & EPOLLONESHOT)
			ei->ei_event.events = 0;
		else if (!(ei->ei_event.events & EPOLLET))
			epitem_queue(es, ei);
	}
	mtx_unlock_as(&es->es_lock, &epset_role);
	epitem_rele(ei);
	mtx_lock_as(&es->es_lock, &epset_role);
	return (got != 0);
}

int
epset_collect(struct epset *es, struct epoll_event *out, int max)
{
	unsigned look;
	int n = 0;

	mtx_lock_as(&es->es_lock, &epset_role);
	look = atomic_load_u32(&es->es_nready);
	while (n < max && look-- > 0 && epset_may_be_ready(es))
		n += epset_take(es, &out[n]);
	epset_unkick(es);
	epset_kick(es); /* other threads may sleep although events are left */
	mtx_unlock_as(&es->es_lock, &epset_role);
	return (n);
}
