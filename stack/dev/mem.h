/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces in memory, for tests, fuzzers and packetdrill: what the stack
 * sends goes to a function, what it receives comes from a call.
 */
#ifndef DEV_MEM_H
#define DEV_MEM_H

#include "net/if_private.h"

/* A frame that was sent; csum_flags as for a driver.  Consumes m. */
typedef void mem_output_fn(void *arg, struct mbuf *m);

/*
 * Attaches "mem0" with an address like "10.9.0.1/24" to a booted stack.
 * caps are IFCAP_*; impair (or NULL) is applied to what it receives.
 */
struct ifnet *mem_attach(const char *name, const char *prefix, unsigned caps,
	    const struct impair_config *impair, mem_output_fn *, void *arg);
/* A frame is received, in the calling thread.  Consumes m. */
void	 mem_input(struct ifnet *, struct mbuf *m);

/* The same without Ethernet: packets of IP, neither offload nor ARP. */
struct ifnet *mem_attach_ip(const struct if_config *, mem_output_fn *,
	    void *arg);
void	 mem_input_ip(struct ifnet *, struct mbuf *m);

#endif /* DEV_MEM_H */
