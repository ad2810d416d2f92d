/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "socket", the default: the socket's mutex for each segment, and no outer
 * lock.  All operations are NULL, so that input, calls and timers take the
 * mutex inline.
 */
#include "netinet/tcp_lock.h"

const struct tcp_lockops tcp_lock_socket = { .tlo_net = NETLOCK_NONE };
