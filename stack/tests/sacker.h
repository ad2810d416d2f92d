/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer with selective acknowledgements, and what the stack sends it.
 *
 * Time is virtual: it passes only where a test waits.  The peer takes RTT
 * milliseconds for the handshake and for a first segment.
 */
#ifndef TESTS_SACKER_H
#define TESTS_SACKER_H

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	MSS	1000		/* the peer's window */
#define	RTT	200		/* ms */
#define	SEGS	40
#define	NEVER	UINT32_MAX	/* EXPECT(): no segment */

/* Properties of the peer. */
#define	NO_SACK	0x1
#define	WITH_TS	0x2

struct sacker {
	struct socket	*head, *so;
	struct peer	 p;
	bool		 ts;
	uint32_t	 seg;		/* bytes of a full segment */
	uint8_t		 options[40];
	uint64_t	 timeouts, undone;
};

/* Segments of both directions. */
extern uint8_t sacker_bytes[SEGS * MSS];

/* A connection with one segment acknowledged after RTT. */
void	 sacker_up(struct sacker *, unsigned how);
void	 sacker_down(struct sacker *);
struct tcpcb *sacker_block(const struct sacker *);
uint32_t sacker_cwnd(const struct sacker *);

/* Options of the next segment; a block is its first byte and its end. */
void	 sacker_options(struct sacker *, uint32_t tsecr, const uint32_t *sack,
	    unsigned n);
/*
 * An ACK of upto bytes: with n / 2 blocks; without blocks; with a timestamp
 * echo.
 */
void	 sacker_sack(struct sacker *, uint32_t upto, const uint32_t *sack,
	    unsigned n);
void	 sacker_ack(struct sacker *, uint32_t upto);
void	 sacker_ack_ts(struct sacker *, uint32_t upto, uint32_t tsecr);
#define	SACK(f, upto, ...) do {						\
	const uint32_t blocks[] = { __VA_ARGS__ };			\
	sacker_sack(f, upto, blocks, nitems(blocks));			\
} while (0)

/* Puts segments 0 to n - 1 in flight. */
void	 sacker_send(struct sacker *, uint32_t n);
/* Checks that exactly these segments were sent. */
void	 sacker_expect(struct sacker *, const uint32_t *wanted);
#define	EXPECT(f, ...) do {						\
	const uint32_t wanted[] = { __VA_ARGS__, NEVER };		\
	sacker_expect(f, wanted);					\
} while (0)
/* Waits for the next segment, which must start with this one. */
void	 sacker_expect_later(struct sacker *, uint32_t wanted,
	    struct peer_seg *);
/* Discards segments until the retransmission timer has fired. */
void	 sacker_await_timeout(struct sacker *, struct peer_seg *);
void	 sacker_no_timeout(const struct sacker *);
uint32_t sacker_tsval(const struct peer_seg *);

#endif /* TESTS_SACKER_H */
