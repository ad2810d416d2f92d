/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: a table of operations, with NewReno in it (RFC 5681;
 * loss recovery itself is common and lives in tcp_recover.c).
 */
#include <string.h>

#include "netinet/tcp_var.h"

/* RFC 6928; net.inet.tcp.initcwnd segments. */
static uint32_t
initial_window(const struct tcpcb *tp)
{
	return (atomic_load_u32(&tcp_initcwnd) * tp->t_maxseg);
}

void
tcp_cc_init(struct tcpcb *tp)
{
	KASSERT(tp->t_maxseg > 0, ("tcp_cc_init: no segment size"));
	tp->snd_cwnd = initial_window(tp);
	/* RFC 5681 section 3.1: arbitrarily high */
	tp->snd_ssthresh = UINT32_MAX / 2;
	tp->t_cwndacked = 0;
}

/*
 * RFC 5681 section 4.1: after an idle time of more than an RTO the window
 * says nothing about the path any more.
 */
void
tcp_cc_afteridle(struct tcpcb *tp)
{
	if (tp->snd_una == tp->snd_max && tp->t_lastsend != 0 &&
	    tp->snd_cwnd > initial_window(tp) &&
	    mach_uptime() - tp->t_lastsend > tp->t_rto)
		tp->snd_cwnd = initial_window(tp);
}

/*
 * RFC 5681 section 3.1, counting bytes (RFC 3465) without its limit of two
 * segments in slow start: receivers that merge segments acknowledge many at
 * once, and Linux does the same.  A window that did not hold the sender
 * back does not grow (RFC 7661).
 */
static void
newreno_acked(struct tcpcb *tp, uint32_t bytes)
{
	if ((tp->t_flags & TF_CWNDLIMITED) == 0)
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		tp->snd_cwnd += bytes;
	} else {
		tp->t_cwndacked += bytes;
		if (tp->t_cwndacked >= tp->snd_cwnd) {
			tp->t_cwndacked -= tp->snd_cwnd;
			tp->snd_cwnd += tp->t_maxseg;
		}
	}
	if (tp->snd_cwnd > UINT32_MAX / 4)
		tp->snd_cwnd = UINT32_MAX / 4;
}

/* RFC 5681 equation 4. */
static uint32_t
newreno_ssthresh(const struct tcpcb *tp)
{
	uint32_t half = (tp->snd_max - tp->snd_una) / 2;

	return (half > 2 * tp->t_maxseg ? half : 2 * tp->t_maxseg);
}

const struct tcp_cc tcp_cc_newreno = {
	.cc_name = "newreno",
	.cc_acked = newreno_acked,
	.cc_ssthresh = newreno_ssthresh,
};

/* "reno" is what Linux calls it, and what programs ask for. */
const struct tcp_cc *
tcp_cc_byname(const char *name, size_t len)
{
	size_t n = strnlen(name, len);

	if ((n == 7 && memcmp(name, "newreno", n) == 0) ||
	    (n == 4 && memcmp(name, "reno", n) == 0))
		return (&tcp_cc_newreno);
	return (NULL);
}
