/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of the stack in messages of the kernel's sockets (ticket.c). */
#ifndef API_TICKET_H
#define API_TICKET_H

#include "api/api.h"

/* Names the server's end of a ticket; returns an errno value. */
int	 ticket_bind(int fd, uint32_t number);
/* Whether a message to a socket of the kernel has sockets of the stack. */
bool	 ticket_needed(const struct msghdr *);
/* Like sendmsg(2) on a socket of the kernel, with tickets. */
ssize_t	 ticket_sendmsg(int fd, const struct msghdr *, int flags);
/* Exchanges the tickets of a message that a socket of the kernel received. */
void	 ticket_received(struct msghdr *, int flags);

#endif /* API_TICKET_H */
