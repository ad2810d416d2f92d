/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP connection in the state that a test needs, with a peer of single
 * segments, in virtual time.
 */
#ifndef TESTS_STATES_H
#define TESTS_STATES_H

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	STATES_PORT	8080	/* of the listener */
#define	STATES_SERVER	9000	/* of the peer, if the stack connects */
#define	NONE		0	/* no answer */
#define	RST_ACK		(TH_RST | TH_ACK)
#define	SYN_ACK		(TH_SYN | TH_ACK)
#define	FIN_ACK		(TH_FIN | TH_ACK)
#define	PSH_ACK		(TH_PUSH | TH_ACK)

struct connection {
	struct socket	*head, *so;	/* so NULL: not accepted */
	struct peer	 p;
};

/*
 * CLOSED is a new socket, LISTEN has so == head.  SYN_RECEIVED is that of a
 * listener, without a socket; states_open_both() reaches the one of a
 * simultaneous open.
 */
void	 states_reach(struct connection *, enum tcp_state);
void	 states_open_both(struct connection *);
/* Ends the connection; so must be NULL if it was closed. */
void	 states_leave(struct connection *);
/*
 * Looks the connection up by its addresses, as input does, including unfinished
 * handshakes.
 */
enum tcp_state states_now(const struct peer *);
void	 states_peer_fin(struct connection *);
/* Flags of the segment that the stack has sent, or NONE. */
uint8_t	 states_answer(void);

#endif /* TESTS_STATES_H */
