/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fuzz targets of datagram protocols share: a stack with sockets, groups
 * and tunnels that receives IP packets whose header is right but for what the
 * target chooses, and whose payload is the input, in virtual time.
 *
 * An input is a sequence of steps: a byte of flags, one for the target, two of
 * length (network order) and so many bytes of payload.
 */
#ifndef FUZZ_PACKETS_H
#define FUZZ_PACKETS_H

#include <netinet/in.h>

#include "fuzz.h"

#define	STEP_IPV6	0x01
#define	STEP_CHECKSUM	0x02	/* the payload's checksum is repaired */
#define	STEP_TO		0x0c	/* this host, a group, all hosts, broadcast */
#define	STEP_LATER	0x70	/* time passes: 1 ms << 2 * value */
#define	STEP_CUT	0x80	/* meaning defined by the target */

struct fuzz_packet {
	unsigned	 flags, choice;	/* of the step */
	uint8_t		 proto, ttl;
	uint16_t	 id, frag;	/* IPv4's ip_id and ip_off, host order */
};

/* shape() sets the protocol and other fields of each packet. */
int	 fuzz_packets(const uint8_t *data, size_t size,
	    void (*shape)(struct fuzz_packet *));

#endif /* FUZZ_PACKETS_H */
