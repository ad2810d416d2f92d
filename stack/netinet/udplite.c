/* SPDX-License-Identifier: BSD-2-Clause */
#include "netinet/udplite.h"

#include <arpa/inet.h>
#include <errno.h>

/* linux/udp.h has them only for the kernel */
#define	UDPLITE_SEND_CSCOV 10
#define	UDPLITE_RECV_CSCOV 11

bool
udplite_valid(const struct mbuf *m, unsigned hlen, struct udphdr *uh,
    uint16_t *coverage)
{
	const struct in_family *af = in_packetfamily(m);
	const uint32_t len = m->m_pkthdr.len - hlen;
	struct in_conninfo c;
	uint32_t covered;

	if (len < UDP_HDRLEN)
		return (false);
	m_copydata(m, hlen, UDP_HDRLEN, uh);
	covered = ntohs(uh->uh_ulen);
	if (covered == 0)
		covered = len;
	/* a checksum is not optional (RFC 3828 section 3.1) */
	if (covered < UDP_HDRLEN || covered > len || uh->uh_sum == 0)
		return (false);
	*coverage = covered < len ? (uint16_t)covered : 0;
	af_endpoints(af, m, &c);
	return (in_fold(in_sum(m, hlen, covered,
	    af_pseudo(af, &c, IPPROTO_UDPLITE, len))) == 0);
}

bool
udplite_accepts(const struct inpcb *inp, uint16_t coverage)
    REQUIRES(inp->inp_socket->so_lock)
{
	return (!inp->inp_recvcovset || (inp->inp_recvcov != 0 &&
	    coverage >= inp->inp_recvcov));
}

void
udplite_seal(const struct inpcb *inp, struct mbuf *m,
    const struct in_conninfo *c) REQUIRES(inp->inp_socket->so_lock)
{
	const uint32_t len = m->m_pkthdr.len;
	struct udphdr *uh = mtod(m, struct udphdr *);
	uint32_t covered = inp->inp_sendcov;

	if (covered == 0 || covered > len)
		covered = len;
	uh->uh_ulen = htons((uint16_t)covered);
	uh->uh_sum = 0;
	uh->uh_sum = in_fold(in_sum(m, 0, covered,
	    af_pseudo(in_family(&c->faddr), c, IPPROTO_UDPLITE, len)));
	if (uh->uh_sum == 0)
		uh->uh_sum = UINT16_MAX;
}

/* As on Linux: 0 is the whole datagram, and the header is always covered. */
static uint16_t
limited(int value)
{
	if (value != 0 && value < (int)UDP_HDRLEN)
		return ((uint16_t)UDP_HDRLEN);
	return (value > UINT16_MAX ? UINT16_MAX : (uint16_t)value);
}

int
udplite_setopt(struct inpcb *inp, int name, int value)
    REQUIRES(inp->inp_socket->so_lock)
{
	switch (name) {
	case UDPLITE_SEND_CSCOV:
		inp->inp_sendcov = limited(value);
		return (0);
	case UDPLITE_RECV_CSCOV:
		inp->inp_recvcov = limited(value);
		inp->inp_recvcovset = true;
		return (0);
	default:
		return (ENOPROTOOPT);
	}
}

int
udplite_getopt(const struct inpcb *inp, int name, int *value)
    REQUIRES(inp->inp_socket->so_lock)
{
	if (name != UDPLITE_SEND_CSCOV && name != UDPLITE_RECV_CSCOV)
		return (ENOPROTOOPT);
	*value = name == UDPLITE_SEND_CSCOV ? inp->inp_sendcov :
	    inp->inp_recvcov;
	return (0);
}
