/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP sequence numbers: arithmetic modulo 2^32 (RFC 9293 section 3.4).
 */
#ifndef NETINET_TCP_SEQ_H
#define NETINET_TCP_SEQ_H

#include <stdint.h>

typedef uint32_t tcp_seq;

#define	SEQ_LT(a, b)	((int32_t)((a) - (b)) < 0)
#define	SEQ_LEQ(a, b)	((int32_t)((a) - (b)) <= 0)
#define	SEQ_GT(a, b)	((int32_t)((a) - (b)) > 0)
#define	SEQ_GEQ(a, b)	((int32_t)((a) - (b)) >= 0)

static inline tcp_seq
seq_max(tcp_seq a, tcp_seq b)
{
	return (SEQ_GT(a, b) ? a : b);
}

static inline tcp_seq
seq_min(tcp_seq a, tcp_seq b)
{
	return (SEQ_LT(a, b) ? a : b);
}

#endif /* NETINET_TCP_SEQ_H */
