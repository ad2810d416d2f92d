/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extension headers (RFC 8200 section 4) with the limits of RFC 8504 section
 * 5.3, which bound the work for each packet.
 */
#include <string.h>

#include "kern/sysctl.h"
#include "netinet6/ip6_private.h"

/* max consecutive padding bytes (RFC 8504 section 5.3) */
#define	PADDING_MAX	7

static atomic_u32 ip6_maxexthdrs = 8;
static atomic_u32 ip6_maxoptions = 8;

static const struct sysctl_oid exthdr_oids[] = {
	{ .oid_name = "net.inet6.ip6.maxexthdrs", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip6_maxexthdrs,
	    .oid_max = 255,
	    .oid_descr = "max extension headers of a packet" },
	{ .oid_name = "net.inet6.ip6.maxoptions", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip6_maxoptions,
	    .oid_max = 1024,
	    .oid_descr = "max options of an extension header" },
};

void
ip6_exthdr_init(void)
{
	sysctl_register(exthdr_oids, nitems(exthdr_oids));
}

/* The result for an option: accept, drop, or drop with an ICMP error. */
enum verdict { OPT_OK, OPT_DROP, OPT_ANSWER };

/*
 * RFC 8200 section 4.2: the two high bits of an unknown type determine the
 * action.
 */
static enum verdict
unknown_option(const struct mbuf *m, uint8_t type)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);

	switch (type & 0xc0) {
	case 0x00:
		return (OPT_OK);
	case 0x40:
		return (OPT_DROP);
	case 0x80:
		return (OPT_ANSWER);
	default:
		return (IN6_IS_ADDR_MULTICAST(&ip6->ip6_dst) ? OPT_DROP :
		    OPT_ANSWER);
	}
}

/*
 * Checks the options in bytes [off, end) of a packet.  If the result is not
 * OPT_OK, *at is the offending option.
 */
static enum verdict
check_options(const struct mbuf *m, uint32_t off, uint32_t end, uint32_t *at)
{
	uint32_t count = 0, padding = 0, len;
	uint8_t tl[2];
	enum verdict v = OPT_OK;

	for (; off < end && v == OPT_OK; off += len) {
		*at = off;
		m_copydata(m, off, 1, tl);
		if (tl[0] == IP6OPT_PAD1) {
			len = 1;
		} else {
			if (end - off < 2)
				return (OPT_DROP);
			m_copydata(m, off, 2, tl);
			len = 2U + tl[1];
			if (len > end - off)
				return (OPT_DROP);
		}
		if (tl[0] == IP6OPT_PAD1 || tl[0] == IP6OPT_PADN) {
			padding += len;
			if (padding > PADDING_MAX)
				return (OPT_DROP);
			continue;
		}
		padding = 0;
		if (++count > atomic_load_u32(&ip6_maxoptions)) {
			IP6STAT_INC(exthdrtoomany);
			return (OPT_DROP);
		}
		if (tl[0] != IP6OPT_ROUTER_ALERT)
			v = unknown_option(m, tl[0]);
	}
	return (v);
}

/*
 * The extension header at *off: its second byte is its length after the first
 * 8 bytes, in units of 8.  False: truncated; otherwise *end is after the
 * header.
 */
static bool
header_end(const struct mbuf *m, uint32_t off, uint8_t *nxt, uint32_t *end)
{
	struct ip6_ext eh;

	if (m->m_pkthdr.len < off + 8)
		return (false);
	m_copydata(m, off, sizeof(eh), &eh);
	*nxt = eh.ip6e_nxt;
	*end = off + ((eh.ip6e_len + 1U) << 3);
	return (*end <= m->m_pkthdr.len);
}

/* Processes a hop-by-hop or destination options header; false: consumed. */
static bool
options_header(struct mbuf *m, uint32_t *off, uint8_t *nxt)
{
	uint32_t end, at;
	enum verdict v;

	if (!header_end(m, *off, nxt, &end)) {
		IP6STAT_INC(badoptions);
		m_freem(m);
		return (false);
	}
	v = check_options(m, *off + sizeof(struct ip6_ext), end, &at);
	if (v == OPT_OK) {
		*off = end;
		return (true);
	}
	IP6STAT_INC(badoptions);
	if (v == OPT_ANSWER)
		icmp6_error(m, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_OPTION, at);
	else
		m_freem(m);
	return (false);
}

/*
 * A routing header without segments left is skipped.  Others are treated as
 * unknown, because this host does not forward by them (type 0: RFC 5095).
 */
static bool
routing_header(struct mbuf *m, uint32_t *off, uint8_t *nxt)
{
	struct ip6_rthdr rh;
	uint32_t end;

	if (!header_end(m, *off, nxt, &end)) {
		IP6STAT_INC(badoptions);
		m_freem(m);
		return (false);
	}
	m_copydata(m, *off, sizeof(rh), &rh);
	if (rh.ip6r_segleft == 0) {
		*off = end;
		return (true);
	}
	IP6STAT_INC(unknownheader);
	icmp6_error(m, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_HEADER, *off +
	    offsetof(struct ip6_rthdr, ip6r_type));
	return (false);
}

bool
ip6_hopbyhop(struct mbuf *m, uint32_t *off, uint8_t *nxt)
{
	if (*nxt != IPPROTO_HOPOPTS)
		return (true);
	return (options_header(m, off, nxt));
}

enum exthdr
ip6_exthdrs(struct mbuf *m, uint32_t *off, uint8_t *nxt)
{
	uint32_t most = atomic_load_u32(&ip6_maxexthdrs);
	bool ok;

	for (uint32_t n = 0; n <= most; n++) {
		switch (*nxt) {
		case IPPROTO_DSTOPTS:
			ok = options_header(m, off, nxt);
			break;
		case IPPROTO_ROUTING:
			ok = routing_header(m, off, nxt);
			break;
		case IPPROTO_FRAGMENT:
			return (EH_FRAGMENT);
		case IPPROTO_NONE:
			m_freem(m);
			return (EH_DONE);
		default:
			return (EH_UPPER);
		}
		if (!ok)
			return (EH_DONE);
	}
	IP6STAT_INC(exthdrtoomany);
	m_freem(m);
	return (EH_DONE);
}

uint32_t
ip6_upper(const struct mbuf *m, uint32_t off, uint8_t *nxt)
{
	struct ip6_frag fh;
	uint32_t end;

	for (unsigned n = 0; n < 8; n++) {
		switch (*nxt) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_DSTOPTS:
		case IPPROTO_ROUTING:
			if (!header_end(m, off, nxt, &end))
				return (0);
			off = end;
			break;
		case IPPROTO_FRAGMENT:
			if (m->m_pkthdr.len < off + sizeof(fh))
				return (0);
			m_copydata(m, off, sizeof(fh), &fh);
			if ((fh.ip6f_offlg & IP6F_OFF_MASK) != 0)
				return (0);
			*nxt = fh.ip6f_nxt;
			off += (uint32_t)sizeof(fh);
			break;
		default:
			return (off);
		}
	}
	return (0);
}
