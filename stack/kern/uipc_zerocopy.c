/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MSG_ZEROCOPY (Linux, Documentation/networking/msg_zerocopy.rst).  A program
 * may reuse its buffer after the notification of that send.  The stack copies
 * the data, so the notification comes at once, and reports that it was copied.
 */
#include <string.h>
#include <time.h>
#include <linux/errqueue.h>		/* needs struct timespec */

#include "kern/socketvar.h"

/* Makes the notification of the sends from first to last. */
static void
range(const struct socket *so, uint32_t first, uint32_t last,
    struct socontrol *control)
{
	const bool ipv6 = so->so_proto->pr_domain == AF_INET6;
	/* ip(7): an offender follows, here of no address family */
	const struct {
		struct sock_extended_err ee;
		union {
			struct sockaddr_in	 in;
			struct sockaddr_in6	 in6;
		} offender;
	} e = { .ee = {
		.ee_origin = SO_EE_ORIGIN_ZEROCOPY,
		.ee_code = SO_EE_CODE_ZEROCOPY_COPIED,
		.ee_info = first, .ee_data = last
	} };

	control->sc_len = 0;
	socontrol_add(control, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
	    ipv6 ? IPV6_RECVERR : IP_RECVERR, &e, sizeof(e.ee) +
	    (ipv6 ? sizeof(e.offender.in6) : sizeof(e.offender.in)));
}

/* Extends the newest notification to one send more, if it is unread. */
static bool
extend(struct socket *so, uint32_t id) REQUIRES(so->so_lock)
{
	struct socontrol before, after;
	const struct mbuf *m = so->so_errors.sb_tail;
	size_t len;

	if (m == NULL)
		return (false);
	range(so, so->so_zerofirst, id - 1, &before);
	range(so, so->so_zerofirst, id, &after);
	len = sizeof(before.sc_len) + before.sc_len;
	if (m->m_len < len || memcmp(m->m_data, &before, len) != 0)
		return (false);
	memcpy(m->m_data, &after, len);
	return (true);
}

/* Numbers and reports a send; adjacent ones share a notification. */
static void
notify(struct socket *so) REQUIRES(so->so_lock)
{
	const uint32_t id = so->so_zerocopies++;
	struct socontrol control;
	struct sockname name = sockname_none(so);

	if (!extend(so, id)) {
		so->so_zerofirst = id;
		range(so, id, id, &control);
		(void)sbappendaddr(&so->so_errors, &name, &control,
		    m_gethdr(0));
	}
	sorwakeup(so);
	sowwakeup(so);
}

int
sosend_zerocopy(struct socket *so, const struct msghdr *msg, int flags,
    size_t *done)
{
	int error = sosend(so, msg, flags & ~MSG_ZEROCOPY, done);

	if (error != 0 && *done == 0)
		return (error);
	so_enter(so);
	if (so->so_options & SOO_ZEROCOPY)
		notify(so);
	so_leave(so);
	return (error);
}
