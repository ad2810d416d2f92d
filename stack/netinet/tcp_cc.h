/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: the operations of an algorithm, and the state of those
 * there are.  Windows are in bytes.  Loss recovery (tcp_recover.c) is common
 * to all: an algorithm says how the window grows while all is well and what
 * becomes of the threshold when it is not.
 */
#ifndef NETINET_TCP_CC_H
#define NETINET_TCP_CC_H

#include "kern/systm.h"
#include "netinet/tcp_seq.h"

struct tcpcb;

enum cc_signal {
	CC_LOSS,	/* a segment was lost */
	CC_ECN,		/* the peer saw a congestion mark */
	CC_TIMEOUT	/* first retransmission timeout in a row */
};

struct cc_algo {
	const char	*cc_name;
	/* New data was acknowledged and nothing is being recovered. */
	void		(*cc_ack_received)(struct tcpcb *, uint32_t bytes);
	/* Sets snd_ssthresh; recovery brings snd_cwnd down to it. */
	void		(*cc_cong_signal)(struct tcpcb *, enum cc_signal);
	/* Nothing was in flight, and sending begins again.  May be NULL. */
	void		(*cc_after_idle)(struct tcpcb *);
};
extern const struct cc_algo tcp_cc_newreno, tcp_cc_cubic;

/* CUBIC's variables, in the words of RFC 9438 section 4.1.2. */
struct cubic {
	uint32_t	 w_max;		/* plateau of the curve */
	uint32_t	 cwnd_prior;	/* window before the last reduction */
	uint32_t	 w_est;		/* what Reno would have */
	uint32_t	 w_est_acked;	/* bytes towards its next segment */
	uint32_t	 k;		/* ms from the epoch to the plateau */
	bool		 epoch;		/* congestion avoidance has begun */
	bool		 timeout;	/* next epoch starts at its plateau */
	nsec_t		 t;		/* since then, window in full use */
	nsec_t		 last;		/* when t was brought up to date */
};
/* Equation 1 at t ns, and K in ms (equation 2), for segments of mss bytes. */
uint32_t cubic_window(const struct cubic *, uint32_t mss, nsec_t t);
uint32_t cubic_k(uint32_t w_max, uint32_t cwnd_epoch, uint32_t mss);

/* HyStart++ (RFC 9406 section 4). */
struct hystart {
	tcp_seq		 window_end;	/* the round ends when it is acked */
	unsigned	 samples;	/* of the RTT in this round */
	nsec_t		 now_min;	/* currentRoundMinRTT */
	nsec_t		 last_min;	/* lastRoundMinRTT */
	nsec_t		 baseline;	/* cssBaselineMinRtt; 0: not in CSS */
	unsigned	 css_rounds;
	uint32_t	 rest;		/* of the division in CSS, bytes */
};
void	 hystart_init(struct hystart *);
/* Slow start's increase for bytes acknowledged; may end slow start. */
uint32_t hystart_increase(struct tcpcb *, uint32_t bytes);

void	 tcp_cc_init(struct tcpcb *);
void	 tcp_cc_acked(struct tcpcb *, uint32_t bytes);
void	 tcp_cc_afteridle(struct tcpcb *);
void	 tcp_cc_sent(struct tcpcb *);
bool	 tcp_cc_validated(const struct tcpcb *);
/* Slow start's share of bytes: grows the window, returns what is left. */
uint32_t tcp_cc_slowstart(struct tcpcb *, uint32_t bytes);
/* num/den of t_prr.flight, at least two segments (RFC 5681 equation 4). */
uint32_t tcp_cc_reduced(const struct tcpcb *, unsigned num, unsigned den);
/* The one of that name, which need not end in NUL; NULL: none. */
const struct cc_algo *tcp_cc_byname(const char *name, size_t len);
const struct cc_algo *tcp_cc_default(void);
void	 tcp_cc_sysctl_init(void);

#endif /* NETINET_TCP_CC_H */
