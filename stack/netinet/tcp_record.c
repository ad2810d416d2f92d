/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records (MSG_EOR of send(2), Linux): no segment has bytes of a record and of
 * what was written after it, neither when it is sent nor when it is sent again.
 * A program can thus request a time stamp of its last byte.
 */
#include "netinet/tcp_record.h"

void
tcp_record_end(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_inp.inp_socket->so_snd.sb_tail->m_flags |= M_EOR;
	tp->t_flags |= TF_RECORDS;
}

uint32_t
tcp_record_rest(const struct tcpcb *tp, tcp_seq seq, uint32_t len, bool *ends)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t moff, rest;
	const struct mbuf *m;

	m = sbsendptr(&tp->t_inp.inp_socket->so_snd, seq - tp->snd_una, &moff);
	rest = m->m_len - moff;
	while ((m->m_flags & M_EOR) == 0 && rest < len) {
		m = m->m_next;
		rest += m->m_len;
	}
	*ends = (m->m_flags & M_EOR) != 0 && rest <= len;
	return (rest < len ? rest : len);
}
