/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet protocol control blocks: tables, lookup, bind and connect.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "kern/sysctl.h"
#include "kern/thread.h"
#include "netinet/in_pcb.h"

/* RFC 6056 wants the range wide; privileged ports are left alone. */
static atomic_u32 portrange_first = 10000;
static atomic_u32 portrange_last = 65535;

static const struct sysctl_oid in_pcb_oids[] = {
	{ .oid_name = "net.inet.ip.portrange.first", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &portrange_first,
	  .oid_min = 1024, .oid_max = 65535,
	  .oid_descr = "lowest ephemeral port" },
	{ .oid_name = "net.inet.ip.portrange.last", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &portrange_last,
	  .oid_min = 1024, .oid_max = 65535,
	  .oid_descr = "highest ephemeral port" },
};

void
in_pcb_sysctl_init(void)
{
	sysctl_register(in_pcb_oids, nitems(in_pcb_oids));
	in_mcast_init();
}

void
in_pcbtable_init(struct inpcbtable *it, const char *name, bool stream)
{
	rw_init(&it->it_lock, LC_PCBTABLE);
	it->it_name = name;
	it->it_stream = stream;
	it->it_changes = 1;
	mach_random(&it->it_key, sizeof(it->it_key));
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
	inp->inp_table = it;
	inp->inp_family = so->so_proto->pr_domain;
	inp->inp_conn.laddr = inp->inp_conn.faddr = *pcb_any(inp);
	inp->inp_mtudiscover = IP_PMTUDISC_WANT;
	inp->inp_opts.dontfrag = it->it_stream;
	inp->inp_mopts.mo_ttl = 1;
	LIST_INIT(&inp->inp_mopts.mo_members);
}

static uint64_t
conn_hash(const struct inpcbtable *it, const struct in_conninfo *c)
{
	uint64_t words[IN_CONNWORDS];
	size_t n = in_connwords(c, words);

	return (siphash_words(&it->it_key, words, n));
}

static bool
conn_equal(const struct in_conninfo *a, const struct in_conninfo *b)
{
	return (a->fport == b->fport && a->lport == b->lport &&
	    IN6_ARE_ADDR_EQUAL(&a->faddr, &b->faddr) &&
	    IN6_ARE_ADDR_EQUAL(&a->laddr, &b->laddr) && a->zone == b->zone);
}

/*
 * The connections that a thread had packets for last, good as long as the
 * table has not changed: a packet mostly follows another of its connection.
 */
#define	PCB_HINTS	64
struct pcb_hint {
	const struct inpcbtable *it;
	uint64_t	 changes;	/* 0: empty */
	struct inpcb	*inp;
};

static struct pcb_hint *
pcb_hint(const struct in_conninfo *c)
{
	struct pcb_hint *hints = thread_hints(TD_PCBS,
	    PCB_HINTS * sizeof(*hints));
	uint32_t key = c->faddr.s6_addr32[3] ^
	    ((uint32_t)c->fport << 16 | c->lport);

	return (&hints[(key * 0x9e3779b1u) >> 26]);
}
_Static_assert(PCB_HINTS == 1 << (32 - 26), "a hint by the top 6 bits");

static struct inpcb *conn_search(struct inpcbtable *it,
    const struct in_conninfo *c) REQUIRES_SHARED(it->it_lock);

static struct inpcb *
conn_find(struct inpcbtable *it, const struct in_conninfo *c)
    REQUIRES_SHARED(it->it_lock)
{
	struct pcb_hint *ph = pcb_hint(c);

	if (ph->changes == it->it_changes && ph->it == it &&
	    conn_equal(&ph->inp->inp_conn, c))
		return (ph->inp);
	ph->inp = conn_search(it, c);
	ph->it = it;
	ph->changes = ph->inp != NULL ? it->it_changes : 0;
	return (ph->inp);
}

static struct inpcb *
conn_search(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct inpcb *inp;

	LIST_FOREACH(inp, &it->it_conns[conn_hash(it, c) % INPCB_BUCKETS],
	    inp_link)
		if (conn_equal(&inp->inp_conn, c))
			return (inp);
	return (NULL);
}

static struct inport *
port_find(struct inpcbtable *it, in_port_t port)
    REQUIRES_SHARED(it->it_lock)
{
	struct inport *ip;

	LIST_FOREACH(ip, &it->it_ports[ntohs(port) % INPORT_BUCKETS], ip_hash)
		if (ip->ip_port == port)
			return (ip);
	return (NULL);
}

static struct inport *
port_get(struct inpcbtable *it, in_port_t port) REQUIRES(it->it_lock)
{
	struct inport *ip = port_find(it, port);

	if (ip != NULL)
		return (ip);
	ip = kmalloc(sizeof(*ip));
	ip->ip_port = port;
	LIST_INIT(&ip->ip_bound);
	LIST_INSERT_HEAD(&it->it_ports[ntohs(port) % INPORT_BUCKETS], ip,
	    ip_hash);
	return (ip);
}

static void
port_put(struct inport *ip)
{
	if (ip->ip_conns == 0 && LIST_EMPTY(&ip->ip_bound)) {
		LIST_REMOVE(ip, ip_hash);
		kfree(ip);
	}
}

/* Enters a pcb that has a local port into the list or bucket it belongs to. */
static void
pcb_insert(struct inpcbtable *it, struct inpcb *inp, bool connected)
    REQUIRES(it->it_lock)
{
	const struct in_conninfo *c = &inp->inp_conn;

	KASSERT(c->lport != 0, ("pcb_insert: no port"));
	KASSERT(inp->inp_port == NULL, ("pcb_insert: inserted already"));
	it->it_changes++;
	inp->inp_port = port_get(it, c->lport);
	inp->inp_connected = connected;
	if (connected) {
		inp->inp_port->ip_conns++;
		LIST_INSERT_HEAD(&it->it_conns[conn_hash(it, c) %
		    INPCB_BUCKETS], inp, inp_link);
	} else {
		LIST_INSERT_HEAD(&inp->inp_port->ip_bound, inp, inp_link);
	}
}

static void
pcb_remove(struct inpcbtable *it, struct inpcb *inp) REQUIRES(it->it_lock)
{
	struct inport *ip = inp->inp_port;

	KASSERT(inp->inp_table == it, ("pcb_remove: wrong table"));
	if (ip == NULL)
		return;
	it->it_changes++;
	LIST_REMOVE(inp, inp_link);
	if (inp->inp_connected) {
		KASSERT(ip->ip_conns > 0, ("pcb_remove: port %u has no "
		    "connection", ntohs(ip->ip_port)));
		ip->ip_conns--;
	}
	inp->inp_connected = false;
	inp->inp_port = NULL;
	port_put(ip);
}

void
in_pcbremove(struct inpcb *inp)
{
	struct inpcbtable *it = inp->inp_table;

	rw_wlock(&it->it_lock);
	pcb_remove(it, inp);
	inp->inp_listening = false;
	rw_wunlock(&it->it_lock);
}

/*
 * Whether packets to an address may be for a pcb that is bound to laddr: "any"
 * of IPv4 is for all of IPv4, :: is for both unless IPV6_V6ONLY says no.
 */
static bool
pcb_covers(const struct inpcb *inp, const struct in6_addr *laddr,
    const struct in6_addr *addr)
{
	if (IN6_ARE_ADDR_EQUAL(laddr, addr))
		return (true);
	if (!in_isany(laddr))
		return (false);
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return (IN6_IS_ADDR_V4MAPPED(laddr) || !inp->inp_v6only);
	return (IN6_IS_ADDR_UNSPECIFIED(laddr));
}

/* Whether there are packets for a pcb that also another, if on laddr, gets. */
static bool
pcb_overlap(const struct inpcb *inp, const struct inpcb *other,
    const struct in6_addr *laddr)
{
	const struct in6_addr *mine = &inp->inp_conn.laddr;

	return (pcb_covers(inp, mine, laddr) || pcb_covers(other, laddr, mine));
}

/*
 * Whether binding to a port in use is refused.  With SO_REUSEADDR on both
 * sides a port may be shared unless somebody listens; connections of a
 * server that has gone (TIME_WAIT and others) do not stop its successor,
 * who says SO_REUSEADDR.
 */
static bool
port_conflict(const struct inpcbtable *it, const struct inpcb *inp,
    const struct inport *ip, const struct in_endpoint *ep)
{
	const struct inpcb *other;

	if (it->it_stream && ip->ip_conns > 0 && inp->inp_reuse == 0)
		return (true);
	LIST_FOREACH(other, &ip->ip_bound, inp_link) {
		if (!pcb_overlap(other, inp, &ep->addr))
			continue;
		if ((other->inp_reuse & inp->inp_reuse) == 0)
			return (true);
		if (it->it_stream && other->inp_listening)
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

static int
bind_ephemeral(struct inpcbtable *it, struct inpcb *inp)
    REQUIRES(it->it_lock)
{
	uint32_t start, count = 1;

	mach_random(&start, sizeof(start));
	start >>= 1;
	for (uint32_t n = 0; n < count; n++) {
		in_port_t port = ephemeral(start, n, &count);

		if (port_find(it, port) == NULL) {
			inp->inp_conn.lport = port;
			return (0);
		}
	}
	return (EADDRINUSE);
}

int
in_pcbbind(struct inpcb *inp, const struct in_endpoint *ep)
{
	struct inpcbtable *it = inp->inp_table;
	const struct in_endpoint any = { .addr = *pcb_any(inp) };
	struct inport *ip;
	int error = 0;

	if (inp->inp_port != NULL)
		return (EINVAL);
	if (ep == NULL)
		ep = &any;
	/* as Linux: no zone; TCP is between two hosts */
	if ((in_islinklocal(&ep->addr) && ep->zone == 0) ||
	    (it->it_stream && IN6_IS_ADDR_MULTICAST(&ep->addr)))
		return (EINVAL);
	if (!in_isany(&ep->addr) &&
	    !in_family(&ep->addr)->af_isours(ep, it->it_stream))
		return (EADDRNOTAVAIL);
	rw_wlock(&it->it_lock);
	inp->inp_reuse = inp->inp_socket->so_options &
	    (SOO_REUSEADDR | SOO_REUSEPORT);
	if (ep->port == 0) {
		error = bind_ephemeral(it, inp);
	} else {
		ip = port_find(it, ep->port);
		if (ip != NULL && port_conflict(it, inp, ip, ep))
			error = EADDRINUSE;
		else
			inp->inp_conn.lport = ep->port;
	}
	if (error == 0) {
		inp->inp_conn.laddr = ep->addr;
		inp->inp_conn.zone = ep->zone;
		pcb_insert(it, inp, false);
	}
	rw_wunlock(&it->it_lock);
	return (error);
}

int
in_pcblisten(struct inpcb *inp)
{
	struct inpcbtable *it = inp->inp_table;
	const struct inpcb *other;
	int error = 0;

	if (inp->inp_port == NULL)
		error = in_pcbbind(inp, NULL);
	if (error != 0)
		return (error);
	rw_wlock(&it->it_lock);
	LIST_FOREACH(other, &inp->inp_port->ip_bound, inp_link)
		if (other != inp && other->inp_listening &&
		    pcb_overlap(other, inp, &inp->inp_conn.laddr))
			error = EADDRINUSE;
	if (error == 0)
		inp->inp_listening = true;
	rw_wunlock(&it->it_lock);
	return (error);
}

/*
 * RFC 6056 section 3.3.3: where the search for a port starts depends on
 * both addresses and a secret; the counter goes on with each connection.
 * A port that others are bound to (servers) is never taken, one that only
 * other connections use is.
 */
static int
connect_ephemeral(struct inpcbtable *it, struct in_conninfo *c)
    REQUIRES(it->it_lock)
{
	uint32_t start, count = 1;
	struct inport *ip;

	c->lport = 0;
	start = (uint32_t)conn_hash(it, c) / 2 +
	    atomic_fetchadd_u32(&it->it_portcounter, 1) % 65536;
	for (uint32_t n = 0; n < count; n++) {
		c->lport = ephemeral(start, n, &count);
		ip = port_find(it, c->lport);
		if (ip == NULL || (LIST_EMPTY(&ip->ip_bound) &&
		    conn_find(it, c) == NULL))
			return (0);
	}
	return (EADDRNOTAVAIL);
}

static int
connect_insert(struct inpcb *inp, struct in_conninfo *c)
{
	struct inpcbtable *it = inp->inp_table;
	int error = 0;

	rw_wlock(&it->it_lock);
	if (c->lport == 0)
		error = connect_ephemeral(it, c);
	else if (conn_find(it, c) != NULL)
		error = EADDRINUSE;
	if (error == 0) {
		pcb_remove(it, inp);
		inp->inp_conn = *c;
		pcb_insert(it, inp, true);
	}
	rw_wunlock(&it->it_lock);
	return (error);
}

int
in_pcbroute(const struct inpcb *inp, const struct in_endpoint *ep,
    struct in_conninfo *c)
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
{
	struct in_conninfo c;
	int error;

	if (ep->port == 0)
		return (EADDRNOTAVAIL);
	error = in_pcbroute(inp, ep, &c);
	if (inp->inp_port == NULL)
		c.lport = 0;
	return (error != 0 ? error : connect_insert(inp, &c));
}

int
in_pcbadopt(struct inpcb *inp, const struct in_conninfo *conn)
{
	struct in_conninfo c = *conn;

	KASSERT(c.lport != 0, ("in_pcbadopt: no port"));
	return (connect_insert(inp, &c));
}

void
in_pcbdisconnect(struct inpcb *inp)
{
	struct inpcbtable *it = inp->inp_table;

	rw_wlock(&it->it_lock);
	pcb_remove(it, inp);
	inp->inp_conn.faddr = *pcb_any(inp);
	inp->inp_conn.fport = 0;
	if (!in_islinklocal(&inp->inp_conn.laddr))
		inp->inp_conn.zone = 0;
	pcb_insert(it, inp, false);
	rw_wunlock(&it->it_lock);
}

struct socket *
in_pcblookup_conn(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct inpcb *inp;
	struct socket *so = NULL;

	rw_rlock(&it->it_lock);
	inp = conn_find(it, c);
	if (inp != NULL) {
		so = inp->inp_socket;
		soref(so);
	}
	rw_runlock(&it->it_lock);
	return (so);
}

struct socket *
in_pcblookup(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct inpcb *inp, *best;
	struct inport *ip;
	struct socket *so = NULL;

	rw_rlock(&it->it_lock);
	best = conn_find(it, c);
	ip = best == NULL ? port_find(it, c->lport) : NULL;
	if (ip != NULL) {
		LIST_FOREACH(inp, &ip->ip_bound, inp_link) {
			if (it->it_stream && !inp->inp_listening)
				continue;
			if (!pcb_covers(inp, &inp->inp_conn.laddr,
			    &c->laddr) || (inp->inp_conn.zone != 0 &&
			    inp->inp_conn.zone != c->zone))
				continue;
			/* one bound to this very address is best */
			if (best == NULL || !in_isany(&inp->inp_conn.laddr))
				best = inp;
		}
	}
	if (best != NULL) {
		so = best->inp_socket;
		soref(so);
	}
	rw_runlock(&it->it_lock);
	return (so);
}

unsigned
in_pcblookup_all(struct inpcbtable *it, const struct in_conninfo *c,
    struct socket **sos, unsigned max)
{
	struct inport *ip;
	struct inpcb *inp;
	unsigned n = 0;

	rw_rlock(&it->it_lock);
	inp = conn_find(it, c);
	if (inp != NULL)
		sos[n++] = inp->inp_socket;
	ip = port_find(it, c->lport);
	if (ip != NULL)
		LIST_FOREACH(inp, &ip->ip_bound, inp_link)
			if (pcb_covers(inp, &inp->inp_conn.laddr, &c->laddr) &&
			    (inp->inp_conn.zone == 0 ||
			    inp->inp_conn.zone == c->zone) && n++ < max)
				sos[n - 1] = inp->inp_socket;
	for (unsigned i = 0; i < n && i < max; i++)
		soref(sos[i]);
	rw_runlock(&it->it_lock);
	return (n);
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
