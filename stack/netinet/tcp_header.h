/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP headers of segments that are sent (RFC 9293 section 3.1).
 */
#ifndef NETINET_TCP_HEADER_H
#define NETINET_TCP_HEADER_H

#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

/* Space before the TCP header: link and IP headers. */
#define	TCP_HEADROOM	64

/* How much data one header may stand for; a whole segment in any case. */
static inline uint32_t
tcp_tso_room(const struct tcpcb *tp)
{
	const uint32_t most = atomic_load_u32(&tcp_tsomax) - 256;

	return (most > tp->t_maxseg ? most : tp->t_maxseg);
}

/* What differs from header to header, in host order. */
struct tcp_header {
	tcp_seq		 seq, ack;
	uint16_t	 win;
	uint8_t		 flags;		/* TH_* */
	unsigned	 optlen;	/* bytes of options, a multiple of 4 */
};

/* Ports are in network order; checksum and urgent pointer are 0. */
static inline struct tcphdr
tcp_header_make(const struct tcp_header *h, in_port_t sport, in_port_t dport)
{
	return ((struct tcphdr){ .th_sport = sport, .th_dport = dport,
	    .th_seq = htonl(h->seq), .th_ack = htonl(h->ack),
	    .th_off = (TCP_HDRLEN + h->optlen) >> 2 & 0xf,
	    .th_flags = h->flags, .th_win = htons(h->win) });
}

/*
 * The header of m, whose m_pkthdr.len is set: the options lie behind the
 * header already.  The device or ip_output() completes the checksum.
 */
static inline void
tcp_header_put(struct mbuf *m, const struct tcp_header *h,
    const struct in_family *af, const struct in_conninfo *c)
{
	struct tcphdr *th = mtod(m, struct tcphdr *);

	*th = tcp_header_make(h, c->lport, c->fport);
	th->th_sum = af_pseudo(af, c, IPPROTO_TCP, m->m_pkthdr.len);
	m->m_pkthdr.csum_flags |= CSUM_TX;
	m->m_pkthdr.csum_start = 0;
	m->m_pkthdr.csum_offset = offsetof(struct tcphdr, th_sum);
}

#endif /* NETINET_TCP_HEADER_H */
