/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes of bursts for segmentation offload where they follow the rate. */
#include "netinet/tcp_var.h"

/*
 * The max burst as Linux sizes it, in bytes: what the connection sends in
 * about 1 ms, and more if the path is short, but min_segs segments at least;
 * and half the congestion window, so that two bursts can be in flight.
 */
uint32_t
tcp_burst_paced(const struct tcpcb *tp, uint32_t most, uint32_t min_segs)
{
	const uint32_t cwnd = tp->snd_cwnd / tp->t_maxseg, half = cwnd > 1 ?
	    cwnd / 2 : 1;
	const unsigned percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ?
	    200 : 120;
	const nsec_t shift = tp->t_rttmin / NSEC_PER_USEC / 512;
	const nsec_t rtt = tp->t_rttlast != NSEC_FOREVER &&
	    tp->t_rttlast > tp->t_srtt ? tp->t_rttlast : tp->t_srtt;
	uint64_t bytes = shift < 32 ? 65536U >> shift : 0;
	uint32_t segs;

	if (rtt > 0)
		bytes += (uint64_t)tp->snd_cwnd * percent *
		    (NSEC_PER_SEC / 100 / 1024) / rtt;
	if (bytes > most)
		bytes = most;
	segs = (uint32_t)bytes / tp->t_maxseg;
	if (segs < min_segs)
		segs = min_segs;
	return ((segs < half ? segs : half) * tp->t_maxseg);
}
