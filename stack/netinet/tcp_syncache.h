/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshakes that a listener has answered and that are not finished: what
 * is kept of one, where, and how it is told from the ACK alone if there is
 * no room.
 */
#ifndef NETINET_TCP_SYNCACHE_H
#define NETINET_TCP_SYNCACHE_H

#include "netinet/tcp_var.h"

/* All that the two SYNs of a connection said. */
struct tcp_half {
	struct in_conninfo hf_conn;
	tcp_seq		 hf_iss, hf_irs;
	unsigned	 hf_flags;	/* agreed: TF_TS, _WSCALE ... */
	uint32_t	 hf_tsoffset;	/* of our timestamps */
	uint32_t	 hf_tsval;	/* the peer's */
	uint16_t	 hf_mss, hf_peermss;
	uint16_t	 hf_win;	/* our window, not scaled */
	uint8_t		 hf_scale, hf_peerscale;
	struct ip_sendopts hf_opts;
	nsec_t		 hf_sent;	/* when ours went, if only once; 0 */
};

/* Fills h from a SYN, or what is known of it; head is locked. */
void	 tcp_half_init(struct tcp_half *h, struct socket *head,
	    const struct in_conninfo *, tcp_seq irs, const struct tcpopts *);
/* Sends our SYN, flags TH_SYN, or SYN-ACK; as ip_output(). */
int	 tcp_half_send(const struct tcp_half *, uint8_t flags);

/*
 * The cache (Lemon, "Resisting SYN flood DoS attacks with a SYN cache",
 * 2002): buckets with a lock each, bounded, one timer for all.
 */
void	 tcp_syncache_init(void);
/*
 * Keeps a handshake and answers its SYN; one that is there already is
 * answered again.  False: no room, nothing was sent.
 */
bool	 tcp_syncache_add(struct tcp_half *);
/* The handshake of a connection, and since when; false: none. */
bool	 tcp_syncache_find(const struct in_conninfo *, struct tcp_half *,
	    nsec_t *since);
void	 tcp_syncache_remove(const struct in_conninfo *);
/* A reset came for a listener. */
void	 tcp_syncache_reset(const struct tcpseg *);

/*
 * SYN cookies (Bernstein 1996; RFC 4987 section 3.6): initial sequence
 * numbers from which a listener that has kept nothing recognises the ACK.
 */
void	 tcp_syncookie_init(void);
void	 tcp_syncookie_send(struct tcp_half *);
bool	 tcp_syncookie_check(struct socket *head, const struct tcpseg *,
	    struct tcp_half *);

#endif /* NETINET_TCP_SYNCACHE_H */
