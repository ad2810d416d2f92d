/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "shared-socket": the net lock, shared, and the socket's mutex for each
 * segment.
 */
#include "netinet/tcp_lock.h"

const struct tcp_lockops tcp_lock_shared_socket = {
	.tlo_net = NETLOCK_SHARED, .tlo_lockops = &tcp_lock_mutex,
};
