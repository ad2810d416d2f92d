/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explicit congestion notification (RFC 3168 section 6.1): a router marks
 * packets instead of dropping them.  The receiver echoes the mark until the
 * sender reports that it reduced its window.
 *
 * net.inet.tcp.ecn.enable: 0 never, 1 connect() requests it, 2 only if the
 * peer requests it.
 */
#include <netinet/tcp.h>

#include "kern/sysctl.h"
#include "netinet/tcp_var.h"

enum { ECN_NEVER, ECN_ASK, ECN_ASKED };

static atomic_u32 ecn_enable = ECN_ASKED;

static const struct sysctl_oid ecn_oids[] = {
	{ .oid_name = "net.inet.tcp.ecn.enable", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ecn_enable,
	  .oid_min = ECN_NEVER, .oid_max = ECN_ASKED, .oid_descr =
	  "congestion marks (RFC 3168): 0 off, 1 on, 2 if the peer requests it" },
};

void
tcp_ecn_sysctl_init(void)
{
	sysctl_register(ecn_oids, nitems(ecn_oids));
}

/* The ECN field of a received packet that starts at its IP header. */
uint8_t
tcp_ecn_field(const struct mbuf *m)
{
	const uint8_t *ip = mtod(m, const uint8_t *);

	return (ip[0] >> 4 == 4 ? ip[1] & IPTOS_ECN_MASK :
	    ip[1] >> 4 & IPTOS_ECN_MASK);
}

/* TF_ECN if connect() requests ECN. */
unsigned
tcp_ecn_request(const struct tcpcb *tp)
{
	const uint32_t enable = atomic_load_u32(&ecn_enable);

	return (enable == ECN_ASK || (enable == ECN_ASKED &&
	    tp->t_cc->cc_wants_ecn) ? TF_ECN : 0);
}

/* TF_ECN if a peer's SYN requests ECN and the tunable permits it. */
unsigned
tcp_ecn_requested(const struct tcpseg *sg)
{
	return (atomic_load_u32(&ecn_enable) != ECN_NEVER &&
	    (sg->sg_flags & (TH_ECE | TH_CWR)) == (TH_ECE | TH_CWR) ?
	    TF_ECN : 0);
}

/* Processes the peer's SYN-ACK or SYN after ours (section 6.1.1). */
void
tcp_ecn_accepted(struct tcpcb *tp, const struct tcpseg *sg)
{
	if ((sg->sg_flags & (TH_ACK | TH_ECE | TH_CWR)) != (TH_ACK | TH_ECE))
		tp->t_flags &= ~(unsigned)TF_ECN;
}

/* ECN flags of a SYN, SYN-ACK or ACK (flags) for the wanted options. */
uint8_t
tcp_ecn_synflags(unsigned wants, uint8_t flags)
{
	if ((wants & TF_ECN) == 0 || (flags & TH_SYN) == 0)
		return (0);
	return (flags & TH_ACK ? TH_ECE : TH_ECE | TH_CWR);
}

/* Input step: marks, and the end of their echo (section 6.1.3). */
enum tcp_step
tcp_ecn_input(struct tcpcb *tp, struct tcpseg *sg)
{
	if ((tp->t_flags & TF_ECN) == 0)
		return (STEP_NEXT);
	if (sg->sg_ecn == IPTOS_ECN_CE)
		TCPSTAT_INC(ecnmarks);
	if (tp->t_cc->cc_data_marked != NULL) {
		if (sg->sg_len > 0)
			tp->t_cc->cc_data_marked(tp,
			    sg->sg_ecn == IPTOS_ECN_CE);
		return (STEP_NEXT);
	}
	if (sg->sg_flags & TH_CWR)
		tp->t_flags &= ~(unsigned)TF_ECNECHO;
	if (sg->sg_ecn == IPTOS_ECN_CE)
		tp->t_flags |= TF_ECNECHO | TF_ACKNOW;
	return (STEP_NEXT);
}

/*
 * Returns the TCP flags of a segment, and in *ecn its ECN field.  Only data
 * sent for the first time may be marked ECT, or carry CWR (sections 6.1.2 and
 * 6.1.5).
 */
uint8_t
tcp_ecn_output(struct tcpcb *tp, bool fresh, uint8_t *ecn)
{
	uint8_t flags = 0;

	*ecn = 0;
	if ((tp->t_flags & TF_ECN) == 0)
		return (0);
	if (tp->t_flags & TF_ECNECHO)
		flags |= TH_ECE;
	if (fresh) {
		*ecn = IPTOS_ECN_ECT0;
		if (tp->t_flags & TF_ECNCWR)
			flags |= TH_CWR;
		tp->t_flags &= ~(unsigned)TF_ECNCWR;
	}
	return (flags);
}
