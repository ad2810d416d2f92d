/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP peer that sends single segments, at the end of an interface in memory.
 * A test chooses each segment and checks the stack's response.  Packets are
 * dispatched directly, so that the response exists when the call returns.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include <netinet/tcp.h>

#include "netinet/tcp_seq.h"
#include "tests/net.h"

#define	PEER_IP		"10.8.0.2"
#define	PEER_STACK_IP	"10.8.0.1"

/* One connection from the peer's point of view. */
struct peer {
	uint16_t	 port, stack_port;
	/* sequence number of the next byte we send */
	tcp_seq		 snd_nxt;
	/* sequence number of the next byte we expect */
	tcp_seq		 rcv_nxt;
	uint16_t	 window;
	uint8_t		 tos;		/* of the packets we send */
	uint16_t	 urgent;	/* the pointer, if we send TH_URG */
	const uint8_t	*options;	/* of the segments we send */
	unsigned	 optlen;
};

/* A segment that the stack sent. */
struct peer_seg {
	uint16_t	 sport, dport, window, urgent;
	tcp_seq		 seq, ack;
	uint8_t		 flags, tos, ttl;
	uint32_t	 len;
	uint32_t	 segsz;		/* size of its segments (TSO), or len */
	uint8_t		 options[40];
	unsigned	 optlen;
	uint8_t		 data[2048];	/* its first bytes */
	/* or an ICMP message, protocol 1 */
	uint8_t		 proto, icmp_type, icmp_code;
};

void	 peer_attach(void);		/* after the boot */
/* Allows the stack to send in batches. */
void	 peer_takelists(void);
/* Delivers a segment to the stack. */
void	 peer_send(struct peer *, uint8_t flags, tcp_seq seq, tcp_seq ack,
	    const void *data, uint32_t len);
/* Delivers an ICMP error about the stack's segment at seq. */
void	 peer_icmp(struct peer *, uint8_t type, uint8_t code, uint16_t mtu,
	    tcp_seq seq);
/*
 * Delivers an ICMP error: the stack's datagram to dst does not fit into the
 * MTU of its path.
 */
void	 peer_udp_toobig(uint16_t sport, const char *dst, uint16_t dport,
	    uint16_t mtu);
/* Delivers a UDP datagram. */
void	 peer_udp(uint16_t sport, uint16_t dport, const void *, uint32_t len);
/* Takes the next packet sent by the stack; false: none. */
bool	 peer_next(struct peer_seg *);
/* The same, but waits until a timer sends it. */
void	 peer_await(struct peer_seg *, unsigned ms);
void	 peer_forget(void);		/* all packets so far */

/*
 * The peer's SYN to this port, with the flags and the peer's window and
 * options, and the answer to it.  All else of the peer is set; the ACK that
 * would open the connection is the caller's, and is without options.
 */
void	 peer_syn(struct peer *, uint16_t stack_port, uint8_t flags,
	    struct peer_seg *answer);
/* Opens connections; the peer is the client, or the server. */
void	 peer_open(struct peer *, uint16_t stack_port);
void	 peer_answer(struct peer *, struct socket *);

/* Accepts a connection of the peer, the client, at a new listener. */
struct socket *peer_accept(struct peer *, uint16_t port,
	    struct socket **head);

/* An accepted connection; each uses another port. */
struct peer_conn {
	struct socket	*head, *so;
	struct peer	 p;
};
void	 peer_conn_open(struct peer_conn *);
void	 peer_conn_close(struct peer_conn *);	/* by a reset */
/* Delivers the next data of the peer. */
void	 peer_text(struct peer *, const char *);

/* The peer resets its connection to so; then so and head are closed. */
void	 peer_reset(struct peer *, struct socket *so, struct socket *head);

/* Boots the stack with a peer, in virtual time (peer_boot.c). */
void	 peer_boot(void);

#endif /* TESTS_PEER_H */
