/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments that need no connection: resets, and answers in a state that
 * keeps no send buffer.
 */
#include "netinet/tcp_header.h"

void
tcp_respond(const struct tcpseg *sg, const struct ip_sendopts *opts,
    tcp_seq seq, tcp_seq ack, uint8_t flags, uint32_t tsval)
{
	static const struct ip_sendopts none = { .dontfrag = true };
	const struct in_conninfo *c = &sg->sg_conn;
	const struct in_family *af = in_family(&c->faddr);
	struct tcpopts to = { .has_ts = sg->sg_opt.has_ts && tsval != 0,
	    .tsval = tsval, .tsecr = sg->sg_opt.tsval };
	struct mbuf *m = m_gethdr(TCP_HEADROOM);
	unsigned optlen;

	optlen = tcp_opt_build((uint8_t *)m->m_data + TCP_HDRLEN, &to);
	m->m_len = m->m_pkthdr.len = TCP_HDRLEN + optlen;
	tcp_header_put(m, &(struct tcp_header){ .seq = seq, .ack = ack,
	    .flags = flags, .optlen = optlen }, af, c);
	TCPSTAT_INC(sndtotal);
	(void)af_output(af, m, c, IPPROTO_TCP, opts != NULL ? opts : &none);
}

/* RFC 9293 section 3.5.2: sends the reset for a segment. */
void
tcp_reset(const struct tcpseg *sg, const struct ip_sendopts *opts)
{
	uint32_t len = sg->sg_len;

	if (sg->sg_flags & TH_RST)
		return;
	if (sg->sg_flags & TH_SYN)
		len++;
	if (sg->sg_flags & TH_FIN)
		len++;
	TCPSTAT_INC(sndrst);
	if (sg->sg_flags & TH_ACK)
		tcp_respond(sg, opts, sg->sg_ack, 0, TH_RST, 0);
	else
		tcp_respond(sg, opts, 0, sg->sg_seq + len, TH_RST | TH_ACK,
		    0);
}
