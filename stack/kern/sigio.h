/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals of a socket to its owner, as in Linux's fcntl(2) and socket(7):
 * SIGURG for urgent data and, while O_ASYNC is set, SIGIO or the signal of
 * F_SETSIG for each event.
 */
#ifndef KERN_SIGIO_H
#define KERN_SIGIO_H

#include <signal.h>

#include "kern/socketvar.h"
#include "machine/machine.h"

void	 sosetowner(struct socket *, const struct mach_target *);
struct mach_target sogetowner(struct socket *);	/* id 0: nobody */
void	 sosetsignal(struct socket *, int sig);	/* F_SETSIG; 0: SIGIO */
int	 sogetsignal(struct socket *);
/* O_ASYNC is set by this descriptor; -1: it is cleared. */
void	 sosetasync(struct socket *, int fd);
/* Urgent data was announced. */
void	 sosigurg(struct socket *so) REQUIRES(so->so_lock);
/* The socket is closed. */
void	 sosigio_free(struct socket *so) REQUIRES(so->so_lock);

/* The si_band of each si_code (sigaction(2)). */
extern const long sosigio_bands[POLL_HUP + 1];

#endif /* KERN_SIGIO_H */
