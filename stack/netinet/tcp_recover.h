/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection and recovery of TCP: records of sent segments, and the state
 * of RACK-TLP, rate reduction and undo in a control block (tcp_var.h).
 */
#ifndef NETINET_TCP_RECOVER_H
#define NETINET_TCP_RECOVER_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "machine/machine.h"
#include "netinet/tcp_cc.h"
#include "netinet/tcp_seq.h"

/* Data sent at one time and not acknowledged (tcp_sendmap.c). */
enum tcp_sentstate { SENT_INFLIGHT, SENT_SACKED, SENT_LOST };
struct tcp_sent {
	TAILQ_ENTRY(tcp_sent) link;
	TAILQ_ENTRY(tcp_sent) tlink;	/* in t_inflight or t_lost */
	tcp_seq		 seq, end;	/* [seq, end), FIN included */
	nsec_t		 time;		/* last transmission */
	enum tcp_sentstate state;
	bool		 again;		/* was retransmitted */
};

/* RACK and TLP; RFC 8985 sections 5.3 and 7.1 have these variables. */
struct tcp_rack {
	nsec_t		 time; /* xmit_ts of the newest delivered segment */
	tcp_seq		 end;		/* its end_seq */
	nsec_t		 rtt, min_rtt;
	tcp_seq		 fack;		/* highest delivered sequence */
	tcp_seq		 dsack_end;	/* the round with a DSACK ends here */
	bool		 reordered, dsack_round;
	/* for TCP_INFO: ACKs that showed reordering, its max in segments */
	uint32_t	 reorderings, distance;
	unsigned	 mult, persist;	/* reo_wnd_mult, reo_wnd_persist */
};
struct tcp_tlp {
	bool		 pending;	/* a probe is in flight */
	bool		 again;		/* the probe was a retransmission */
	tcp_seq		 end;
};

/* States of recovery; see tcp_recover.c. */
enum tcp_recovery { TR_OPEN, TR_CWR, TR_FAST, TR_TIMEOUT };
/* F-RTO: off, first segment retransmitted, new data sent. */
enum tcp_frto { FRTO_OFF, FRTO_SENT, FRTO_NEW };

/* Proportional rate reduction, in bytes (RFC 6937 section 3). */
struct tcp_prr {
	uint32_t	 delivered, out, flight;
};

/* State before the last window reduction, restored if it was spurious. */
struct tcp_undo {
	bool		 armed;
	uint32_t	 cwnd, ssthresh;
	struct cc_state	 ccstate;
	uint32_t	 stamp; /* timestamp of the first retransmission */
	uint32_t	 rexmitted, dsacked;	/* bytes since then */
};

#endif /* NETINET_TCP_RECOVER_H */
