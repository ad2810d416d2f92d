/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a request (remote_calls.c, remote_io.c) on this thread's channel (remote.c).  The
 * caller has entered the stack (api_enter()), so that no signal handler makes
 * another request meanwhile.
 */
#ifndef API_REMOTE_CALL_H
#define API_REMOTE_CALL_H

#include "api/remote.h"

/* The page for a request on a file; NULL and an errno value: no server. */
struct remote_call *remote_begin(enum remote_request, const struct file *,
	    int *error);
/* Descriptors of the kernel that travel with a request or its answer. */
struct remote_rights {
	int		 fds[RIGHTS_MAX];
	unsigned	 n;
};
/*
 * Has it executed, with a descriptor or -1; returns an errno value.
 * remote_pass() replaces the descriptors by those of the answer.
 */
int	 remote_transact(struct remote_call *, int fd);
int	 remote_pass(struct remote_call *, struct remote_rights *);
/*
 * Descriptors in a message (rights.c).  rights_request() puts numbers in their
 * place in a SEND request, and returns an errno value.  rights_install() puts
 * descriptors in the place of the numbers of a RECEIVE answer, for which
 * rights_answered() is true; msg is its copy.
 */
int	 rights_request(struct remote_call *, struct remote_rights *);
bool	 rights_answered(const struct remote_call *);
void	 rights_install(struct msghdr *msg, const struct remote_call *,
	    const struct remote_rights *, bool cloexec);
/*
 * After an answer of REMOTE_AGAIN: waits until the request is worth repeating.
 * *deadline is 0 before the first wait.  Returns 0, EWOULDBLOCK, EINTR or
 * ENETDOWN.
 */
int	 remote_wait(const struct remote_call *, nsec_t *deadline);

/* Parts of a request, and of its answer (remote_calls.c). */
void	 remote_set_args(struct remote_call *, int, int, int);
int	 remote_put_name(struct remote_call *, const void *name, socklen_t);
/* As a kernel, stores what fits and the whole length. */
void	 remote_get_name(const struct remote_call *, struct sockaddr *,
	    socklen_t *);
/* Remembers a timeout: such calls are not restarted after a signal. */
void	 remote_note_timeout(struct file *, const struct remote_call *,
	    uint32_t bit);
/* Waits for the result of a connection, and returns it. */
int	 remote_connected(struct file *);

#endif /* API_REMOTE_CALL_H */
