/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * select and pselect by means of ppoll().  select(2) defines the events that
 * make a descriptor a member of each result set.
 */
#include <stdlib.h>

#include "api/api.h"

#define	SELECT_FEW	16

#define	READ_EVENTS	(POLLIN | POLLRDNORM | POLLRDBAND)
#define	WRITE_EVENTS	(POLLOUT | POLLWRNORM | POLLWRBAND)
#define	EXCEPT_EVENTS	POLLPRI

/* fd_set without its size limit: programs allocate longer ones. */
static bool
isset(const fd_set *set, int fd)
{
	const unsigned long *words = (const unsigned long *)(const void *)set;

	return (set != NULL && (words[fd / 64] >> (fd % 64) & 1) != 0);
}

static void
assign(fd_set *set, int fd, bool value)
{
	unsigned long *words = (unsigned long *)(void *)set;

	if (set == NULL)
		return;
	if (value)
		words[fd / 64] |= 1UL << (fd % 64);
	else
		words[fd / 64] &= ~(1UL << (fd % 64));
}

static short
wanted(int fd, const fd_set *rd, const fd_set *wr, const fd_set *ex)
{
	return ((short)((isset(rd, fd) ? READ_EVENTS : 0) |
	    (isset(wr, fd) ? WRITE_EVENTS : 0) |
	    (isset(ex, fd) ? EXCEPT_EVENTS : 0)));
}

/* Sets that the kernel refuses, too. */
static bool
any_bad(const fd_set *rd, const fd_set *wr, const fd_set *ex)
{
	return ((rd != NULL && address_bad(rd)) ||
	    (wr != NULL && address_bad(wr)) || (ex != NULL && address_bad(ex)));
}

/* Counts the members; *ours: a number of the stack is among them. */
static int
count_members(int n, const fd_set *rd, const fd_set *wr, const fd_set *ex,
    bool *ours)
{
	int count = 0;

	*ours = false;
	for (int fd = 0; fd < n && !any_bad(rd, wr, ex); fd++)
		if (wanted(fd, rd, wr, ex) != 0) {
			count++;
			*ours |= fd_known(fd);
		}
	return (count);
}

/*
 * Builds the result sets from ppoll()'s; returns -1 and EBADF, or a bit count.
 */
static int
store_result(int n, const struct pollfd *fds, int nfds, fd_set *rd,
    fd_set *wr, fd_set *ex)
{
	int bits = 0;

	for (int i = 0; i < nfds; i++)
		if (fds[i].revents & POLLNVAL)
			return ((int)api_return(EBADF, 0));
	for (int i = 0; i < nfds && fds[i].fd < n; i++) {
		const int fd = fds[i].fd, got = fds[i].revents;
		const bool r = isset(rd, fd) &&
		    (got & (READ_EVENTS | POLLHUP | POLLERR));
		const bool w = isset(wr, fd) &&
		    (got & (WRITE_EVENTS | POLLERR));
		const bool e = isset(ex, fd) && (got & EXCEPT_EVENTS);

		assign(rd, fd, r);
		assign(wr, fd, w);
		assign(ex, fd, e);
		bits += r + w + e;
	}
	return (bits);
}

static int
select_poll(int n, int members, fd_set *rd, fd_set *wr, fd_set *ex,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd few[SELECT_FEW], *fds = few;
	int i = 0, r;

	if (members > SELECT_FEW)
		fds = kmalloc((size_t)members * sizeof(*fds));
	for (int fd = 0; fd < n && i < members; fd++) {
		const short events = wanted(fd, rd, wr, ex);

		if (events == 0)
			continue;
		fds[i].fd = fd;
		fds[i++].events = events;
	}
	KASSERT(i == members, ("select_poll: %d of %d members", i, members));
	r = ppoll(fds, (nfds_t)i, timeout, mask);
	if (r >= 0)
		r = store_result(n, fds, i, rd, wr, ex);
	if (fds != few)
		kfree(fds);
	return (r);
}

EXPORT int
pselect(int n, fd_set *restrict rd, fd_set *restrict wr, fd_set *restrict ex,
    const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	int members;
	bool ours;

	members = count_members(n, rd, wr, ex, &ours);
	if (!ours)
		return (real.pselect(n, rd, wr, ex, timeout, mask));
	return (select_poll(n, members, rd, wr, ex, timeout, mask));
}

/* As in Linux, stores the remaining time in *timeout. */
EXPORT int
select(int n, fd_set *restrict rd, fd_set *restrict wr, fd_set *restrict ex,
    struct timeval *restrict timeout)
{
	struct timespec ts;
	nsec_t deadline, left;
	int members, r;
	bool ours;

	members = count_members(n, rd, wr, ex, &ours);
	if (!ours)
		return (real.select(n, rd, wr, ex, timeout));
	if (timeout == NULL)
		return (select_poll(n, members, rd, wr, ex, NULL, NULL));
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
		return ((int)api_return(EINVAL, 0));
	ts.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
	ts.tv_nsec = timeout->tv_usec % 1000000 * 1000;
	(void)deadline_ts(&ts, &deadline);
	r = select_poll(n, members, rd, wr, ex, &ts, NULL);
	left = time_left(deadline);
	if (left != NSEC_FOREVER) {
		timeout->tv_sec = (time_t)(left / NSEC_PER_SEC);
		timeout->tv_usec = (suseconds_t)(left % NSEC_PER_SEC / 1000);
	}
	return (r);
}
