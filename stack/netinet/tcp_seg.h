/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A segment of TCP during input.
 */
#ifndef NETINET_TCP_SEG_H
#define NETINET_TCP_SEG_H

#include "netinet/in_pcb.h"
#include "netinet/tcp_opt.h"
#include "netinet/tcp_seq.h"

/* Flags of the header that the C library does not name (RFC 3168). */
#define	TH_ECE		0x40
#define	TH_CWR		0x80

/* A received segment in host byte order.  Input steps modify it. */
struct tcpseg {
	struct in_conninfo sg_conn;
	tcp_seq		 sg_seq, sg_ack;
	uint32_t	 sg_len;	/* bytes of data */
	uint32_t	 sg_win;	/* from the wire, scaled later */
	tcp_seq		 sg_urgent; /* sequence of the urgent byte, if TH_URG */
	uint8_t		 sg_flags;	/* TH_* */
	uint8_t		 sg_ecn;	/* ECN field of the IP header */
	unsigned	 sg_segs;	/* wire segments merged into this one */
	struct tcpopts	 sg_opt;
	struct mbuf	*sg_m;		/* the data; NULL once taken */
};

/* What input does with a segment after a step. */
enum tcp_step {
	STEP_NEXT,	/* go on to the next step */
	STEP_DROP,	/* drop it */
	STEP_ACK,		/* answer with an ACK and drop it */
	STEP_RESET,	/* answer with a reset and drop it */
	STEP_GONE		/* the control block was freed */
};

#endif /* NETINET_TCP_SEG_H */
