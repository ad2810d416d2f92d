/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces in memory: what the stack sends goes to a function, what it
 * receives comes from a call.  As a driver its far end is a sink or a mirror
 * (dev/mem_wire.c) or a character generator (dev/mem_chargen.c), and it may
 * have a source (dev/mem_source.c), so that the stack can be measured at the
 * speed of memory; tests, fuzzers and packetdrill attach ends of their own.
 */
#ifndef DEV_MEM_H
#define DEV_MEM_H

#include "net/if_private.h"

#define	MEM_HEADROOM	34	/* room for tunnels; aligns the IP header */
#define	MEM_FAR_LLADDR	"\x02" "wire\1"	/* of whoever is at the far end */

/*
 * A frame that was sent, or of an interface with IFCAP_BATCH several that are
 * linked by m_nextpkt; csum_flags as for a driver.  Consumes them.
 */
typedef void mem_output_fn(void *arg, struct mbuf *m);

/*
 * Attaches "mem0" with an address like "10.9.0.1/24", or NULL for none, to a
 * booted stack.
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

/*
 * Far ends.  Both answer ARP for every address, a mirror neighbour
 * solicitations, too.  A mirror sends each packet to a single host back with
 * its addresses swapped, so that whoever is called beyond the interface is
 * this stack again; a sink drops it.  What comes back passes a
 * queue, and is received by the sender's thread when it has let its locks go,
 * or by one of the mirror's own.  An interface has a far end for each of its
 * queues; who sends uses that of its CPU.
 */
struct mem_wire;
struct mem_wire *mem_wire_create(bool mirror);
mem_output_fn mem_wire_output;		/* arg: the wire */
/* To a queue of the interface whose far end it is, before anything is sent. */
void	 mem_wire_attach(struct mem_wire *, struct ifnet *, unsigned queue);
int	 mem_wire_start(struct mem_wire *);
void	 mem_wire_stop(struct mem_wire *);

/*
 * A far end that is a character generator (RFC 864) for whoever connects over
 * IPv4; one for all queues of an interface, and a thread of its own.
 */
struct chargen;
struct chargen *mem_chargen_create(void);
mem_output_fn mem_chargen_output;	/* arg: the chargen */
void	 mem_chargen_attach(struct chargen *, struct ifnet *);
int	 mem_chargen_start(struct chargen *);
void	 mem_chargen_stop(struct chargen *);

/*
 * For far ends.  A burst of frames is received by a queue of the interface;
 * what they cause to be sent goes together.  mem_answer_arp() is true if the
 * frame was ARP: its answer has been received, and it is consumed.
 */
void	 mem_pass(struct ifnet *, struct mbufq *, unsigned queue);
bool	 mem_answer_arp(struct ifnet *, struct mbuf *, unsigned queue);

/*
 * A source of UDP packets, received as fast as the stack takes them in the
 * source's own thread.  spec: "from=10.9.0.2 to=10.9.1.2" and any of
 * len=46 (of the IP packet), flows=1 (source ports), hosts=1 (addresses from
 * to on) and count=0 (0: without end).  NULL with the reason in why if it
 * is none.
 */
struct mem_source;
struct mem_source *mem_source_create(const char *spec, char *why, size_t);
int	 mem_source_start(struct mem_source *, struct ifnet *);
void	 mem_source_stop(struct mem_source *);

#endif /* DEV_MEM_H */
