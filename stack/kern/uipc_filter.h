/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters of datagram sockets (socket(7), SO_ATTACH_FILTER).
 */
#ifndef KERN_UIPC_FILTER_H
#define KERN_UIPC_FILTER_H

#include "kern/socketvar.h"

/*
 * All require the lock of the socket.  sofilter_run() returns the bytes to
 * keep, at least min, or 0: drop the packet.
 */
struct bpf_packet;
int	 sofilter_attach(struct socket *so, const void *, socklen_t)
	    REQUIRES(so->so_lock);
int	 sofilter_detach(struct socket *so) REQUIRES(so->so_lock);
int	 sofilter_lock(struct socket *so, int on) REQUIRES(so->so_lock);
int	 sofilter_get(const struct socket *so, void *, socklen_t *)
	    REQUIRES(so->so_lock);
void	 sofilter_free(struct socket *so) REQUIRES(so->so_lock);
uint32_t sofilter_run(const struct socket *so, const struct bpf_packet *,
	    uint32_t min) REQUIRES(so->so_lock);

#endif /* KERN_UIPC_FILTER_H */
