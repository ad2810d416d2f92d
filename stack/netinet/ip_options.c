/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of IPv4 (RFC 791 section 3.1, RFC 1122 section 3.2.1.8) must be well
 * formed.  Source routes are refused, complete or not, because they bypass
 * filters and have no other use (RFC 7126 sections 4.3 and 4.4).  Record route
 * and timestamp are not filled in, as RFC 7126 advises (sections 4.6 and 4.7),
 * because they reveal a router's topology.
 */
#include <netinet/ip_icmp.h>

#include "netinet/ip_private.h"

/* Offset of the first malformed option or source route; 0: none. */
static unsigned
find_bad(const uint8_t *header, unsigned hlen, bool *sourceroute)
{
	unsigned at = IP_HDRLEN, len;

	for (; at < hlen && header[at] != IPOPT_EOL; at += len) {
		if (header[at] == IPOPT_NOP) {
			len = 1;
			continue;
		}
		if (hlen - at < 2 || header[at + 1] < 2 ||
		    header[at + 1] > hlen - at)
			return (at);
		len = header[at + 1];
		*sourceroute = header[at] == IPOPT_LSRR ||
		    header[at] == IPOPT_SSRR;
		if (*sourceroute)
			return (at);
	}
	return (0);
}

bool
ip_options(struct mbuf *m, unsigned hlen)
{
	bool sourceroute = false;
	unsigned at;

	KASSERT(m->m_len >= hlen, ("ip_options: %u of %u bytes", m->m_len,
	    hlen));
	at = find_bad(mtod(m, const uint8_t *), hlen, &sourceroute);
	if (at == 0)
		return (true);
	if (sourceroute) {
		IPSTAT_INC(sourceroute);
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_SRCFAIL, 0);
	} else {
		IPSTAT_INC(badoptions);
		icmp_error(m, ICMP_PARAMPROB, 0, at << 24);
	}
	return (false);
}
