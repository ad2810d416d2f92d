/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control.  Windows are in bytes.  Loss recovery (tcp_recover.c) is
 * common to all algorithms.  An algorithm only decides how the window grows,
 * and the new threshold after a congestion signal.
 *
 * An algorithm is one file: tcp_cc_NAME.c defines the table tcp_cc_NAME.  A
 * list in meson.build names the algorithms; the values of
 * net.inet.tcp.cc.algorithm and TCP_CONGESTION are generated from it.
 */
#ifndef NETINET_TCP_CC_H
#define NETINET_TCP_CC_H

#include "kern/systm.h"
#include "netinet/tcp_seq.h"
#include "strategies.h"

struct tcpcb;

enum cc_signal {
	CC_LOSS,	/* a segment was lost */
	CC_ECN,		/* the peer echoed a congestion mark */
	CC_TIMEOUT	/* first retransmission timeout in a row */
};

/* Operations may be NULL if their comment permits it.  The socket is locked. */
struct cc_algo {
	/* Initializes the private state, which is zero.  May be NULL. */
	void		(*cc_init)(struct tcpcb *);
	/* New data was acknowledged outside recovery. */
	void		(*cc_ack_received)(struct tcpcb *, uint32_t bytes);
	/* Sets snd_ssthresh; recovery then reduces snd_cwnd to it. */
	void		(*cc_cong_signal)(struct tcpcb *, enum cc_signal);
	/* Transmission restarts after nothing was in flight.  May be NULL. */
	void		(*cc_after_idle)(struct tcpcb *);
	/*
	 * The last signal was spurious.  The private state has already been
	 * restored to its value before cc_cong_signal().  May be NULL.
	 */
	void		(*cc_undo)(struct tcpcb *);
	/*
	 * Called for every ACK before its signal; ece: it carried ECE.  May be
	 * NULL.
	 */
	void		(*cc_ack_marked)(struct tcpcb *, uint32_t bytes,
			    bool ece);
	/*
	 * Data arrived with or without a congestion mark (ce): sets or clears
	 * TF_ECNECHO.  NULL: a mark is echoed until the peer sends CWR (RFC
	 * 3168 section 6.1.3).
	 */
	void		(*cc_data_marked)(struct tcpcb *, bool ce);
	bool		 cc_wants_ecn;	/* connect() negotiates ECN */
};

#define	TCP_CC_DECLARE(algo, name) extern const struct cc_algo tcp_cc_##algo;
TCP_CCS(TCP_CC_DECLARE)

/*
 * Private state of the algorithm, in the control block: zero before cc_init(),
 * copied before cc_cong_signal().  Access is by CC_STATE(tp, struct cubic).
 */
#define	CC_STATE_WORDS	6
typedef uint64_t __attribute__((may_alias)) cc_word;
struct cc_state {
	cc_word		 words[CC_STATE_WORDS];
};
#define	CC_STATE(tp, type) __extension__ ({				\
	_Static_assert(sizeof(type) <= sizeof(struct cc_state),		\
	    "CC_STATE_WORDS is too small");				\
	(type *)(void *)&(tp)->t_ccstate;				\
})

/* HyStart++ (RFC 9406 section 4). */
struct hystart {
	tcp_seq		 window_end;	/* the round ends when it is acked */
	unsigned	 samples;	/* RTT samples in this round */
	nsec_t		 now_min;	/* currentRoundMinRTT */
	nsec_t		 last_min;	/* lastRoundMinRTT */
	nsec_t		 baseline;	/* cssBaselineMinRtt; 0: not in CSS */
	unsigned	 css_rounds;
	uint32_t	 rest; /* remainder of the CSS division, bytes */
};
void	 hystart_init(struct hystart *);
/* Slow start's window increase for acknowledged bytes; may end slow start. */
uint32_t hystart_increase(struct tcpcb *, uint32_t bytes);

void	 tcp_cc_init(struct tcpcb *);	/* called when established */
/* Changes the algorithm; keeps the window. */
void	 tcp_cc_choose(struct tcpcb *, const struct cc_algo *);
void	 tcp_cc_undo(struct tcpcb *, const struct cc_state *);
void	 tcp_cc_acked(struct tcpcb *, uint32_t bytes);
void	 tcp_cc_afteridle(struct tcpcb *);
void	 tcp_cc_sent(struct tcpcb *);
bool	 tcp_cc_validated(const struct tcpcb *);
/* Uses bytes for slow start: grows the window, returns the unused bytes. */
uint32_t tcp_cc_slowstart(struct tcpcb *, uint32_t bytes);
/* Growth of RFC 5681: slow start, then a segment for each window. */
void	 tcp_cc_reno(struct tcpcb *, uint32_t bytes);
/* num/den of t_prr.flight, min two segments (RFC 5681 equation 4). */
uint32_t tcp_cc_reduced(const struct tcpcb *, unsigned num, unsigned den);
/* Finds an algorithm by a name that need not end in NUL; NULL: unknown. */
const struct cc_algo *tcp_cc_byname(const char *name, size_t len);
const char *tcp_cc_name(const struct cc_algo *);
const struct cc_algo *tcp_cc_default(void);
void	 tcp_cc_sysctl_init(void);

#endif /* NETINET_TCP_CC_H */
