/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a thread (thread_hints()) that this layer uses.
 */
#ifndef NETINET_IN_HINTS_H
#define	NETINET_IN_HINTS_H

#include "net/net_hints.h"

enum in_hint {
	IN_LINKS = NET_HINTS, /* link addresses (arp.c) */
	IN_PCBS,	/* connections (in_pcbtable.c) */
	IN_LOCK_BATCH,	/* tcp_lock_shared_socket_batch.c */
	IN_IDS,		/* identifications of datagrams (ip_id.c) */
	IN_TUNNELS,	/* depth of nested tunnels (ip_tunnel.c) */
	IN_HINTS
};

#endif /* NETINET_IN_HINTS_H */
