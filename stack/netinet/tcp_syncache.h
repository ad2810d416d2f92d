/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Incomplete handshakes of listeners: their state, the SYN cache, and SYN
 * cookies for when the cache is full.
 */
#ifndef NETINET_TCP_SYNCACHE_H
#define NETINET_TCP_SYNCACHE_H

#include "netinet/tcp_fastopen.h"

/* The contents of both SYNs of a connection. */
struct tcp_half {
	struct in_conninfo hf_conn;
	tcp_seq		 hf_iss, hf_irs;
	tcp_seq		 hf_ack;	/* behind the peer's SYN and its data */
	unsigned	 hf_flags;	/* negotiated: TF_TS, TF_WSCALE ... */
	uint32_t	 hf_tsoffset;	/* offset of our timestamps */
	uint32_t	 hf_tsval;	/* the peer's */
	uint16_t	 hf_mss, hf_peermss;
	uint16_t	 hf_win;	/* our unscaled window */
	uint8_t		 hf_scale, hf_peerscale;
	struct ip_sendopts hf_opts;
	unsigned	 hf_rexmits;	/* of our SYN, by its timer */
	nsec_t		 hf_sent; /* time of our SYN if sent once, else 0 */
	struct tcp_cookie hf_cookie;	/* of our SYN or SYN-ACK */
	struct mbuf	*hf_data;	/* of our SYN; tcp_half_send() takes it */
};

/* Fills h from a SYN; head is locked. */
void	 tcp_half_init(struct tcp_half *h, struct socket *head,
	    const struct in_conninfo *, tcp_seq irs, const struct tcpopts *)
	    REQUIRES(head->so_lock);
/*
 * Sends our SYN (flags TH_SYN), SYN-ACK, or in SYN-RECEIVED the ACK that answers
 * an unacceptable segment (TH_ACK, RFC 9293 section 3.10.7.4); returns like
 * ip_output().
 */
int	 tcp_half_send(const struct tcp_half *, uint8_t flags);

/*
 * The cache (Lemon, "Resisting SYN flood DoS attacks with a SYN cache",
 * 2002): buckets with a lock each, bounded, one timer for all.
 */
void	 tcp_syncache_init(void);
/*
 * Stores a handshake and answers its SYN.  A duplicate is answered again.
 * False: no room, nothing was sent.
 */
bool	 tcp_syncache_add(struct tcp_half *);
/* Finds a connection's handshake and its start time; false: none. */
bool	 tcp_syncache_find(const struct in_conninfo *, struct tcp_half *,
	    nsec_t *since);
void	 tcp_syncache_remove(const struct in_conninfo *);
/* An ICMP error about a SYN-ACK, as tcp_ctlinput() processes one of a SYN. */
void	 tcp_syncache_unreach(const struct in_conninfo *, tcp_seq, bool hard);
/* Processes a reset for a listener. */
void	 tcp_syncache_reset(const struct tcpseg *);
/* Answers a segment outside the window of an unfinished handshake. */
void	 tcp_syncache_challenge(const struct in_conninfo *);

/*
 * SYN cookies (Bernstein 1996; RFC 4987 section 3.6): the initial sequence
 * number encodes the handshake, so that the listener keeps no state until the
 * ACK.
 */
void	 tcp_syncookie_init(void);
void	 tcp_syncookie_send(struct tcp_half *);
bool	 tcp_syncookie_check(struct socket *head, const struct tcpseg *,
	    struct tcp_half *) REQUIRES(head->so_lock);

#endif /* NETINET_TCP_SYNCACHE_H */
