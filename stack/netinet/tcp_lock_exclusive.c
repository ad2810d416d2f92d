/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "exclusive": the net lock, exclusively; no lock for each connection (OpenBSD
 * until 2024).
 */
#include "netinet/tcp_lock.h"

const struct tcp_lockops tcp_lock_exclusive = {
	.tlo_net = NETLOCK_EXCLUSIVE, .tlo_lockops = &tcp_lock_outer,
};
