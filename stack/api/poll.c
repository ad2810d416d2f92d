/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll, ppoll, select and pselect over any mixture of the stack's sockets and
 * kernel descriptors.
 *
 * First all entries are polled once without registration, because a busy
 * program nearly always finds one ready.  Only a thread that must sleep
 * registers a watcher with each socket.  Registration polls again in the same
 * locked step, so no change is missed.
 */
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>

#include "api/poll.h"
#include "api/remote.h"

#define	POLL_FEW	16	/* entries kept on the C stack */
#define	POLL_TURN	NSEC_PER_MSEC	/* see turn_end() */

struct pollset {
	struct pollfd	*ps_user;	/* the caller's array */
	nfds_t		 ps_n;
	struct pollent	*ps_ent;	/* entries for the stack's sockets */
	unsigned	 ps_nent;
	/* ps_n entries of the kernel (fd -1: none), then the eventfd */
	struct pollfd	*ps_kernel;
	struct remote_poll *ps_remote;	/* in a client: ps_n entries */
	bool		 ps_mixed;	/* some descriptors are the kernel's */
	bool		 ps_inkernel;	/* sleeps in the kernel */
	int		 ps_kready;	/* number of ready kernel descriptors */
	struct waiter	 ps_waiter;
};

static void
pollent_wake(struct sowatch *watch, int events)
{
	struct pollent *pe = container_of(watch, struct pollent, pe_watch);

	if (events == 0 ||
	    (events & (pe->pe_fd->events | POLLERR | POLLHUP)) != 0)
		waiter_wake(pe->pe_waiter);
}

void
pollent_init(struct pollent *pe, struct file *f, struct pollfd *fd,
    struct waiter *w)
{
	pe->pe_file = f;
	pe->pe_fd = fd;
	pe->pe_waiter = w;
	pe->pe_watch.sw_fn = pollent_wake;
}

/* Separates the caller's entries into the stack's and the kernel's. */
static void
pollset_gather(struct pollset *ps)
{
	for (nfds_t i = 0; i < ps->ps_n; i++) {
		struct pollfd *user = &ps->ps_user[i];
		struct file *f = fget(user->fd);

		user->revents = 0;
		ps->ps_kernel[i] = *user;
		ps->ps_kernel[i].fd = fd_kernel(user->fd);
		if (f != NULL && f->f_type == FT_SOCKET) {
			struct pollent *pe = &ps->ps_ent[ps->ps_nent++];

			KASSERT(ps->ps_nent <= ps->ps_n,
			    ("pollset_gather: %u sockets of %lu", ps->ps_nent,
			    (unsigned long)ps->ps_n));
			pollent_init(pe, f, user, &ps->ps_waiter);
			ps->ps_kernel[i].fd = -1;
			continue;
		}
		if (f != NULL && f->f_type == FT_EPOLL) {
			if (f->f_ep != NULL)
				epoll_expose(f->f_ep);
			else
				remote_epoll_refresh();
		}
		if (f != NULL)
			frele(f);
		if (user->fd >= 0)
			ps->ps_mixed = true;
	}
}

static short
pollent_ready(struct pollent *pe, int got)
{
	return ((short)(got & (pe->pe_fd->events | POLLERR | POLLHUP)));
}

int
pollents_scan(struct pollent *ents, unsigned n)
{
	int ready = 0;

	for (struct pollent *pe = ents; pe < ents + n; pe++) {
		pe->pe_fd->revents = pollent_ready(pe,
		    sopoll(pe->pe_file->f_so, pe->pe_fd->events));
		ready += pe->pe_fd->revents != 0;
	}
	return (ready);
}

int
pollents_watch(struct pollent *ents, unsigned n)
{
	int ready = 0;

	for (struct pollent *pe = ents; pe < ents + n; pe++) {
		pe->pe_fd->revents = pollent_ready(pe, sowatch_add(
		    pe->pe_file->f_so, &pe->pe_watch, pe->pe_fd->events));
		ready += pe->pe_fd->revents != 0;
	}
	return (ready);
}

void
pollents_unwatch(struct pollent *ents, unsigned n)
{
	for (struct pollent *pe = ents; pe < ents + n; pe++)
		sowatch_remove(pe->pe_file->f_so, &pe->pe_watch);
}

/* In a client: tests the sockets; with arm, the eventfd reports them later. */
static int
pollset_ask(struct pollset *ps, bool arm, int *ready)
{
	int error;

	for (unsigned i = 0; i < ps->ps_nent; i++)
		ps->ps_remote[i] = (struct remote_poll){
			.rp_handle = ps->ps_ent[i].pe_file->f_handle,
			.rp_events = ps->ps_ent[i].pe_fd->events
		};
	error = remote_poll(ps->ps_remote, ps->ps_nent, arm, ready);
	for (unsigned i = 0; i < ps->ps_nent && error == 0; i++)
		ps->ps_ent[i].pe_fd->revents = ps->ps_remote[i].rp_revents;
	return (error);
}

/* Stores how many sockets are ready; in a client, arm as above. */
static int
pollset_look(struct pollset *ps, bool arm, int *ready)
{
	*ready = 0;
	if (ps->ps_remote != NULL)
		return (pollset_ask(ps, arm, ready));
	*ready = pollents_scan(ps->ps_ent, ps->ps_nent);
	return (0);
}

/* Polls the kernel's descriptors; sleeps there until deadline. */
static int
pollset_kernel(struct pollset *ps, nsec_t deadline, const sigset_t *mask)
{
	struct pollfd *wake = &ps->ps_kernel[ps->ps_n];
	int count;

	wake->fd = ps->ps_waiter.wt_eventfd;
	wake->events = POLLIN;
	wake->revents = 0;
	count = kernel_poll(ps->ps_kernel, ps->ps_n + 1, deadline, mask);
	if (count < 0)
		return (errno);
	ps->ps_kready = count - (wake->revents != 0);
	return (0);
}

/*
 * The end of one sleep in the kernel.  If no descriptor is left for an eventfd
 * (EMFILE), nothing wakes the thread for the stack's sockets, and it polls both
 * in turns: poll(2) needs no descriptor.
 */
static nsec_t
turn_end(const struct pollset *ps, nsec_t deadline)
{
	nsec_t turn;

	if (ps->ps_waiter.wt_eventfd != -1)
		return (deadline);
	turn = mach_uptime() + POLL_TURN;
	return (turn < deadline ? turn : deadline);
}

/*
 * Returns 0 or an errno value; *ready is the number of ready entries.  The
 * last poll comes after the deadline or signal, as in the kernel: readiness
 * takes precedence.  A client's sockets are watched already.
 */
static int
pollset_sleep(struct pollset *ps, nsec_t deadline, const sigset_t *mask,
    int *ready)
{
	int error = 0, failed = 0;

	if (ps->ps_remote == NULL)
		*ready = pollents_watch(ps->ps_ent, ps->ps_nent);
	while (*ready == 0 && ps->ps_kready == 0 && error == 0 && failed == 0) {
		if (ps->ps_inkernel)
			error = pollset_kernel(ps, turn_end(ps, deadline),
			    mask);
		else
			error = waiter_sleep(&ps->ps_waiter, deadline);
		waiter_reset(&ps->ps_waiter);
		failed = pollset_look(ps, true, ready);
		if (error == 0 && time_left(deadline) == 0)
			error = EWOULDBLOCK;
	}
	if (ps->ps_remote == NULL)
		pollents_unwatch(ps->ps_ent, ps->ps_nent);
	waiter_reset(&ps->ps_waiter);
	if (*ready > 0 || ps->ps_kready > 0 || error == EWOULDBLOCK)
		return (0);
	return (failed != 0 ? failed : error);
}

/* The eventfd of a client's thread is its channel's. */
static int
pollset_waiter(struct pollset *ps, bool masked)
{
	int error;

	ps->ps_inkernel = ps->ps_mixed || masked || ps->ps_remote != NULL;
	error = waiter_init(&ps->ps_waiter, ps->ps_inkernel &&
	    ps->ps_remote == NULL);
	if (ps->ps_remote != NULL)
		ps->ps_waiter.wt_eventfd = remote_eventfd();
	return (error != EMFILE && error != ENFILE ? error : 0);
}

static int
pollset_poll(struct pollset *ps, nsec_t deadline, const sigset_t *mask,
    int *total)
{
	int error, ready;

	error = pollset_waiter(ps, mask != NULL);
	if (error != 0)
		return (error);
	error = pollset_look(ps, time_left(deadline) > 0, &ready);
	if (error == 0 && ready == 0 && time_left(deadline) > 0)
		error = pollset_sleep(ps, deadline, mask, &ready);
	if (error == 0 && ps->ps_mixed && ps->ps_kready == 0)
		error = pollset_kernel(ps, 0, NULL);
	if (ps->ps_kready > 0)
		for (nfds_t i = 0; i < ps->ps_n; i++)
			if (ps->ps_kernel[i].fd >= 0)
				ps->ps_user[i].revents =
				    ps->ps_kernel[i].revents;
	*total = ready + ps->ps_kready;
	return (error);
}

/* False for arguments that the kernel refuses, too. */
static bool
poll_ours(const struct pollfd *fds, nfds_t n)
{
	struct rlimit lim;

	if (api_state() == API_PASSIVE || address_bad(fds) ||
	    (n > FD_SETSIZE && getrlimit(RLIMIT_NOFILE, &lim) == 0 &&
	    n > lim.rlim_cur))
		return (false);
	for (nfds_t i = 0; i < n; i++)
		if (fd_known(fds[i].fd))
			return (true);
	return (false);
}

/* poll() until deadline if some descriptors are the stack's. */
static int
poll_until(struct pollfd *fds, nfds_t n, nsec_t deadline,
    const sigset_t *mask)
{
	struct pollent few_ents[POLL_FEW];
	struct pollfd few_fds[POLL_FEW + 1];
	struct remote_poll few_remote[POLL_FEW];
	struct pollset ps = {
		.ps_user = fds, .ps_n = n,
		.ps_ent = few_ents, .ps_kernel = few_fds
	};
	const bool client = api_state() == API_CLIENT;
	int error, total = 0;

	api_enter();
	ps.ps_remote = client ? few_remote : NULL;
	if (n > POLL_FEW) {
		if (client)
			ps.ps_remote = kmalloc(n * sizeof(*ps.ps_remote));
		ps.ps_ent = kmalloc(n * sizeof(*ps.ps_ent));
		ps.ps_kernel = kmalloc((n + 1) * sizeof(*ps.ps_kernel));
	}
	pollset_gather(&ps);
	error = pollset_poll(&ps, deadline, mask, &total);
	for (unsigned i = 0; i < ps.ps_nent; i++)
		frele(ps.ps_ent[i].pe_file);
	if (n > POLL_FEW) {
		if (client)
			kfree(ps.ps_remote);
		kfree(ps.ps_ent);
		kfree(ps.ps_kernel);
	}
	api_leave(error);
	return ((int)api_return(error, total));
}

EXPORT int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *mask)
{
	nsec_t deadline;

	if (!poll_ours(fds, n))
		return (real.ppoll(fds, n, timeout, mask));
	if (deadline_ts(timeout, &deadline) != 0)
		return ((int)api_return(EINVAL, 0));
	return (poll_until(fds, n, deadline, mask));
}

EXPORT int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct timespec ts = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L
	};

	if (!poll_ours(fds, n))
		return (real.ppoll(fds, n, ms < 0 ? NULL : &ts, NULL));
	return (poll_until(fds, n, deadline_ms(ms), NULL));
}

EXPORT int __poll_chk(struct pollfd *, nfds_t, int, size_t);
EXPORT int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *,
    const sigset_t *, size_t);
NORETURN void __chk_fail(void);

EXPORT int
__poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return (poll(fds, n, ms));
}

EXPORT int
__ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return (ppoll(fds, n, timeout, mask));
}
