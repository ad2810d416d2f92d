/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules are those of Linux (sock_wake_async()).  A reader that waits is
 * woken instead.  Space in the send buffer is reported if it was missed.  The
 * end of a stream's connection, or its error, is reported once.
 *
 * A signal to a thread inside the stack is deferred (api/signal.c), so that one
 * can be sent with the socket locked.
 */
#include <poll.h>
#include <signal.h>

#include "kern/sigio.h"

struct sosigio {
	struct sowatch	 sg_watch;	/* registered while O_ASYNC is set */
	struct socket	*sg_so;
	struct mach_target sg_owner;
	int		 sg_sig;	/* F_SETSIG, 0: SIGIO */
	int		 sg_fd;		/* O_ASYNC was set by it, or -1 */
	int		 sg_ended;	/* POLLERR, POLLHUP: reported */
};

const long sosigio_bands[POLL_HUP + 1] = {
	[POLL_IN] = POLLIN | POLLRDNORM,
	[POLL_OUT] = POLLOUT | POLLWRNORM | POLLWRBAND,
	[POLL_ERR] = POLLERR,
	[POLL_PRI] = POLLPRI | POLLRDBAND,
	[POLL_HUP] = POLLHUP | POLLERR
};

static void
report(const struct sosigio *sg, int code)
{
	if (sg->sg_sig != 0)
		mach_signal(&sg->sg_owner, sg->sg_sig, sg->sg_fd,
		    sosigio_bands[code]);
	else if (code != POLL_PRI)	/* SIGURG reports it */
		mach_signal(&sg->sg_owner, SIGIO, 0, 0);
}

static void
readable(struct sosigio *sg, int events)
{
	struct socket *so = sg->sg_so;
	int end = events & (POLLERR | POLLHUP);

	so_assert_locked(so);
	if (so->so_proto->pr_stream || so->so_proto->pr_local) {
		const int before = sg->sg_ended;

		sg->sg_ended = end;
		if (end != 0 && (end & ~before) == 0)
			return;
	}
	if (end & POLLERR)
		report(sg, POLL_ERR);
	else if (so->so_rcv.sb_waiters > 0 &&
	    (so->so_state & SS_LISTENING) == 0)
		return;
	else
		report(sg, end != 0 ? POLL_HUP : POLL_IN);
}

static void
writable(struct sosigio *sg, int events)
{
	struct socket *so = sg->sg_so;

	so_assert_locked(so);
	if ((so->so_state & SS_NOSPACE) == 0 ||
	    (events & (POLLERR | POLLHUP)) != 0)
		return;
	so->so_state &= ~(unsigned)SS_NOSPACE;
	report(sg, POLL_OUT);
}

static void
changed(struct sowatch *sw, int events)
{
	struct sosigio *sg = container_of(sw, struct sosigio, sg_watch);

	if (events & POLLOUT)
		writable(sg, events);
	else
		readable(sg, events);
}

static struct sosigio *
sigio_of(struct socket *so) REQUIRES(so->so_lock)
{
	struct sosigio *sg = so->so_sigio;

	if (sg != NULL)
		return (sg);
	sg = so->so_sigio = kmalloc(sizeof(*sg));
	sg->sg_watch.sw_fn = changed;
	sg->sg_so = so;
	sg->sg_fd = -1;
	return (sg);
}

static void
unwatch(struct sosigio *sg)
{
	so_assert_locked(sg->sg_so);
	if (sg->sg_fd == -1)
		return;
	sowatch_unlink(sg->sg_so, &sg->sg_watch);
	sg->sg_fd = -1;
}

static void
watch(struct sosigio *sg, int fd)
{
	struct socket *so = sg->sg_so;

	so_assert_locked(so);
	if (sg->sg_fd != -1)
		return;
	sg->sg_fd = fd;
	if (soready(so) & POLLOUT)
		so->so_state &= ~(unsigned)SS_NOSPACE;
	sowatch_link(so, &sg->sg_watch);
}

void
sosetasync(struct socket *so, int fd)
{
	so_enter(so);
	if ((so->so_state & SS_NOFDREF) == 0) {
		if (fd != -1)
			watch(sigio_of(so), fd);
		else if (so->so_sigio != NULL)
			unwatch(so->so_sigio);
	}
	so_leave(so);
}

void
sosetowner(struct socket *so, const struct mach_target *owner)
{
	so_enter(so);
	if ((so->so_state & SS_NOFDREF) == 0)
		sigio_of(so)->sg_owner = *owner;
	so_leave(so);
}

struct mach_target
sogetowner(struct socket *so)
{
	struct mach_target owner = { .kind = MACH_PROCESS };

	so_enter(so);
	if (so->so_sigio != NULL)
		owner = so->so_sigio->sg_owner;
	so_leave(so);
	return (owner);
}

void
sosetsignal(struct socket *so, int sig)
{
	so_enter(so);
	if ((so->so_state & SS_NOFDREF) == 0)
		sigio_of(so)->sg_sig = sig;
	so_leave(so);
}

int
sogetsignal(struct socket *so)
{
	int sig;

	so_enter(so);
	sig = so->so_sigio != NULL ? so->so_sigio->sg_sig : 0;
	so_leave(so);
	return (sig);
}

void
sosigurg(struct socket *so) REQUIRES(so->so_lock)
{
	const struct sosigio *sg = so->so_sigio;

	so_assert_locked(so);
	if (sg == NULL || sg->sg_owner.id == 0)
		return;
	mach_signal(&sg->sg_owner, SIGURG, 0, 0);
	if (sg->sg_fd != -1)
		report(sg, POLL_PRI);
}

void
sosigio_free(struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_sigio == NULL)
		return;
	unwatch(so->so_sigio);
	kfree(so->so_sigio);
	so->so_sigio = NULL;
}
