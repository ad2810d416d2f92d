/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MSG_ZEROCOPY (Linux, Documentation/networking/msg_zerocopy.rst).  A program
 * may reuse its buffer after the notification of that send.  The stack copies
 * the data, so the notification comes at once, and reports that it was copied.
 */
#include <time.h>
#include <linux/errqueue.h>		/* needs struct timespec */

#include "kern/socketvar.h"

/* Numbers and reports a send. */
static void
notify(struct socket *so) REQUIRES(so->so_lock)
{
	const bool ipv6 = so->so_proto->pr_domain == AF_INET6;
	const struct sock_extended_err ee = {
		.ee_origin = SO_EE_ORIGIN_ZEROCOPY,
		.ee_code = SO_EE_CODE_ZEROCOPY_COPIED,
		.ee_info = so->so_zerocopies, .ee_data = so->so_zerocopies
	};
	struct socontrol control = { .sc_len = 0 };
	struct sockname name = sockname_none(so);

	so->so_zerocopies++;
	socontrol_add(&control, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
	    ipv6 ? IPV6_RECVERR : IP_RECVERR, &ee, sizeof(ee));
	(void)sbappendaddr(&so->so_errors, &name, &control, m_gethdr(0));
	sorwakeup(so);
	sowwakeup(so);
}

int
sosend_zerocopy(struct socket *so, const struct msghdr *msg, int flags,
    size_t *done)
{
	int error = sosend(so, msg, flags & ~MSG_ZEROCOPY, done);

	if (error != 0)
		return (error);
	so_enter(so);
	if (so->so_options & SOO_ZEROCOPY)
		notify(so);
	so_leave(so);
	return (0);
}
