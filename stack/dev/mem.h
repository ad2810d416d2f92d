/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces in memory: a function consumes what the stack sends, and a call
 * delivers what it receives.  As a driver, the far end is a sink or a mirror
 * (dev/mem_wire.c) or a character generator (dev/mem_chargen.c), optionally
 * with a source (dev/mem_source.c).  This measures the stack without the cost
 * of a device.  Tests, fuzzers and packetdrill attach their own far ends.
 */
#ifndef DEV_MEM_H
#define DEV_MEM_H

#include "net/if_driver.h"

#define	MEM_HEADROOM	34	/* room for tunnels; aligns the IP header */
#define	MEM_FAR_LLADDR	"\x02" "wire\1"	/* link address of the far end */

/*
 * Consumes a sent frame.  An interface with IFCAP_BATCH passes several frames
 * linked by m_nextpkt.  csum_flags are those of a driver.
 */
typedef void mem_output_fn(void *arg, struct mbuf *m);

/*
 * Attaches an interface to a booted stack, with an address like "10.9.0.1/24"
 * or without one (NULL).  caps are IFCAP_*.  impair (or NULL) is applied to
 * received frames.
 */
struct ifnet *mem_attach(const char *name, const char *prefix, unsigned caps,
	    const struct impair_config *impair, mem_output_fn *, void *arg);
/* Receives a frame in the calling thread.  Consumes m. */
void	 mem_input(struct ifnet *, struct mbuf *m);

/*
 * Like mem_attach(), without Ethernet: plain IP packets, no offloads, no ARP.
 */
struct ifnet *mem_attach_ip(const struct if_config *, mem_output_fn *,
	    void *arg);
void	 mem_input_ip(struct ifnet *, struct mbuf *m);

/*
 * Far ends.  A sink and a mirror answer ARP for every address; a mirror also
 * answers neighbour solicitations.  A mirror returns each unicast packet with
 * its addresses swapped, so every address behind the interface is this stack
 * again.  A sink drops packets.
 *
 * Returned packets pass a queue.  They are received by the sender's thread
 * after it released its locks, or by a thread of the mirror.  Each queue of an
 * interface has its own far end; a sender uses that of its CPU.
 */
struct mem_wire;
struct mem_wire *mem_wire_create(bool mirror);
mem_output_fn mem_wire_output;		/* arg: the wire */
/* Connects a far end to a queue of its interface, before anything is sent. */
void	 mem_wire_attach(struct mem_wire *, struct ifnet *, unsigned queue);
int	 mem_wire_start(struct mem_wire *);
void	 mem_wire_stop(struct mem_wire *);

/*
 * A far end that runs a character generator (RFC 864) for every IPv4
 * connection.  It has one thread and serves all queues of an interface.
 */
struct chargen;
struct chargen *mem_chargen_create(void);
mem_output_fn mem_chargen_output;	/* arg: the chargen */
void	 mem_chargen_attach(struct chargen *, struct ifnet *);
int	 mem_chargen_start(struct chargen *);
void	 mem_chargen_stop(struct chargen *);

/*
 * Helpers for far ends.  mem_pass() receives a burst of frames on a queue;
 * packets sent in response leave as one batch.  mem_answer_arp() returns true
 * if the frame was ARP: then its answer has been received and the frame is
 * consumed.
 */
void	 mem_pass(struct ifnet *, struct mbufq *, unsigned queue);
bool	 mem_answer_arp(struct ifnet *, struct mbuf *, unsigned queue);

/*
 * A source of UDP packets with its own thread, as fast as the stack accepts
 * them.  spec is "from=10.9.0.2 to=10.9.1.2" with optional len=46 (length of
 * the IP packet), flows=1 (number of source ports), hosts=1 (number of
 * destination addresses, starting at to) and count=0 (0: no limit).  On an
 * error, returns NULL with the reason in why.
 */
struct mem_source;
struct mem_source *mem_source_create(const char *spec, char *why, size_t);
int	 mem_source_start(struct mem_source *, struct ifnet *);
void	 mem_source_stop(struct mem_source *);

#endif /* DEV_MEM_H */
