/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IGMP: counters net.inet.igmp.stats.*.
 */
#ifndef NETINET_IGMP_H
#define NETINET_IGMP_H

#include "kern/systm.h"

#define	IGMP_STATS(X)							\
	X(received, "IGMP messages received")				\
	X(tooshort, "shorter than an IGMP message")			\
	X(checksum, "wrong IGMP checksum")				\
	X(bad, "wrong TTL, or not sent to the group they name")		\
	X(queries, "queries received")					\
	X(reports, "reports of other hosts received")			\
	X(sent, "reports and leaves sent")

#define	IGMP_STAT_FIELD(name, descr)	atomic_u64 name;
struct igmpstat { IGMP_STATS(IGMP_STAT_FIELD) };

void	 igmp_init(void);

#endif /* NETINET_IGMP_H */
