/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast group membership: members, and the times of reports.
 */
#include "netinet/in_group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "netinet/in_family.h"

#define	BUCKETS		64
#define	CHANGE_INTERVAL	1000	/* ms, RFC 3376 8.11, RFC 3810 9.11 */

struct in_source {
	struct in6_addr	 addr;
	unsigned	 refs;
};

static struct rwlock group_lock;

/*
 * Locks used to protect struct in_group members:
 *	[I] immutable
 *	[l] group_lock
 */
struct in_group {
	LIST_ENTRY(in_group) ig_link GUARDED_BY(group_lock);	/* [l] */
	struct ifnet	*ig_ifp;	/* [I] */
	struct in6_addr	 ig_addr;	/* [I] */
	bool		 ig_reported;	/* [I] */
	/* [l] members for every source */
	unsigned	 ig_any GUARDED_BY(group_lock);
	unsigned	 ig_nsources GUARDED_BY(group_lock);	/* [l] */
	/* [l] space for the max, or NULL */
	struct in_source *ig_sources GUARDED_BY(group_lock);
	/* [l] change reports still to be sent */
	unsigned	 ig_changes GUARDED_BY(group_lock);
	/* [l] time of the next change report */
	nsec_t		 ig_change GUARDED_BY(group_lock);
	/* [l] time of a response, or never */
	nsec_t		 ig_answer GUARDED_BY(group_lock);
};

/* [l] */
static LIST_HEAD(, in_group) groups[BUCKETS] GUARDED_BY(group_lock);
static struct callout group_callout;
static const struct group_family *families[2];	/* [I] IPv4, IPv6 */
static atomic_u32 ngroups;			/* [a] */
static atomic_u32 maxgroups = 1024;

static const struct sysctl_oid group_oids[] = {
	{ .oid_name = "net.inet.ip.mcast.maxgroups", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &maxgroups,
	    .oid_min = 16, .oid_max = 65536,
	    .oid_descr = "max multicast groups of both families, counted for "
	    "each interface" },
	{ .oid_name = "net.inet.ip.mcast.groups", .oid_type = CTL_U32,
	    .oid_ptr = &ngroups, .oid_max = UINT32_MAX,
	    .oid_descr = "multicast groups of this host" },
};

static const struct group_family *
family_of(const struct in6_addr *group)
{
	return (families[!IN6_IS_ADDR_V4MAPPED(group)]);
}

static unsigned
bucket(const struct in6_addr *group)
{
	return ((group->s6_addr32[3] ^ group->s6_addr32[0]) * 0x9e3779b1u >>
	    26);
}
_Static_assert(BUCKETS == 1 << (32 - 26), "bucket is the top 6 bits");

static struct in_group *
group_find(const struct ifnet *ifp, const struct in6_addr *group)
    REQUIRES_SHARED(group_lock)
{
	struct in_group *ig;

	LIST_FOREACH(ig, &groups[bucket(group)], ig_link)
		if (ig->ig_ifp == ifp &&
		    IN6_ARE_ADDR_EQUAL(&ig->ig_addr, group))
			break;
	return (ig);
}

/* Updates the interface's filter: it receives groups with members. */
static void
filter_update(struct ifnet *ifp) REQUIRES(group_lock)
{
	const struct in_group *ig;
	uint64_t filter = 0;
	uint8_t ll[6];

	for (unsigned i = 0; i < BUCKETS; i++)
		LIST_FOREACH(ig, &groups[i], ig_link)
			if (ig->ig_ifp == ifp) {
				family_of(&ig->ig_addr)->gf_lladdr(
				    &ig->ig_addr, ll);
				filter |= if_filterbit(ll);
			}
	atomic_store_u64(&ifp->if_filter, filter);
}

static struct in_group *
group_create(struct ifnet *ifp, const struct in6_addr *group)
    REQUIRES(group_lock)
{
	struct in_group *ig;

	if (atomic_load_u32(&ngroups) >= atomic_load_u32(&maxgroups))
		return (NULL);
	ig = kmalloc(sizeof(*ig));
	ig->ig_ifp = ifp;
	ig->ig_addr = *group;
	ig->ig_reported = !ifp->if_loopback &&
	    family_of(group)->gf_isreported(group);
	ig->ig_answer = NSEC_FOREVER;
	LIST_INSERT_HEAD(&groups[bucket(group)], ig, ig_link);
	atomic_count_u32(&ngroups, 1);
	filter_update(ifp);
	return (ig);
}

static void
group_remove(struct in_group *ig) REQUIRES(group_lock)
{
	LIST_REMOVE(ig, ig_link);
	atomic_count_u32(&ngroups, UINT32_MAX);
	filter_update(ig->ig_ifp);
	kfree(ig->ig_sources);
	kfree(ig);
}

static struct in_source *
source_find(const struct in_group *ig, const struct in6_addr *source)
    REQUIRES_SHARED(group_lock)
{
	for (unsigned i = 0; i < ig->ig_nsources; i++)
		if (IN6_ARE_ADDR_EQUAL(&ig->ig_sources[i].addr, source))
			return (&ig->ig_sources[i]);
	return (NULL);
}

/* Fills in a report of the group: its state, or a change to this state. */
static void
describe(const struct in_group *ig, bool changed, struct group_report *gr)
    REQUIRES_SHARED(group_lock)
{
	gr->gr_ifp = ig->ig_ifp;
	gr->gr_group = ig->ig_addr;
	gr->gr_nsources = 0;
	if (ig->ig_any > 0) {
		gr->gr_type = changed ? GROUP_TO_EXCLUDE : GROUP_IS_EXCLUDE;
		return;
	}
	gr->gr_type = changed ? GROUP_TO_INCLUDE : GROUP_IS_INCLUDE;
	while (gr->gr_nsources < ig->ig_nsources) {
		gr->gr_sources[gr->gr_nsources] =
		    ig->ig_sources[gr->gr_nsources].addr;
		gr->gr_nsources++;
	}
}

static nsec_t
random_time(uint32_t most)
{
	uint32_t delay;

	mach_random(&delay, sizeof(delay));
	return (mach_uptime() + delay % (most + 1) * NSEC_PER_MSEC);
}

/* When the next report of this group is due. */
static nsec_t
due_time(const struct in_group *ig) REQUIRES_SHARED(group_lock)
{
	return (ig->ig_changes > 0 && ig->ig_change < ig->ig_answer ?
	    ig->ig_change : ig->ig_answer);
}

static void group_timer(void *);

static void
timer_start(void) REQUIRES(group_lock)
{
	nsec_t first = NSEC_FOREVER, now = mach_uptime();
	const struct in_group *ig;

	for (unsigned i = 0; i < BUCKETS; i++)
		LIST_FOREACH(ig, &groups[i], ig_link)
			if (due_time(ig) < first)
				first = due_time(ig);
	if (first != NSEC_FOREVER)
		callout_reset(&group_callout, first > now ? first - now : 0,
		    group_timer, NULL);
}

/* Takes a report that is due; false: there is none. */
static bool
next_due(struct group_report *gr)
{
	const nsec_t now = mach_uptime();
	struct in_group *ig;
	bool found = false;

	rw_wlock(&group_lock);
	for (unsigned i = 0; i < BUCKETS && !found; i++)
		LIST_FOREACH(ig, &groups[i], ig_link) {
			if (due_time(ig) > now)
				continue;
			found = true;
			if (ig->ig_changes > 0 && ig->ig_change <= now) {
				ig->ig_changes--;
				ig->ig_change = random_time(CHANGE_INTERVAL);
				describe(ig, true, gr);
			} else {
				ig->ig_answer = NSEC_FOREVER;
				describe(ig, false, gr);
			}
			break;
		}
	if (!found)
		timer_start();
	rw_wunlock(&group_lock);
	return (found);
}

static void
group_timer(void *arg)
{
	struct group_report gr;

	(void)arg;
	while (next_due(&gr))
		family_of(&gr.gr_group)->gf_report(&gr);
}

/* The group's state has changed: reports it now and once more later. */
static void
group_changed(struct in_group *ig, struct group_report *gr)
    REQUIRES(group_lock)
{
	describe(ig, true, gr);
	ig->ig_changes = GROUP_ROBUSTNESS - 1;
	ig->ig_change = random_time(CHANGE_INTERVAL);
	timer_start();
}

/* Adds a member.  ENOBUFS; *changed: the group's reported state changes. */
static int
member_add(struct in_group *ig, const struct in6_addr *source, bool *changed)
    REQUIRES(group_lock)
{
	struct in_source *is;

	*changed = false;
	if (source == NULL) {
		*changed = ig->ig_any++ == 0;
		return (0);
	}
	is = source_find(ig, source);
	if (is == NULL) {
		if (ig->ig_nsources == GROUP_SOURCES_MAX)
			return (ENOBUFS);
		if (ig->ig_sources == NULL)
			ig->ig_sources = kmalloc(GROUP_SOURCES_MAX *
			    sizeof(*ig->ig_sources));
		is = &ig->ig_sources[ig->ig_nsources++];
		*is = (struct in_source){ *source, 0 };
		*changed = ig->ig_any == 0;
	}
	is->refs++;
	return (0);
}

static void
member_remove(struct in_group *ig, const struct in6_addr *source,
    bool *changed) REQUIRES(group_lock)
{
	struct in_source *is;

	*changed = false;
	if (source == NULL) {
		KASSERT(ig->ig_any > 0, ("member_remove: no members"));
		*changed = --ig->ig_any == 0;
		return;
	}
	is = source_find(ig, source);
	KASSERT(is != NULL, ("member_remove: no such source"));
	if (--is->refs == 0) {
		*is = ig->ig_sources[--ig->ig_nsources];
		*changed = ig->ig_any == 0;
	}
}

int
in_group_join(struct ifnet *ifp, const struct in6_addr *group,
    const struct in6_addr *source)
{
	bool changed = false, reported = false;
	struct group_report gr;
	struct in_group *ig;
	int error;

	if (!in_isgroup(group))
		return (EINVAL);
	rw_wlock(&group_lock);
	ig = group_find(ifp, group);
	if (ig == NULL)
		ig = group_create(ifp, group);
	error = ig != NULL ? member_add(ig, source, &changed) : ENOBUFS;
	if (ig != NULL) {
		reported = changed && ig->ig_reported;
		if (reported)
			group_changed(ig, &gr);
		else if (ig->ig_any == 0 && ig->ig_nsources == 0)
			group_remove(ig);
	}
	rw_wunlock(&group_lock);
	if (reported)
		family_of(group)->gf_report(&gr);
	return (error);
}

void
in_group_leave(struct ifnet *ifp, const struct in6_addr *group,
    const struct in6_addr *source)
{
	bool changed, reported = false;
	struct group_report gr;
	struct in_group *ig;

	rw_wlock(&group_lock);
	ig = group_find(ifp, group);
	if (ig != NULL) {
		member_remove(ig, source, &changed);
		reported = changed && ig->ig_reported;
		if (reported)
			group_changed(ig, &gr);
		if (ig->ig_any == 0 && ig->ig_nsources == 0)
			group_remove(ig);
	}
	rw_wunlock(&group_lock);
	if (reported)
		family_of(group)->gf_report(&gr);
}

bool
in_group_ismember(const struct ifnet *ifp, const struct in6_addr *group)
{
	bool member;

	rw_rlock(&group_lock);
	member = group_find(ifp, group) != NULL;
	rw_runlock(&group_lock);
	return (member);
}

void
in_group_queried(const struct ifnet *ifp, const struct in6_addr *group,
    uint32_t most)
{
	const bool ipv4 = IN6_IS_ADDR_V4MAPPED(group);
	struct in_group *ig;
	nsec_t date;

	rw_wlock(&group_lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		LIST_FOREACH(ig, &groups[i], ig_link) {
			if (ig->ig_ifp != ifp || !ig->ig_reported ||
			    IN6_IS_ADDR_V4MAPPED(&ig->ig_addr) != ipv4 ||
			    (!in_isany(group) &&
			    !IN6_ARE_ADDR_EQUAL(&ig->ig_addr, group)))
				continue;
			/* responses are spread over the given time */
			date = random_time(most);
			if (date < ig->ig_answer)
				ig->ig_answer = date;
		}
	timer_start();
	rw_wunlock(&group_lock);
}

void
in_group_heard(const struct ifnet *ifp, const struct in6_addr *group)
{
	struct in_group *ig;

	rw_wlock(&group_lock);
	ig = group_find(ifp, group);
	if (ig != NULL)
		ig->ig_answer = NSEC_FOREVER;
	rw_wunlock(&group_lock);
}

uint32_t
in_group_time(uint32_t code, unsigned bits)
{
	const uint32_t high = 1U << (bits - 1), mantissa = bits - 4;

	if (code < high)
		return (code);
	return (((code & ((1U << mantissa) - 1)) | 1U << mantissa) <<
	    ((code >> mantissa & 7) + 3));
}

static void
group_show(struct ctl_out *co)
{
	const struct in_group *ig;
	char text[INET6_ADDRSTRLEN];
	struct in_addr a4;

	ctl_printf(co, "%-10s %-40s %8s %8s\n", "Interface", "Group",
	    "Members", "Sources");
	rw_rlock(&group_lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		LIST_FOREACH(ig, &groups[i], ig_link) {
			a4 = in_unmap(&ig->ig_addr);
			if (IN6_IS_ADDR_V4MAPPED(&ig->ig_addr))
				inet_ntop(AF_INET, &a4, text, sizeof(text));
			else
				inet_ntop(AF_INET6, &ig->ig_addr, text,
				    sizeof(text));
			ctl_printf(co, "%-10s %-40s %8u %8u\n",
			    ig->ig_ifp->if_xname, text, ig->ig_any,
			    ig->ig_nsources);
		}
	rw_runlock(&group_lock);
}

void
in_group_register(int domain, const struct group_family *gf)
{
	families[domain != AF_INET] = gf;
}

void
in_group_init(void)
{
	rw_init(&group_lock, LC_GROUP);
	callout_init(&group_callout);
	sysctl_register(group_oids, nitems(group_oids));
	ctl_view_register("netstat -g", group_show);
}
