/* SPDX-License-Identifier: BSD-2-Clause */
/* Records (MSG_EOR), for the files of TCP that send. */
#ifndef NETINET_TCP_RECORD_H
#define NETINET_TCP_RECORD_H

#include "netinet/tcp_var.h"

/* What was written last ends a record.  The send buffer has data. */
__cold void	 tcp_record_end(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/*
 * Of len bytes from seq in the send buffer, those of the first record; *ends:
 * the last of them ends it.
 */
__cold uint32_t tcp_record_rest(const struct tcpcb *tp, tcp_seq seq,
	    uint32_t len, bool *ends)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);

#endif /* NETINET_TCP_RECORD_H */
