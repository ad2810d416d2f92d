/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP connection in a state that a test wants, with a peer of single
 * segments, and in virtual time.
 */
#ifndef TESTS_STATES_H
#define TESTS_STATES_H

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	STATES_PORT	8080	/* of the listener */
#define	STATES_SERVER	9000	/* of the peer when the stack connects */
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
/* Nothing is left of it; so, if it was closed, must be NULL. */
void	 states_leave(struct connection *);
/* By addresses, as segments find it; unfinished handshakes included. */
enum tcp_state states_now(const struct peer *);
void	 states_peer_fin(struct connection *);
/* Flags of what the stack has sent just now, or NONE. */
uint8_t	 states_answer(void);

#endif /* TESTS_STATES_H */
