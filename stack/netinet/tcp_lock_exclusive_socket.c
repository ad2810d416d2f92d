/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "exclusive-socket": the net lock, exclusively, and the socket's mutex for
 * each segment.
 */
#include "netinet/tcp_lock.h"

const struct tcp_lockops tcp_lock_exclusive_socket = {
	.tlo_net = NETLOCK_EXCLUSIVE, .tlo_lockops = &tcp_lock_mutex,
};
