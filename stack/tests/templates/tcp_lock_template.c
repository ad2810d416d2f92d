/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A template of a locking strategy of TCP's input (netinet/tcp_lock.h): the
 * net lock, shared, and the socket's mutex for each segment.
 *
 * To add a strategy, copy this file to netinet/tcp_lock_NAME.c, replace
 * "template" by NAME, and add NAME to tcp_locks in meson.build.
 */
#include "netinet/tcp_lock.h"

/* Looks the socket up again if the connection changed before it was locked. */
static void
template_input(struct tcpseg *sg)
{
	struct socket *so;

	do {
		so = tcp_find(sg);
		if (so == NULL)
			return;
		solock(so);
	} while (!tcp_input_locked(so, sg));
}

const struct tcp_lockops tcp_lock_template = {
	.tlo_net = NETLOCK_SHARED, .tlo_lockops = &tcp_lock_mutex,
	.tlo_input = template_input,
};
