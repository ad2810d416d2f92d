/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a request (remote_calls.c) on this thread's channel (remote.c).  The
 * caller has entered the stack (api_enter()), so that no signal handler makes
 * another request meanwhile.
 */
#ifndef API_REMOTE_CALL_H
#define API_REMOTE_CALL_H

#include "api/remote.h"

/* The page for a request on a file; NULL and an errno value: no server. */
struct remote_call *remote_begin(enum remote_request, const struct file *,
	    int *error);
/* Has it executed, with a descriptor or -1; returns an errno value. */
int	 remote_transact(struct remote_call *, int fd);
/*
 * After an answer with rc_again: waits until the request is worth repeating.
 * *deadline is 0 before the first wait.  Returns 0, EWOULDBLOCK, EINTR or
 * ENETDOWN.
 */
int	 remote_wait(const struct remote_call *, nsec_t *deadline);

#endif /* API_REMOTE_CALL_H */
