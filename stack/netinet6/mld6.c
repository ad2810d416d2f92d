/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener discovery, version 2 (RFC 3810), and version 1 (RFC 2710)
 * for older routers.  Its messages report the groups of this host (in_group.c)
 * to switches and routers.
 */
#include <arpa/inet.h>
#include <string.h>

#include "kern/sysctl.h"
#include "net/if_ether.h"
#include "netinet/in_group.h"
#include "netinet6/ip6_private.h"

#define	MLD_V2_REPORT	143
#define	MLD_V2_QUERYLEN	28
#define	MLD_V1_TIMEOUT	(260 * NSEC_PER_SEC)	/* RFC 3810 section 9.12 */

struct mldstat mldstat COUNTERS;

static const struct sysctl_oid mld_oids[] = {
#define	X(name, descr)							\
	{ .oid_name = "net.inet6.mld.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &mldstat.name,		\
	    .oid_descr = descr },
	MLD_STATS(X)
#undef X
};

/* Sends a message with the router alert option (RFC 2711). */
static void
send_message(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *dst)
{
	static const uint8_t alert[8] = { IPPROTO_ICMPV6, 0,
	    IP6OPT_ROUTER_ALERT, 2, 0, 0, IP6OPT_PADN, 0 };
	struct in6_addr src;

	/* RFC 3590: unspecified until there is an address */
	if (!in6_selectsrc(ifp, dst, &src) || !IN6_IS_ADDR_LINKLOCAL(&src))
		src = in6addr_any;
	icmp6_seal(m, &src, dst);
	m = m_prepend(m, sizeof(alert));
	memcpy(m->m_data, alert, sizeof(alert));
	MLDSTAT_INC(reports);
	ip6_sendlink(ifp, m, &src, dst, IPPROTO_HOPOPTS, 1);
}

/*
 * RFC 2710 section 4: a report goes to the group, a done message to all
 * routers.
 */
static void
send_v1(const struct group_report *gr)
{
	static const struct in6_addr routers =
	    { .s6_addr = { 0xff, 2, [15] = 2 } };
	const bool left = gr->gr_type == GROUP_TO_INCLUDE &&
	    gr->gr_nsources == 0;
	struct mld_hdr mld = { .mld_type = left ? MLD_LISTENER_REDUCTION :
	    MLD_LISTENER_REPORT, .mld_addr = gr->gr_group };
	struct mbuf *m = m_gethdr(128);

	memcpy(m->m_data, &mld, sizeof(mld));
	m->m_len = m->m_pkthdr.len = sizeof(mld);
	send_message(gr->gr_ifp, m, left ? &routers : &gr->gr_group);
}

/* Sends a report of one record (section 5.2). */
static void
send_report(const struct group_report *gr)
{
	static const struct in6_addr routers =
	    { .s6_addr = { 0xff, 2, [15] = 0x16 } };
	struct {
		struct icmp6_hdr icmp6;
		uint8_t		 type, auxlen;
		uint16_t	 nsources;
		struct in6_addr	 group;
	} report = {
		.icmp6 = { .icmp6_type = MLD_V2_REPORT },
		.type = (uint8_t)gr->gr_type,
		.nsources = htons((uint16_t)gr->gr_nsources),
		.group = gr->gr_group
	};
	const uint32_t sources = gr->gr_nsources *
	    (uint32_t)sizeof(gr->gr_sources[0]);
	struct mbuf *m;

	if (mach_uptime() < atomic_load_u64(&gr->gr_ifp->if_in6->oldquerier)) {
		send_v1(gr);
		return;
	}
	m = m_getcl(MCLBYTES);
	m->m_data += 128;	/* room for IP and link headers */
	report.icmp6.icmp6_data16[1] = htons(1);
	memcpy(m->m_data, &report, sizeof(report));
	memcpy(m->m_data + sizeof(report), gr->gr_sources, sources);
	m->m_len = m->m_pkthdr.len = (uint32_t)sizeof(report) + sources;
	send_message(gr->gr_ifp, m, &routers);
}

/* Section 6: all-nodes and interface-local groups are never reported. */
static bool
is_reported(const struct in6_addr *group)
{
	static const struct in6_addr allnodes =
	    { .s6_addr = { 0xff, 2, [15] = 1 } };

	return ((group->s6_addr[1] & 0xf) > 1 &&
	    !IN6_ARE_ADDR_EQUAL(group, &allnodes));
}

/* Section 6.2: link-local source, hop limit 1, and a valid length. */
static bool
mld_valid(const struct mbuf *m, unsigned hlen)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);

	return (IN6_IS_ADDR_LINKLOCAL(&ip6->ip6_src) && ip6->ip6_hlim == 1 &&
	    m->m_pkthdr.len >= hlen + sizeof(struct mld_hdr));
}

void
mld6_input(struct mbuf *m, unsigned hlen)
{
	struct ifnet *ifp = m->m_pkthdr.rcvif;
	const bool v1 = m->m_pkthdr.len - hlen < MLD_V2_QUERYLEN;
	struct mld_hdr mld;
	uint32_t delay;

	if (!mld_valid(m, hlen)) {
		MLDSTAT_INC(bad);
		m_freem(m);
		return;
	}
	m_copydata(m, hlen, sizeof(mld), &mld);
	m_freem(m);
	if (IN6_IS_ADDR_V4MAPPED(&mld.mld_addr)) {
		MLDSTAT_INC(bad);
	} else if (mld.mld_type == MLD_LISTENER_QUERY) {
		MLDSTAT_INC(queries);
		delay = ntohs(mld.mld_maxdelay);
		if (v1)
			atomic_store_u64(&ifp->if_in6->oldquerier,
			    mach_uptime() + MLD_V1_TIMEOUT);
		in_group_queried(ifp, &mld.mld_addr, v1 ? delay :
		    in_group_time(delay, 16));
	} else if (mach_uptime() < atomic_load_u64(&ifp->if_in6->oldquerier)) {
		in_group_heard(ifp, &mld.mld_addr);
	}
}

void
mld6_init(void)
{
	static const struct group_family family = {
		.gf_isreported = is_reported, .gf_report = send_report,
		.gf_lladdr = ether_group6,
	};

	in_group_register(AF_INET6, &family);
	sysctl_register(mld_oids, nitems(mld_oids));
}
