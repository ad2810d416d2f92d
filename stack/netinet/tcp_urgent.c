/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP urgent data (RFC 9293 section 3.8.5), as RFC 6093 found everybody to
 * have it: the pointer tells of the byte behind the urgent one, of which
 * there is one.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

#define	FARTHEST	65535	/* that the header can tell */

tcp_seq
tcp_urgent_byte(const struct tcphdr *th)
{
	const uint32_t up = ntohs(th->th_urp);

	return (ntohl(th->th_seq) + (up > 0 ? up - 1 : 0));
}

/* A step of input, RFC 9293 section 3.10.7.4, sixth. */
enum tcp_step
tcp_urgent_input(struct tcpcb *tp, struct tcpseg *sg)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (__predict_true((sg->sg_flags & TH_URG) == 0) || tcp_has_fin(tp) ||
	    (so->so_state & SS_CANTRCVMORE) ||
	    SEQ_LT(sg->sg_urgent, tp->rcv_nxt))
		return (TS_NEXT);
	sooobmark(so, so->so_rcv.sb_cc + (sg->sg_urgent - tp->rcv_nxt));
	return (TS_NEXT);
}

/* What is in the send buffer ends with an urgent byte. */
void
tcp_urgent_send(struct tcpcb *tp)
{
	tp->snd_up = tp->snd_una + tp->t_inp.inp_socket->so_snd.sb_cc;
	/* a peer whose window is shut must learn of it too (MUST-62) */
	tp->t_flags |= TF_ACKNOW;
}

void
tcp_urgent_output(const struct tcpcb *tp, tcp_seq seq, struct tcphdr *th)
{
	const uint32_t up = tp->snd_up - seq;

	if (__predict_true(!tcp_is_urgent(tp, seq)) || up > FARTHEST)
		return;
	th->th_flags |= TH_URG;
	th->th_urp = htons((uint16_t)up);
}
