/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IGMP version 3 (RFC 3376), and versions 2 and 1 (RFC 2236, RFC 1112) for
 * older routers.  Its messages report the groups of this host (in_group.c) to
 * switches and routers.
 */
#include "netinet/igmp.h"

#include <arpa/inet.h>
#include <string.h>

#include "kern/sysctl.h"
#include "net/if_ether.h"
#include "netinet/in_family.h"
#include "netinet/in_group.h"
#include "netinet/ip_private.h"

#define	IGMP_MINLEN		8
#define	IGMP_V3_QUERYLEN	12
#define	IGMP_OLD_TIMEOUT	(260 * NSEC_PER_SEC)	/* RFC 3376 8.12 */
#define	IGMP_V3_ROUTERS		0xe0000016	/* 224.0.0.22 */
#define	IGMP_TOS		0xc0	/* RFC 3376 section 4 */

enum igmp_type {
	IGMP_QUERY = 0x11, IGMP_V1_REPORT = 0x12, IGMP_V2_REPORT = 0x16,
	IGMP_V2_LEAVE = 0x17, IGMP_V3_REPORT = 0x22
};

/* Queries, and all messages of versions 1 and 2. */
struct igmp_message {
	uint8_t		 type, code;
	uint16_t	 sum;
	struct in_addr	 group;
};

static struct igmpstat igmpstat;
#define	IGMPSTAT_INC(name)	atomic_count_u64(&igmpstat.name, 1)

static const struct sysctl_oid igmp_oids[] = {
#define	X(name, descr)							\
	{ .oid_name = "net.inet.igmp.stats." #name, .oid_type = CTL_U64, \
	    .oid_ptr = &igmpstat.name, .oid_descr = descr },
	IGMP_STATS(X)
#undef X
};

/*
 * The version that all routers of an interface support (RFC 3376 section
 * 7.2.1).
 */
static unsigned
igmp_version(struct ifnet *ifp)
{
	const nsec_t now = mach_uptime();

	for (unsigned v = 1; v <= 2; v++)
		if (now < atomic_load_u64(&ifp->if_oldquerier[v - 1]))
			return (v);
	return (3);
}

static void
send_message(struct ifnet *ifp, struct mbuf *m, struct in_addr dst)
{
	const struct ip_sendopts opts = { .tos = IGMP_TOS, .ttl = 1,
	    .alert = true, .noloop = true, .ifindex = ifp->if_index };
	uint16_t sum = in_fold(in_sum(m, 0, m->m_pkthdr.len, 0));

	memcpy(m->m_data + offsetof(struct igmp_message, sum), &sum,
	    sizeof(sum));
	IGMPSTAT_INC(sent);
	/* RFC 3376 section 4.2.13: 0.0.0.0 if there is no address */
	ip_output(m, ifp->if_addr, dst, IPPROTO_IGMP, &opts);
}

/* RFC 2236 section 3; version 1 has no leave. */
static void
send_old(const struct group_report *gr, unsigned version)
{
	const struct in_addr group = in_unmap(&gr->gr_group);
	const bool left = gr->gr_type == GROUP_TO_INCLUDE &&
	    gr->gr_nsources == 0;
	struct igmp_message im = { .type = left ? IGMP_V2_LEAVE :
	    version == 2 ? IGMP_V2_REPORT : IGMP_V1_REPORT, .group = group };
	const struct in_addr routers = { htonl(INADDR_ALLRTRS_GROUP) };
	struct mbuf *m;

	if (left && version == 1)
		return;
	m = m_gethdr(96);
	memcpy(m->m_data, &im, sizeof(im));
	m->m_len = m->m_pkthdr.len = sizeof(im);
	send_message(gr->gr_ifp, m, left ? routers : group);
}

/* Sends a report of one record (RFC 3376 section 4.2). */
static void
send_report(const struct group_report *gr)
{
	struct {
		uint8_t		 msgtype, resv;
		uint16_t	 sum, resv2, nrecords;
		uint8_t		 type, auxlen;
		uint16_t	 nsources;
		struct in_addr	 group;
	} report = {
		.msgtype = IGMP_V3_REPORT, .nrecords = htons(1),
		.type = (uint8_t)gr->gr_type,
		.nsources = htons((uint16_t)gr->gr_nsources),
		.group = in_unmap(&gr->gr_group)
	};
	const unsigned version = igmp_version(gr->gr_ifp);
	struct mbuf *m;

	if (version < 3) {
		send_old(gr, version);
		return;
	}
	m = m_gethdr(96);
	memcpy(m->m_data, &report, sizeof(report));
	m->m_len = sizeof(report);
	for (unsigned i = 0; i < gr->gr_nsources; i++, m->m_len += 4)
		memcpy(m->m_data + m->m_len, &gr->gr_sources[i].s6_addr32[3],
		    4);
	m->m_pkthdr.len = m->m_len;
	send_message(gr->gr_ifp, m,
	    (struct in_addr){ htonl(IGMP_V3_ROUTERS) });
}

static bool
is_reported(const struct in6_addr *group)
{
	return (group->s6_addr32[3] != htonl(INADDR_ALLHOSTS_GROUP));
}

static void
link_address(const struct in6_addr *group, uint8_t ll[6])
{
	ether_group(in_unmap(group), ll);
}

/*
 * Sections 4.1.12 and 7.1: length and code determine the version; a general
 * query goes to all hosts.  A query for sources of a group is answered for the
 * group.
 */
static void
igmp_query(struct ifnet *ifp, const struct igmp_message *im, uint32_t len,
    struct in_addr dst)
{
	const bool general = im->group.s_addr == INADDR_ANY;
	const struct in6_addr group = in_map(im->group);
	uint32_t tenths = im->code;

	IGMPSTAT_INC(queries);
	if (general ? dst.s_addr != htonl(INADDR_ALLHOSTS_GROUP) :
	    !in_isgroup(&group)) {
		IGMPSTAT_INC(bad);
		return;
	}
	if (len >= IGMP_V3_QUERYLEN) {
		tenths = in_group_time(im->code, 8);
	} else {
		atomic_store_u64(&ifp->if_oldquerier[im->code != 0],
		    mach_uptime() + IGMP_OLD_TIMEOUT);
		if (im->code == 0)
			tenths = 100;	/* RFC 1112 appendix I */
	}
	in_group_queried(ifp, &group, tenths * 100);
}

/* Versions 1 and 2: a host suppresses its report if another host sent one. */
static void
igmp_report(struct ifnet *ifp, const struct igmp_message *im)
{
	const struct in6_addr group = in_map(im->group);

	IGMPSTAT_INC(reports);
	if (igmp_version(ifp) < 3)
		in_group_heard(ifp, &group);
}

static void
igmp_input(struct mbuf *m, unsigned hlen)
{
	const struct ip *ip = mtod(m, const struct ip *);
	const uint32_t len = m->m_pkthdr.len - hlen;
	struct igmp_message im;

	IGMPSTAT_INC(received);
	if (len < IGMP_MINLEN) {
		IGMPSTAT_INC(tooshort);
	} else if (in_fold(in_sum(m, hlen, len, 0)) != 0) {
		IGMPSTAT_INC(checksum);
	} else if (ip->ip_ttl != 1) {
		IGMPSTAT_INC(bad);
	} else {
		m_copydata(m, hlen, sizeof(im), &im);
		if (im.type == IGMP_QUERY)
			igmp_query(m->m_pkthdr.rcvif, &im, len, ip->ip_dst);
		else if (im.type == IGMP_V1_REPORT ||
		    im.type == IGMP_V2_REPORT)
			igmp_report(m->m_pkthdr.rcvif, &im);
	}
	m_freem(m);
}

void
igmp_init(void)
{
	static const struct group_family family = {
		.gf_isreported = is_reported, .gf_report = send_report,
		.gf_lladdr = link_address,
	};

	giant_component("igmp");
	in_group_register(AF_INET, &family);
	sysctl_register(igmp_oids, nitems(igmp_oids));
	ip_register(IPPROTO_IGMP, igmp_input, NULL);
}
