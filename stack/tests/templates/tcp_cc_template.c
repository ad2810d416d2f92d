/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A template of a congestion control (netinet/tcp_cc.h): grows as NewReno, and
 * comes down to three quarters; its private state counts the reductions.
 *
 * To add an algorithm, copy this file to netinet/tcp_cc_NAME.c, replace
 * "template" by NAME, and add NAME to tcp_ccs in meson.build.
 */
#include "netinet/tcp_var.h"

struct template {
	uint32_t	 reductions;
};

static void
template_cong_signal(struct tcpcb *tp, enum cc_signal signal)
{
	(void)signal;
	CC_STATE(tp, struct template)->reductions++;
	tp->snd_ssthresh = tcp_cc_reduced(tp, 3, 4);
}

const struct cc_algo tcp_cc_template = {
	.cc_ack_received = tcp_cc_reno,
	.cc_cong_signal = template_cong_signal,
};
