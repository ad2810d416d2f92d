/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "exclusive-socket": the net lock, exclusively, and the socket's mutex for
 * each segment.
 */
#include "netinet/tcp_lock.h"

const struct tcp_strategy tcp_lock_exclusive_socket = {
	.ts_net = NETLOCK_EXCLUSIVE, .ts_lockops = &tcp_lock_mutex,
};
