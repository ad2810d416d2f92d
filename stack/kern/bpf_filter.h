/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classic packet filters (McCanne and Jacobson 1993, bpf(4)), as programs
 * attach them to sockets with SO_ATTACH_FILTER (socket(7)).
 */
#ifndef KERN_BPF_FILTER_H
#define KERN_BPF_FILTER_H

#include <linux/filter.h>

#include "kern/mbuf.h"

#define	BPF_MAXINSNS	4096	/* as on Linux */

/* What a filter sees of a packet. */
struct bpf_packet {
	const struct mbuf *bp_m;	/* chain that starts at its IP header */
	uint32_t	 bp_off;	/* the filter's byte 0 */
	uint32_t	 bp_len;	/* bytes from there on */
	uint32_t	 bp_ifindex;	/* 0: no interface */
	uint16_t	 bp_protocol;	/* ETHERTYPE_*, 0: none */
	uint32_t	 bp_flow;	/* hash of the flow */
};

/*
 * Whether a program is safe to run: known instructions, forward jumps inside
 * it, a return at its end, no constant division by zero, and no scratch
 * memory read before it was written.
 */
bool	 bpf_valid(const struct sock_filter *, unsigned len);
/*
 * Runs a valid program; returns how many bytes to keep, 0: drop the packet.
 * An access beyond the packet drops it.
 */
uint32_t bpf_run(const struct sock_filter *, const struct bpf_packet *);

#endif /* KERN_BPF_FILTER_H */
