/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener discovery, version 2 (RFC 3810): tells switches and
 * routers which groups this host is in.  Sources are never filtered, so a
 * group is either "exclude none" or left.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "kern/lock.h"
#include "kern/sysctl.h"
#include "netinet6/ip6_private.h"

#define	MLD_ROBUSTNESS	2	/* reports of a change (RFC 3810 9.1) */
#define	MLD_V2_REPORT	143
#define	MLD_V2_QUERYLEN	28

enum mld_record { MODE_IS_EXCLUDE = 2, TO_INCLUDE = 3, TO_EXCLUDE = 4 };

/*
 * Locks used to protect struct in6_multi members:
 *	[I] immutable
 *	[l] mld_lock
 */
struct in6_multi {
	LIST_ENTRY(in6_multi) im_link;	/* [l] */
	struct ifnet	*im_ifp;	/* [I] */
	struct in6_addr	 im_addr;	/* [I] */
	unsigned	 im_refs;	/* [l] */
	unsigned	 im_changes;	/* [l] of a join, still to be sent */
	nsec_t		 im_answer;	/* [l] date of an answer, or never */
};

static struct rwlock mld_lock;
static LIST_HEAD(, in6_multi) in6_multis;	/* [l] */
struct mldstat mldstat;

static const struct sysctl_oid mld_oids[] = {
#define	X(name, descr)							\
	{ .oid_name = "net.inet6.mld.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &mldstat.name,		\
	    .oid_descr = descr },
	MLD_STATS(X)
#undef X
};

/* A report of one record (section 5.2), with the router alert of RFC 2711. */
static void
send_report(struct ifnet *ifp, const struct in6_addr *group,
    enum mld_record type)
{
	static const struct in6_addr routers =
	    { .s6_addr = { 0xff, 2, [15] = 0x16 } };
	static const uint8_t alert[8] = { IPPROTO_ICMPV6, 0,
	    IP6OPT_ROUTER_ALERT, 2, 0, 0, IP6OPT_PADN, 0 };
	struct {
		struct icmp6_hdr icmp6;
		uint8_t		 type, auxlen;
		uint16_t	 nsources;
		struct in6_addr	 group;
	} report = {
		.icmp6 = { .icmp6_type = MLD_V2_REPORT },
		.type = (uint8_t)type, .group = *group
	};
	struct in6_addr src;
	struct mbuf *m = m_gethdr(128);

	/* RFC 3590: from nowhere, before there is an address */
	if (!in6_selectsrc(ifp, &routers, &src) ||
	    !IN6_IS_ADDR_LINKLOCAL(&src))
		src = in6addr_any;
	report.icmp6.icmp6_data16[1] = htons(1);
	memcpy(m->m_data, &report, sizeof(report));
	m->m_len = m->m_pkthdr.len = sizeof(report);
	icmp6_seal(m, &src, &routers);
	m = m_prepend(m, sizeof(alert));
	memcpy(m->m_data, alert, sizeof(alert));
	MLDSTAT_INC(reports);
	ip6_sendlink(ifp, m, &src, &routers, IPPROTO_HOPOPTS, 1);
}

/* Section 6: all nodes, and what stays within the host, is never reported. */
static bool
is_reported(const struct in6_addr *group)
{
	static const struct in6_addr allnodes =
	    { .s6_addr = { 0xff, 2, [15] = 1 } };

	return ((group->s6_addr[1] & 0xf) > 1 &&
	    !IN6_ARE_ADDR_EQUAL(group, &allnodes));
}

static struct in6_multi *
multi_find(const struct ifnet *ifp, const struct in6_addr *group)
    REQUIRES_SHARED(mld_lock)
{
	struct in6_multi *im;

	LIST_FOREACH(im, &in6_multis, im_link)
		if (im->im_ifp == ifp &&
		    IN6_ARE_ADDR_EQUAL(&im->im_addr, group))
			break;
	return (im);
}

int
mld6_join(struct ifnet *ifp, const struct in6_addr *group)
{
	struct in6_multi *im;
	bool first = false;

	if (!IN6_IS_ADDR_MULTICAST(group))
		return (EINVAL);
	rw_wlock(&mld_lock);
	im = multi_find(ifp, group);
	if (im == NULL) {
		first = true;
		im = kmalloc(sizeof(*im));
		im->im_ifp = ifp;
		im->im_addr = *group;
		im->im_answer = NSEC_FOREVER;
		im->im_changes = is_reported(group) ? MLD_ROBUSTNESS - 1 : 0;
		LIST_INSERT_HEAD(&in6_multis, im, im_link);
	}
	im->im_refs++;
	rw_wunlock(&mld_lock);
	if (first && is_reported(group) && !ifp->if_loopback)
		send_report(ifp, group, TO_EXCLUDE);
	return (0);
}

void
mld6_leave(struct ifnet *ifp, const struct in6_addr *group)
{
	struct in6_multi *im;
	bool last = false;

	rw_wlock(&mld_lock);
	im = multi_find(ifp, group);
	if (im != NULL && --im->im_refs == 0) {
		last = true;
		LIST_REMOVE(im, im_link);
		kfree(im);
	}
	rw_wunlock(&mld_lock);
	if (last && is_reported(group))
		send_report(ifp, group, TO_INCLUDE);
}

bool
mld6_ismember(const struct ifnet *ifp, const struct in6_addr *group)
{
	bool member;

	rw_rlock(&mld_lock);
	member = multi_find(ifp, group) != NULL;
	rw_runlock(&mld_lock);
	return (member);
}

/* Section 5.1.3: the time to answer in, ms, of a version 2 query. */
static uint32_t
response_delay(uint16_t code)
{
	if (code < 32768)
		return (code);
	return (((code & 0xfffU) | 0x1000) << (((code >> 12) & 7) + 3));
}

/* Section 6.2: answers are spread over the time that the querier gives. */
static void
schedule_answers(struct ifnet *ifp, const struct in6_addr *group,
    uint32_t most)
{
	const bool general = IN6_IS_ADDR_UNSPECIFIED(group);
	const nsec_t now = mach_uptime();
	struct in6_multi *im;
	uint32_t delay;

	rw_wlock(&mld_lock);
	LIST_FOREACH(im, &in6_multis, im_link) {
		if (im->im_ifp != ifp || !is_reported(&im->im_addr) ||
		    (!general && !IN6_ARE_ADDR_EQUAL(&im->im_addr, group)))
			continue;
		mach_random(&delay, sizeof(delay));
		delay %= most + 1;
		if (now + delay * NSEC_PER_MSEC < im->im_answer)
			im->im_answer = now + delay * NSEC_PER_MSEC;
	}
	rw_wunlock(&mld_lock);
}

void
mld6_input(struct mbuf *m, unsigned hlen)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	struct mld_hdr query;
	uint16_t code;

	MLDSTAT_INC(queries);
	/* section 6.2: from the link only, and long enough */
	if (!IN6_IS_ADDR_LINKLOCAL(&ip6->ip6_src) || ip6->ip6_hlim != 1 ||
	    m->m_pkthdr.len < hlen + sizeof(query)) {
		MLDSTAT_INC(bad);
		m_freem(m);
		return;
	}
	m_copydata(m, hlen, sizeof(query), &query);
	code = ntohs(query.mld_maxdelay);
	schedule_answers(m->m_pkthdr.rcvif, &query.mld_addr,
	    m->m_pkthdr.len - hlen < MLD_V2_QUERYLEN ? code :
	    response_delay(code));
	m_freem(m);
}

/* Reports that are due; those that find no room are due next time. */
void
mld6_tick(void)
{
	struct {
		struct ifnet	*ifp;
		struct in6_addr	 group;
		enum mld_record	 type;
	} due[32];
	const nsec_t now = mach_uptime();
	struct in6_multi *im;
	unsigned n = 0;

	rw_wlock(&mld_lock);
	LIST_FOREACH(im, &in6_multis, im_link) {
		const bool changed = im->im_changes > 0;

		if (im->im_ifp->if_loopback || n == nitems(due) ||
		    (!changed && im->im_answer > now))
			continue;
		due[n].ifp = im->im_ifp;
		due[n].group = im->im_addr;
		due[n++].type = changed ? TO_EXCLUDE : MODE_IS_EXCLUDE;
		if (changed)
			im->im_changes--;
		else
			im->im_answer = NSEC_FOREVER;
	}
	rw_wunlock(&mld_lock);
	while (n-- > 0)
		send_report(due[n].ifp, &due[n].group, due[n].type);
}

void
mld6_init(void)
{
	rw_init(&mld_lock, LC_IN6);
	sysctl_register(mld_oids, nitems(mld_oids));
}
