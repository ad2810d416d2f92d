/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP urgent data (RFC 9293 section 3.8.5) as implemented everywhere (RFC 6093
 * section 3): the pointer is the sequence number after the urgent data, which
 * is one byte.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

#define	FARTHEST	65535	/* max value of the pointer */

tcp_seq
tcp_urgent_byte(const struct tcphdr *th)
{
	const uint32_t up = ntohs(th->th_urp);

	return (ntohl(th->th_seq) + (up > 0 ? up - 1 : 0));
}

/* Input step: RFC 9293 section 3.10.7.4, sixth. */
enum tcp_step
tcp_urgent_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (__predict_true((sg->sg_flags & TH_URG) == 0) || tcp_has_fin(tp) ||
	    (so->so_state & SS_CANTRCVMORE) ||
	    SEQ_LT(sg->sg_urgent, tp->rcv_nxt))
		return (STEP_NEXT);
	sooobmark(so, so->so_rcv.sb_cc + (sg->sg_urgent - tp->rcv_nxt));
	return (STEP_NEXT);
}

/* The last byte in the send buffer is urgent. */
void
tcp_urgent_send(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->snd_up = tp->snd_una + tp->t_inp.inp_socket->so_snd.sb_cc;
	/* a peer with a closed window must be notified, too (MUST-62) */
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
