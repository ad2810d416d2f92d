/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "giant": Giant over the whole stack; no lock for each connection (BSD until
 * 2004).
 */
#include "netinet/tcp_lock.h"

const struct tcp_lockops tcp_lock_giant = {
	.tlo_giant = true, .tlo_lockops = &tcp_lock_outer,
};
