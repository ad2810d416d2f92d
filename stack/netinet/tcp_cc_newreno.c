/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NewReno (RFC 5681).  Its recovery (RFC 6582) is in tcp_recover.c.
 */
#include "netinet/tcp_var.h"

/* RFC 5681 equation 4. */
static void
newreno_cong_signal(struct tcpcb *tp, enum cc_signal signal)
{
	(void)signal;
	tp->snd_ssthresh = tcp_cc_reduced(tp, 1, 2);
	tp->t_cwndacked = 0;
}

const struct cc_algo tcp_cc_newreno = {
	.cc_ack_received = tcp_cc_reno,
	.cc_cong_signal = newreno_cong_signal,
};
