/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast membership of a socket, with source filters (RFC 3376 section 3.1,
 * RFC 3678) and the options of ip(7) and ipv6(7).  Sources blocked by a socket
 * are still received from the link.
 */
#include <errno.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/in_group.h"
#include "netinet/in_pcb.h"

/* A socket's membership in a group. [v] reached only through mo_members */
struct in_member {
	LIST_ENTRY(in_member) im_link;	/* [v] */
	struct ifnet	*im_ifp;	/* [v] */
	struct in6_addr	 im_group;	/* [v] */
	/* [v] only these sources; else all but these */
	bool		 im_include;
	unsigned	 im_nsources;	/* [v] */
	struct in6_addr	 im_sources[GROUP_SOURCES_MAX];	/* [v] */
};

static atomic_u32 maxsockgroups = 64;

static const struct sysctl_oid mcast_oids[] = {
	{ .oid_name = "net.inet.ip.mcast.maxsockgroups",
	    .oid_type = CTL_U32, .oid_flags = CTL_TUN | CTL_RUN,
	    .oid_ptr = &maxsockgroups, .oid_min = 1, .oid_max = 65536,
	    .oid_descr = "max multicast groups of a socket" },
};

/* An option's request, independent of its structure. */
enum mcast_op { MCAST_JOIN, MCAST_LEAVE, MCAST_BLOCK, MCAST_UNBLOCK };
struct mcast_request {
	enum mcast_op	 op;
	struct ifnet	*ifp;
	struct in6_addr	 group;
	bool		 specific;	/* for one source */
	struct in6_addr	 source;
};

/* The structures that options use. */
enum mcast_form { MREQ, MREQ_SOURCE, MREQ6, GROUP_REQ, GROUP_SOURCE_REQ };

#define	EITHER	(-1)	/* family; 0 is IPPROTO_IP */

static const struct mcast_option {
	int		 level, name;
	enum mcast_form	 form;
	enum mcast_op	 op;
} mcast_options[] = {
	{ IPPROTO_IP, IP_ADD_MEMBERSHIP, MREQ, MCAST_JOIN },
	{ IPPROTO_IP, IP_DROP_MEMBERSHIP, MREQ, MCAST_LEAVE },
	{ IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, MREQ_SOURCE, MCAST_JOIN },
	{ IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP, MREQ_SOURCE, MCAST_LEAVE },
	{ IPPROTO_IP, IP_BLOCK_SOURCE, MREQ_SOURCE, MCAST_BLOCK },
	{ IPPROTO_IP, IP_UNBLOCK_SOURCE, MREQ_SOURCE, MCAST_UNBLOCK },
	{ IPPROTO_IPV6, IPV6_JOIN_GROUP, MREQ6, MCAST_JOIN },
	{ IPPROTO_IPV6, IPV6_LEAVE_GROUP, MREQ6, MCAST_LEAVE },
	{ EITHER, MCAST_JOIN_GROUP, GROUP_REQ, MCAST_JOIN },
	{ EITHER, MCAST_LEAVE_GROUP, GROUP_REQ, MCAST_LEAVE },
	{ EITHER, MCAST_JOIN_SOURCE_GROUP, GROUP_SOURCE_REQ, MCAST_JOIN },
	{ EITHER, MCAST_LEAVE_SOURCE_GROUP, GROUP_SOURCE_REQ, MCAST_LEAVE },
	{ EITHER, MCAST_BLOCK_SOURCE, GROUP_SOURCE_REQ, MCAST_BLOCK },
	{ EITHER, MCAST_UNBLOCK_SOURCE, GROUP_SOURCE_REQ, MCAST_UNBLOCK },
};

static const struct mcast_option *
find_option(int level, int name)
{
	for (size_t i = 0; i < nitems(mcast_options); i++)
		if (mcast_options[i].name == name &&
		    (mcast_options[i].level == level ||
		    mcast_options[i].level == EITHER))
			return (&mcast_options[i]);
	return (NULL);
}

/* The interface with the address addr, or if it is 0 the route to the group. */
static struct ifnet *
if_addressed(struct in_addr addr, struct in_addr group)
{
	if (addr.s_addr == INADDR_ANY)
		return (ip_groupif(group, 0));
	return (ntohl(addr.s_addr) >> 24 == IN_LOOPBACKNET ? loif :
	    if_byaddr(addr));
}

static struct ifnet *
if_indexed(uint32_t index, const struct in6_addr *group)
{
	return (in_family(group)->af_groupif(group, index));
}

static int
parse_mreq(const void *val, socklen_t len, struct mcast_request *r)
{
	struct ip_mreqn mreq = { .imr_ifindex = 0 };

	memcpy(&mreq, val, len < sizeof(mreq) ? sizeof(struct ip_mreq) :
	    sizeof(mreq));
	r->group = in_map(mreq.imr_multiaddr);
	r->ifp = mreq.imr_ifindex != 0 ?
	    if_byindex((unsigned)mreq.imr_ifindex) :
	    if_addressed(mreq.imr_address, mreq.imr_multiaddr);
	return (0);
}

static int
parse_mreq_source(const void *val, struct mcast_request *r)
{
	struct ip_mreq_source mreq;

	memcpy(&mreq, val, sizeof(mreq));
	r->group = in_map(mreq.imr_multiaddr);
	r->source = in_map(mreq.imr_sourceaddr);
	r->ifp = if_addressed(mreq.imr_interface, mreq.imr_multiaddr);
	return (0);
}

static int
parse_mreq6(const void *val, struct mcast_request *r)
{
	struct ipv6_mreq mreq;

	memcpy(&mreq, val, sizeof(mreq));
	if (!IN6_IS_ADDR_MULTICAST(&mreq.ipv6mr_multiaddr))
		return (EINVAL);
	r->group = mreq.ipv6mr_multiaddr;
	r->ifp = if_indexed(mreq.ipv6mr_interface, &r->group);
	return (0);
}

static int
parse_address(const struct sockaddr_storage *ss, struct in6_addr *addr)
{
	struct sockaddr_in6 sin6;
	struct sockaddr_in sin;

	if (ss->ss_family == AF_INET) {
		memcpy(&sin, ss, sizeof(sin));
		*addr = in_map(sin.sin_addr);
	} else if (ss->ss_family == AF_INET6) {
		memcpy(&sin6, ss, sizeof(sin6));
		*addr = sin6.sin6_addr;
	} else {
		return (EAFNOSUPPORT);
	}
	return (0);
}

static int
parse_group(const void *val, struct mcast_request *r)
{
	struct group_source_req req;
	int error;

	_Static_assert(offsetof(struct group_source_req, gsr_group) ==
	    offsetof(struct group_req, gr_group), "equal first members");
	memcpy(&req, val, r->specific ? sizeof(req) :
	    sizeof(struct group_req));
	error = parse_address(&req.gsr_group, &r->group);
	if (error == 0 && r->specific)
		error = parse_address(&req.gsr_source, &r->source);
	if (error == 0)
		r->ifp = if_indexed(req.gsr_interface, &r->group);
	return (error);
}

static const socklen_t form_len[] = {
	[MREQ] = sizeof(struct ip_mreq),
	[MREQ_SOURCE] = sizeof(struct ip_mreq_source),
	[MREQ6] = sizeof(struct ipv6_mreq),
	[GROUP_REQ] = sizeof(struct group_req),
	[GROUP_SOURCE_REQ] = sizeof(struct group_source_req),
};

static int
parse_request(const struct mcast_option *mo, const void *val, socklen_t len,
    struct mcast_request *r)
{
	if (len < form_len[mo->form])
		return (EINVAL);
	if (val == NULL)
		return (EFAULT);
	r->op = mo->op;
	r->specific = mo->form == MREQ_SOURCE || mo->form == GROUP_SOURCE_REQ;
	switch (mo->form) {
	case MREQ:
		return (parse_mreq(val, len, r));
	case MREQ_SOURCE:
		return (parse_mreq_source(val, r));
	case MREQ6:
		return (parse_mreq6(val, r));
	case GROUP_REQ:
	case GROUP_SOURCE_REQ:
	default:
		return (parse_group(val, r));
	}
}

static struct in_member *
member_find(const struct inpcb *inp, const struct ifnet *ifp,
    const struct in6_addr *group) REQUIRES(inp->inp_socket->so_lock)
{
	struct in_member *im;

	LIST_FOREACH(im, &inp->inp_mopts.mo_members, im_link)
		if (im->im_ifp == ifp &&
		    IN6_ARE_ADDR_EQUAL(&im->im_group, group))
			break;
	return (im);
}

/* Index of a source in the list; im_nsources if it is not there. */
static unsigned
source_index(const struct in_member *im, const struct in6_addr *source)
{
	unsigned i = 0;

	while (i < im->im_nsources &&
	    !IN6_ARE_ADDR_EQUAL(&im->im_sources[i], source))
		i++;
	return (i);
}

static void
member_free(struct inpcb *inp, struct in_member *im)
    REQUIRES(inp->inp_socket->so_lock)
{
	if (!im->im_include)
		in_group_leave(im->im_ifp, &im->im_group, NULL);
	for (unsigned i = 0; im->im_include && i < im->im_nsources; i++)
		in_group_leave(im->im_ifp, &im->im_group, &im->im_sources[i]);
	LIST_REMOVE(im, im_link);
	inp->inp_mopts.mo_nmembers--;
	kfree(im);
}

void
in_mcast_free(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct in_member *im;

	while ((im = LIST_FIRST(&inp->inp_mopts.mo_members)) != NULL)
		member_free(inp, im);
}

static int
member_join(struct inpcb *inp, const struct mcast_request *r)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_member *im = member_find(inp, r->ifp, &r->group);
	int error;

	if (im != NULL && !r->specific)
		return (EADDRINUSE);
	if (im != NULL && !im->im_include)
		return (EINVAL);
	if (im != NULL && source_index(im, &r->source) < im->im_nsources)
		return (EADDRNOTAVAIL);
	if (im == NULL ? inp->inp_mopts.mo_nmembers >=
	    atomic_load_u32(&maxsockgroups) :
	    im->im_nsources == GROUP_SOURCES_MAX)
		return (ENOBUFS);
	error = in_group_join(r->ifp, &r->group, r->specific ? &r->source :
	    NULL);
	if (error != 0)
		return (error);
	if (im == NULL) {
		im = kmalloc(sizeof(*im));
		im->im_ifp = r->ifp;
		im->im_group = r->group;
		im->im_include = r->specific;
		LIST_INSERT_HEAD(&inp->inp_mopts.mo_members, im, im_link);
		inp->inp_mopts.mo_nmembers++;
	}
	if (r->specific)
		im->im_sources[im->im_nsources++] = r->source;
	return (0);
}

static int
member_leave(struct inpcb *inp, const struct mcast_request *r)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_member *im = member_find(inp, r->ifp, &r->group);
	unsigned i;

	if (im == NULL)
		return (EADDRNOTAVAIL);
	if (!r->specific) {
		member_free(inp, im);
		return (0);
	}
	i = source_index(im, &r->source);
	if (!im->im_include || i == im->im_nsources)
		return (im->im_include ? EADDRNOTAVAIL : EINVAL);
	if (im->im_nsources == 1) {
		member_free(inp, im);
		return (0);
	}
	im->im_sources[i] = im->im_sources[--im->im_nsources];
	in_group_leave(r->ifp, &r->group, &r->source);
	return (0);
}

/* Blocks or unblocks a source for a member of a whole group. */
static int
member_block(struct inpcb *inp, const struct mcast_request *r)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_member *im = member_find(inp, r->ifp, &r->group);
	unsigned i;

	if (im == NULL || im->im_include)
		return (EINVAL);
	i = source_index(im, &r->source);
	if ((r->op == MCAST_BLOCK) == (i < im->im_nsources))
		return (EADDRNOTAVAIL);
	if (r->op == MCAST_UNBLOCK)
		im->im_sources[i] = im->im_sources[--im->im_nsources];
	else if (im->im_nsources == GROUP_SOURCES_MAX)
		return (ENOBUFS);
	else
		im->im_sources[im->im_nsources++] = r->source;
	return (0);
}

static int
do_request(struct inpcb *inp, const struct mcast_request *r)
    REQUIRES(inp->inp_socket->so_lock)
{
	if (!in_isgroup(&r->group) || (r->specific &&
	    (in_family(&r->source) != in_family(&r->group) ||
	    in_isgroup(&r->source))))
		return (EINVAL);
	if (r->ifp == NULL ||
	    (!IN6_IS_ADDR_V4MAPPED(&r->group) && r->ifp->if_in6 == NULL))
		return (ENODEV);
	if (inp->inp_table->it_stream)
		return (EPROTO);
	switch (r->op) {
	case MCAST_JOIN:
		return (member_join(inp, r));
	case MCAST_LEAVE:
		return (member_leave(inp, r));
	case MCAST_BLOCK:
	case MCAST_UNBLOCK:
	default:
		return (member_block(inp, r));
	}
}

/* IP_MULTICAST_IF, which accepts three structures, and IPV6_MULTICAST_IF. */
static int
set_interface(struct inpcb *inp, int level, const void *val, socklen_t len)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_addr anygroup = { htonl(INADDR_ALLHOSTS_GROUP) };
	struct ip_mreqn mreq = { .imr_ifindex = 0 };
	struct ifnet *ifp;

	if (inp->inp_table->it_stream)
		return (level == IPPROTO_IP ? EINVAL : ENOPROTOOPT);
	if (len < 4)
		return (EINVAL);
	if (val == NULL)
		return (EFAULT);
	if (level == IPPROTO_IPV6)
		memcpy(&mreq.imr_ifindex, val, sizeof(mreq.imr_ifindex));
	else if (len >= sizeof(mreq))
		memcpy(&mreq, val, sizeof(mreq));
	else if (len >= sizeof(struct ip_mreq))
		memcpy(&mreq, val, sizeof(struct ip_mreq));
	else
		memcpy(&mreq.imr_address, val, sizeof(mreq.imr_address));
	if (mreq.imr_ifindex != 0)
		ifp = if_byindex((unsigned)mreq.imr_ifindex);
	else if (mreq.imr_address.s_addr != INADDR_ANY)
		ifp = if_addressed(mreq.imr_address, anygroup);
	else {
		inp->inp_mopts.mo_ifindex = 0;	/* by route again */
		return (0);
	}
	if (ifp == NULL)
		return (level == IPPROTO_IP ? EADDRNOTAVAIL : ENODEV);
	inp->inp_mopts.mo_ifindex = ifp->if_index;
	return (0);
}

int
in_mcast_setopt(struct inpcb *inp, int level, int name, const void *val,
    socklen_t len) REQUIRES(inp->inp_socket->so_lock)
{
	const struct mcast_option *mo = find_option(level, name);
	struct mcast_request r = { .ifp = NULL };
	int error;

	if (level == IPPROTO_IP ? name == IP_MULTICAST_IF :
	    name == IPV6_MULTICAST_IF)
		return (set_interface(inp, level, val, len));
	if (mo == NULL)
		return (ENOPROTOOPT);
	if (mo->form == MREQ && inp->inp_table->it_stream)
		return (EPROTO);	/* whatever the request, as in Linux */
	error = parse_request(mo, val, len, &r);
	return (error != 0 ? error : do_request(inp, &r));
}

int
in_mcast_getif(const struct inpcb *inp, int level)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct ifnet *ifp = if_byindex(inp->inp_mopts.mo_ifindex);

	if (level == IPPROTO_IPV6)
		return ((int)inp->inp_mopts.mo_ifindex);
	return (ifp != NULL ? (int)ifp->if_addr.s_addr : 0);
}

bool
in_mcast_hears(const struct inpcb *inp, const struct in_conninfo *c,
    unsigned ifindex) REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_member *im;

	if (!in_isgroup(&c->laddr))
		return (true);
	LIST_FOREACH(im, &inp->inp_mopts.mo_members, im_link)
		if (im->im_ifp->if_index == ifindex &&
		    IN6_ARE_ADDR_EQUAL(&im->im_group, &c->laddr))
			return ((source_index(im, &c->faddr) <
			    im->im_nsources) == im->im_include);
	/*
	 * ip(7): groups joined by other sockets are received, too, unless
	 * IP_MULTICAST_ALL is 0
	 */
	return (!inp->inp_mopts.mo_onlymine);
}

void
in_mcast_sendopts(const struct inpcb *inp, struct ip_sendopts *opts)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_moptions *mo = &inp->inp_mopts;

	opts->ttl = mo->mo_ttl;
	opts->local = mo->mo_ttl == 0;
	opts->noloop = mo->mo_noloop;
}

void
in_mcast_init(void)
{
	sysctl_register(mcast_oids, nitems(mcast_oids));
}
