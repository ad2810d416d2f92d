/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocols whose input needs the net lock exclusively.  If the lock is
 * shared, their packets are queued to a thread that takes it exclusively
 * (OpenBSD's if_netisr()).  No protocol of this stack needs that;
 * net.inet.ip.alone selects some to measure the cost.
 */
#ifndef NETINET_IN_EXCLUSIVE_H
#define NETINET_IN_EXCLUSIVE_H

void	 in_exclusive_init(void);	/* registers the tunable */
int	 in_exclusive_start(void);	/* 0 or an errno value, printed */
void	 in_exclusive_stop(void);

#endif /* NETINET_IN_EXCLUSIVE_H */
