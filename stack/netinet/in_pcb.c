/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet protocol control blocks: bind, listen and connect.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "kern/sysctl.h"
#include "kern/thread.h"
#include "netinet/in_pcbtable.h"

/*
 * RFC 6056 section 3.2 recommends a wide range; privileged ports are excluded.
 */
static atomic_u32 portrange_first = 10000;
static atomic_u32 portrange_last = 65535;

static const struct sysctl_oid in_pcb_oids[] = {
	{ .oid_name = "net.inet.ip.portrange.first", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &portrange_first,
	  .oid_min = 1024, .oid_max = 65535,
	  .oid_descr = "min ephemeral port" },
	{ .oid_name = "net.inet.ip.portrange.last", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &portrange_last,
	  .oid_min = 1024, .oid_max = 65535,
	  .oid_descr = "max ephemeral port" },
};

void
in_pcb_sysctl_init(void)
{
	sysctl_register(in_pcb_oids, nitems(in_pcb_oids));
	in_pcbtable_sysctl_init();
	in_mcast_init();
}

static const struct in6_addr *
pcb_any(const struct inpcb *inp)
{
	return (inp->inp_family == AF_INET ? &in4_family.af_any :
	    &in6addr_any);
}

void
in_pcbinit(struct inpcb *inp, struct socket *so, struct inpcbtable *it)
{
	inp->inp_socket = so;
	mtx_private(&inp->inp_socket->so_lock);
	role_assert(&pcbtable_role);	/* the pcb is in no table yet */
	inp->inp_table = it;
	inp->inp_family = so->so_proto->pr_domain;
	inp->inp_conn.laddr = inp->inp_conn.faddr = *pcb_any(inp);
	inp->inp_mtudiscover = IP_PMTUDISC_WANT;
	inp->inp_opts.dontfrag = it->it_stream;
	inp->inp_mopts.mo_ttl = 1;
	LIST_INIT(&inp->inp_mopts.mo_members);
}

/*
 * Removes a pcb from its table.  A connection in a table with groups needs no
 * port's lock.
 */
static void
remove_entered(struct inpcbtable *it, struct inpcb *inp)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct rwlock *lock = in_portlock(it, inp->inp_conn.lport);

	if (it->it_divided && inp->inp_connected) {
		role_assert(&pcbtable_role);	/* its group's is enough */
		in_pcbtakeout(it, inp);
	} else {
		rw_wlock_as(lock, &pcbtable_role);
		in_pcbtakeout(it, inp);
		rw_wunlock_as(lock, &pcbtable_role);
	}
}

void
in_pcbremove(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	if (inp->inp_entered)
		remove_entered(inp->inp_table, inp);
}

/* Whether some packet could match both pcbs, if other is bound to laddr. */
static bool
pcb_overlap(const struct inpcb *inp, const struct inpcb *other,
    const struct in6_addr *laddr) REQUIRES_SHARED(pcbtable_role)
{
	const struct in6_addr *mine = &inp->inp_conn.laddr;

	return (in_covers(inp->inp_v6only, mine, laddr) ||
	    in_covers(other->inp_v6only, laddr, mine));
}

/* SO_REUSEPORT of both: listeners share new connections (socket(7)). */
static bool
share_port(const struct inpcb *inp, const struct inpcb *other)
    REQUIRES_SHARED(pcbtable_role)
{
	return ((inp->inp_reuse & other->inp_reuse & SOO_REUSEPORT) != 0);
}

/*
 * Whether a port in use cannot be bound.  If both sockets set SO_REUSEADDR,
 * they may share a port unless one listens.  Connections of a previous server
 * (TIME_WAIT and others) do not block a successor with SO_REUSEADDR.
 */
static bool
port_conflict(struct inpcbtable *it, const struct inpcb *inp,
    const struct in_endpoint *ep) REQUIRES_SHARED(pcbtable_role)
{
	const struct inport *ipt = in_portfind(it, ep->port);
	const struct inpcb *other;

	if (it->it_stream && inp->inp_reuse == 0 &&
	    in_portconnected(it, ep->port))
		return (true);
	if (ipt == NULL)
		return (false);
	LIST_FOREACH(other, &ipt->ipt_bound, inp_link) {
		if (!pcb_overlap(other, inp, &ep->addr))
			continue;
		if ((other->inp_reuse & inp->inp_reuse) == 0)
			return (true);
		if (it->it_stream && other->inp_listening &&
		    !share_port(other, inp))
			return (true);
	}
	return (false);
}

/* The n-th port from a start within the ephemeral range, wrapping. */
static in_port_t
ephemeral(uint32_t start, uint32_t n, uint32_t *count)
{
	uint32_t first = atomic_load_u32(&portrange_first);
	uint32_t last = atomic_load_u32(&portrange_last);

	if (first > last)
		last = first;
	*count = last - first + 1;
	return (htons((uint16_t)(first + (start + n) % *count)));
}

/* Binds to an endpoint; any: only if nothing uses the port.  EADDRINUSE. */
static int
bind_port(struct inpcb *inp, const struct in_endpoint *ep, bool any)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	struct rwlock *lock = in_portlock(it, ep->port);
	bool used;

	rw_wlock_as(lock, &pcbtable_role);
	inp->inp_reuse = inp->inp_socket->so_options &
	    (SOO_REUSEADDR | SOO_REUSEPORT);
	used = any ? in_portfind(it, ep->port) != NULL ||
	    in_portconnected(it, ep->port) : port_conflict(it, inp, ep);
	if (!used) {
		inp->inp_conn = (struct in_conninfo){ .laddr = ep->addr,
		    .lport = ep->port, .zone = ep->zone,
		    .faddr = *pcb_any(inp) };	/* of one that ended */
		inp->inp_fixedaddr = !in_isany(&ep->addr);
		inp->inp_fixedport = !any;
		(void)in_pcbenter(it, inp, false);
	}
	rw_wunlock_as(lock, &pcbtable_role);
	return (used ? EADDRINUSE : 0);
}

static int
bind_ephemeral(struct inpcb *inp, const struct in_endpoint *where)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_endpoint ep = *where;
	uint32_t start, count = 1;
	int error = EADDRINUSE;

	mach_random(&start, sizeof(start));
	start >>= 1;
	for (uint32_t n = 0; n < count && error != 0; n++) {
		ep.port = ephemeral(start, n, &count);
		error = bind_port(inp, &ep, true);
	}
	return (error);
}

int
in_pcbbind(struct inpcb *inp, const struct in_endpoint *ep)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	const struct in_endpoint any = { .addr = *pcb_any(inp) };

	if (ep == NULL)
		ep = &any;
	/* as in Linux: no zone; TCP has no multicast */
	if ((in_islinklocal(&ep->addr) && ep->zone == 0) ||
	    (it->it_stream && IN6_IS_ADDR_MULTICAST(&ep->addr)))
		return (EINVAL);
	if (!in_isany(&ep->addr) &&
	    !in_family(&ep->addr)->af_isours(ep, it->it_stream))
		return (EADDRNOTAVAIL);
	if (inp->inp_entered)
		return (EINVAL);
	return (ep->port != 0 ? bind_port(inp, ep, false) :
	    bind_ephemeral(inp, ep));
}

int
in_pcblisten(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	const struct inpcb *other;
	struct rwlock *lock;
	int error = 0;

	if (!inp->inp_entered)
		error = in_pcbbind(inp, NULL);
	if (error != 0)
		return (error);
	lock = in_portlock(it, inp->inp_conn.lport);
	rw_wlock_as(lock, &pcbtable_role);
	LIST_FOREACH(other, &inp->inp_port->ipt_bound, inp_link)
		if (other != inp && other->inp_listening &&
		    !share_port(other, inp) && pcb_overlap(other, inp, &inp->inp_conn.laddr))
			error = EADDRINUSE;
	if (error == 0) {
		inp->inp_listening = true;
		in_pcbindex_enter(it, inp);
	}
	rw_wunlock_as(lock, &pcbtable_role);
	return (error);
}

/*
 * Enters a connection; it leaves the place where it was bound.  EADDRINUSE: it
 * exists already, and nothing has changed.
 */
static int
connect_enter(struct inpcb *inp, const struct in_conninfo *c)
    REQUIRES(pcbtable_role, inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	const struct in_conninfo before = inp->inp_conn;
	const bool bound = inp->inp_entered;

	in_pcbtakeout(it, inp);
	inp->inp_conn = *c;
	if (in_pcbenter(it, inp, true))
		return (0);
	inp->inp_conn = before;
	if (bound)
		(void)in_pcbenter(it, inp, false);
	return (EADDRINUSE);
}

/* any: only if no pcb is bound to the port. */
static int
connect_port(struct inpcb *inp, const struct in_conninfo *c, bool any)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	struct rwlock *lock = in_portlock(it, c->lport);
	int error = EADDRINUSE;

	rw_wlock_as(lock, &pcbtable_role);
	if (!any || in_portfind(it, c->lport) == NULL)
		error = connect_enter(inp, c);
	rw_wunlock_as(lock, &pcbtable_role);
	return (error);
}

/*
 * RFC 6056 section 3.3.3: the first port tried depends on both addresses and a
 * secret, and a counter that each connection increments.  A port that another
 * socket is bound to (a server) is never used; a port with only other
 * connections may be.
 */
static int
connect_ephemeral(struct inpcb *inp, struct in_conninfo *c)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	uint32_t start, count = 1;
	int error = EADDRINUSE;

	c->lport = 0;
	start = (uint32_t)in_connhash(it, c) / 2 +
	    atomic_fetchadd_u32(&it->it_portcounter, 1) % 65536;
	for (uint32_t n = 0; n < count && error != 0; n++) {
		c->lport = ephemeral(start, n, &count);
		error = connect_port(inp, c, true);
	}
	return (error != 0 ? EADDRNOTAVAIL : 0);
}

int
in_pcbroute(const struct inpcb *inp, const struct in_endpoint *ep,
    struct in_conninfo *c) REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_family *af = in_family(&ep->addr);
	const bool ipv4 = af->af_family == AF_INET;
	uint32_t mtu;

	*c = inp->inp_conn;
	c->faddr = in_isany(&ep->addr) ? af->af_loopback : ep->addr;
	c->fport = ep->port;
	if (in_islinklocal(&c->faddr) || in_isgroup(&c->faddr)) {
		if (ep->zone != 0)
			c->zone = ep->zone;
		else if (in_isgroup(&c->faddr) && inp->inp_mopts.mo_ifindex != 0)
			c->zone = inp->inp_mopts.mo_ifindex;
		if (c->zone == 0 && in_islinklocal(&c->faddr))
			return (EINVAL);
	} else if (!in_islinklocal(&c->laddr)) {
		c->zone = 0;
	}
	if (ipv4 ? inp->inp_v6only || !(in_isany(&c->laddr) ||
	    IN6_IS_ADDR_V4MAPPED(&c->laddr)) :
	    IN6_IS_ADDR_V4MAPPED(&c->laddr))
		return (ENETUNREACH);
	return (af->af_route(c, &c->laddr, &mtu) ? 0 : ENETUNREACH);
}

int
in_pcbconnect(struct inpcb *inp, const struct in_endpoint *ep)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_conninfo c;
	int error;

	error = in_pcbroute(inp, ep, &c);
	if (error != 0)
		return (error);
	return (inp->inp_entered ? connect_port(inp, &c, false) :
	    connect_ephemeral(inp, &c));
}

int
in_pcbadopt(struct inpcb *inp, const struct in_conninfo *conn)
    REQUIRES(inp->inp_socket->so_lock)
{
	KASSERT(conn->lport != 0, ("in_pcbadopt: no port"));
	KASSERT(!inp->inp_entered, ("in_pcbadopt: bound"));
	if (!inp->inp_table->it_divided)
		return (connect_port(inp, conn, false));
	role_assert(&pcbtable_role);	/* its group's is enough */
	return (connect_enter(inp, conn));
}

void
in_pcbdisconnect(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	struct rwlock *lock = in_portlock(it, inp->inp_conn.lport);

	rw_wlock_as(lock, &pcbtable_role);
	in_pcbtakeout(it, inp);
	inp->inp_conn.faddr = *pcb_any(inp);
	inp->inp_conn.fport = 0;
	if (!in_islinklocal(&inp->inp_conn.laddr))
		inp->inp_conn.zone = 0;
	(void)in_pcbenter(it, inp, false);
	rw_wunlock_as(lock, &pcbtable_role);
}

void
in_pcbended(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	struct rwlock *lock;

	if (!inp->inp_fixedport) {
		in_pcbremove(inp);
		return;
	}
	lock = in_portlock(it, inp->inp_conn.lport);
	rw_wlock_as(lock, &pcbtable_role);
	in_pcbtakeout(it, inp);
	(void)in_pcbenter(it, inp, false);
	rw_wunlock_as(lock, &pcbtable_role);
}

/* The address and port that bind() named. */
static struct in_endpoint
named_endpoint(const struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct in_endpoint ep = { .addr = *pcb_any(inp) };

	if (inp->inp_fixedaddr) {
		ep.addr = inp->inp_conn.laddr;
		ep.zone = inp->inp_conn.zone;
	}
	if (inp->inp_fixedport)
		ep.port = inp->inp_conn.lport;
	return (ep);
}

void
in_pcbdissolve(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
{
	struct inpcbtable *it = inp->inp_table;
	const struct in_endpoint ep = named_endpoint(inp);
	struct rwlock *lock = in_portlock(it, inp->inp_conn.lport);

	rw_wlock_as(lock, &pcbtable_role);
	in_pcbtakeout(it, inp);
	inp->inp_conn = (struct in_conninfo){ .laddr = ep.addr,
	    .faddr = *pcb_any(inp), .lport = ep.port, .zone = ep.zone };
	if (ep.port != 0)
		(void)in_pcbenter(it, inp, false);
	rw_wunlock_as(lock, &pcbtable_role);
}

int
in_pcbsockaddr(const struct inpcb *inp, struct sockname *name)
{
	const struct in_conninfo *c = &inp->inp_conn;
	const struct in_endpoint ep = { c->laddr, c->lport, c->zone };

	in_toname(inp->inp_family, &ep, name);
	return (0);
}

int
in_pcbpeeraddr(const struct inpcb *inp, struct sockname *name)
{
	const struct in_conninfo *c = &inp->inp_conn;
	const struct in_endpoint ep = { c->faddr, c->fport, c->zone };

	if (c->fport == 0)
		return (ENOTCONN);
	in_toname(inp->inp_family, &ep, name);
	return (0);
}
