/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of return addresses: functions, also inlined ones, with their lines.
 */
#ifndef TOOLS_EXPLAIN_CALLS_H
#define TOOLS_EXPLAIN_CALLS_H

#include <stddef.h>

/* Collects addresses; explain_calls_resolve() then names them all. */
void	 explain_calls_add(void *const calls[], int n);
void	 explain_calls_resolve(void);
/*
 * Describes a stack by its callers outside of locks and the machine, at most
 * max of them: "single_send kern/unp_lock_single.c:31 < deliver_peer ...".
 */
void	 explain_calls_name(void *const calls[], int n, unsigned max,
	    char *buf, size_t len);

#endif /* TOOLS_EXPLAIN_CALLS_H */
