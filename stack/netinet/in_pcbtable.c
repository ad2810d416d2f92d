/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of Internet protocol control blocks: input looks sockets up here.
 */
#include "netinet/in_pcbtable.h"

#include <arpa/inet.h>

#include "kern/counter.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "netinet/in_hints.h"

static struct { atomic_u64 waits; } pcbstat COUNTERS;

static const struct sysctl_oid pcbtable_oids[] = {
	{ .oid_name = "net.inet.ip.stats.pcbwaits", .oid_type = CTL_U64,
	  .oid_ptr = &pcbstat.waits,
	  .oid_descr = "lookups that waited for a lock" },
};

void
in_pcbtable_sysctl_init(void)
{
	sysctl_register(pcbtable_oids, nitems(pcbtable_oids));
}

void
in_pcbtable_init(struct inpcbtable *it, const char *name, bool stream)
{
	/* at boot, as in in_pcbtable_divide() */
	role_assert(&pcbtable_role);
	rw_init(&it->it_lock, LC_PCBTABLE);
	it->it_name = name;
	it->it_stream = stream;
	it->it_whole.pg_changes = 1;
	it->it_groups = &it->it_whole;
	it->it_ngroups = 1;
	mach_random(&it->it_key, sizeof(it->it_key));
}

void
in_pcbtable_divide(struct inpcbtable *it, unsigned ngroups)
{
	KASSERT(ngroups > 0 && ngroups <= INPCB_BUCKETS,
	    ("in_pcbtable_divide: %u groups", ngroups));
	role_assert(&pcbtable_role);
	it->it_groups = kmalloc_aligned(ngroups * sizeof(*it->it_groups),
	    _Alignof(struct pcbgroup));
	it->it_ngroups = ngroups;
	it->it_divided = true;
	for (unsigned i = 0; i < ngroups; i++) {
		rw_init(&it->it_groups[i].pg_lock, LC_PCBGROUP);
		it->it_groups[i].pg_changes = 1;
	}
}

uint64_t
in_connhash(const struct inpcbtable *it, const struct in_conninfo *c)
{
	uint64_t words[IN_CONNWORDS];
	size_t n = in_connwords(c, words);

	return (siphash_words(&it->it_key, words, n));
}

/*
 * A thread's cache of connections.  An entry is valid as long as its group has
 * not changed.  Consecutive packets often belong to one connection.  The
 * connection's group never changes; the cache also avoids its hash.
 */
#define	PCB_HINT_BITS	6
struct pcb_hint {
	const struct inpcbtable *it;	/* NULL: empty */
	struct in_conninfo conn;
	struct pcbgroup	*pg;		/* the group of conn in it */
	uint64_t	 changes;	/* 0: not looked up, or not found */
	struct inpcb	*inp;
};

NOINLINE static void
pcb_hint_anew(struct pcb_hint *ph, struct inpcbtable *it,
    const struct in_conninfo *c)
{
	*ph = (struct pcb_hint){ .it = it, .conn = *c, .pg = it->it_groups };
	if (it->it_divided) /* with groups, its bucket belongs to one group */
		ph->pg += in_connhash(it, c) % INPCB_BUCKETS % it->it_ngroups;
}

static struct pcb_hint *
pcb_hint(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct pcb_hint *ph = thread_hint(IN_PCBS, sizeof(*ph), PCB_HINT_BITS,
	    c->faddr.s6_addr32[3] ^ ((uint32_t)c->fport << 16 | c->lport));

	if (__predict_false(ph->it != it || !in_connequal(&ph->conn, c)))
		pcb_hint_anew(ph, it, c);
	return (ph);
}

NOINLINE static struct inpcb *
conn_search(const struct inpcbtable *it, const struct in_conninfo *c)
    REQUIRES_SHARED(pcbtable_role)
{
	struct inpcb *inp;

	LIST_FOREACH(inp, &it->it_conns[in_connhash(it, c) % INPCB_BUCKETS],
	    inp_link)
		if (in_connequal(&inp->inp_conn, c))
			return (inp);
	return (NULL);
}

static struct inpcb *
hint_find(struct pcb_hint *ph) REQUIRES_SHARED(pcbtable_role)
{
	if (__predict_true(ph->changes == ph->pg->pg_changes))
		return (ph->inp);
	ph->inp = conn_search(ph->it, &ph->conn);
	ph->changes = ph->inp != NULL ? ph->pg->pg_changes : 0;
	return (ph->inp);
}

struct inpcb *
in_connfind(struct inpcbtable *it, const struct in_conninfo *c)
{
	return (hint_find(pcb_hint(it, c)));
}

struct inport *
in_portfind(struct inpcbtable *it, in_port_t port)
{
	struct inport *ipt;

	LIST_FOREACH(ipt, &it->it_ports[ntohs(port) % INPORT_BUCKETS], ipt_hash)
		if (ipt->ipt_port == port)
			return (ipt);
	return (NULL);
}

static struct inport *
port_get(struct inpcbtable *it, in_port_t port)
    REQUIRES(it->it_lock, pcbtable_role)
{
	struct inport *ipt = in_portfind(it, port);

	if (ipt != NULL)
		return (ipt);
	ipt = kmalloc(sizeof(*ipt));
	ipt->ipt_port = port;
	LIST_INIT(&ipt->ipt_bound);
	LIST_INSERT_HEAD(&it->it_ports[ntohs(port) % INPORT_BUCKETS], ipt,
	    ipt_hash);
	return (ipt);
}

static void
port_put(struct inport *ipt) REQUIRES(pcbtable_role)
{
	if (ipt->ipt_conns == 0 && LIST_EMPTY(&ipt->ipt_bound)) {
		LIST_REMOVE(ipt, ipt_hash);
		kfree(ipt);
	}
}

/* Enters a connection into its bucket, or removes it. */
static void
bucket_change(struct inpcbtable *it, struct pcbgroup *pg, struct inpcb *inp,
    bool enter) REQUIRES(pcbtable_role)
{
	pg->pg_changes++;
	if (enter)
		LIST_INSERT_HEAD(&it->it_conns[in_connhash(it,
		    &inp->inp_conn) % INPCB_BUCKETS], inp, inp_link);
	else
		LIST_REMOVE(inp, inp_link);
}

/* Locks the group, if there are groups, whose lookups do not lock the table. */
static void
conn_change(struct inpcbtable *it, struct inpcb *inp, bool enter)
    REQUIRES(pcbtable_role)
{
	struct pcbgroup *pg = pcb_hint(it, &inp->inp_conn)->pg;

	if (it->it_divided) {
		rw_wlock(&pg->pg_lock);
		bucket_change(it, pg, inp, enter);
		rw_wunlock(&pg->pg_lock);
	} else
		bucket_change(it, pg, inp, enter);
	if (it->it_ops == NULL)
		return;
	if (enter)
		it->it_ops->po_entered(inp);
	else
		it->it_ops->po_leaving(inp);
}

void
in_pcbenter(struct inpcbtable *it, struct inpcb *inp, bool connected)
{
	const struct in_conninfo *c = &inp->inp_conn;

	KASSERT(c->lport != 0, ("in_pcbenter: no port"));
	KASSERT(inp->inp_port == NULL, ("in_pcbenter: entered already"));
	inp->inp_port = port_get(it, c->lport);
	inp->inp_connected = connected;
	if (connected) {
		inp->inp_port->ipt_conns++;
		conn_change(it, inp, true);
	} else {
		LIST_INSERT_HEAD(&inp->inp_port->ipt_bound, inp, inp_link);
	}
}

void
in_pcbtakeout(struct inpcbtable *it, struct inpcb *inp)
{
	struct inport *ipt = inp->inp_port;

	KASSERT(inp->inp_table == it, ("in_pcbtakeout: wrong table"));
	if (ipt == NULL)
		return;
	if (inp->inp_connected) {
		KASSERT(ipt->ipt_conns > 0, ("in_pcbtakeout: port %u has no "
		    "connection", ntohs(ipt->ipt_port)));
		ipt->ipt_conns--;
		conn_change(it, inp, false);
	} else {
		LIST_REMOVE(inp, inp_link);
	}
	inp->inp_connected = false;
	inp->inp_port = NULL;
	port_put(ipt);
}

bool
in_pcbcovers(const struct inpcb *inp, const struct in6_addr *laddr,
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

/*
 * Acquires a lock that protects a lookup: the table's, or that of a group.
 * Not analysed, because it returns with the lock held.
 */
static struct rwlock *
lookup_lock(struct rwlock *lock) ACQUIRES_SHARED(pcbtable_role)
    NO_LOCK_ANALYSIS
{
	if (__predict_false(rw_rlock(lock)))
		counter_add(&pcbstat.waits, 1);
	return (lock);
}

static void
lookup_unlock(struct rwlock *lock) RELEASES_SHARED(pcbtable_role)
{
	role_drop_shared(&pcbtable_role);
	rw_assert_rlocked(lock);
	rw_runlock(lock);
}

/* The lock for a lookup of a connection. */
static struct rwlock *
conn_lock(struct inpcbtable *it, const struct pcb_hint *ph)
{
	return (it->it_divided ? &ph->pg->pg_lock : &it->it_lock);
}

/* Looks a connection up with po_find, if the table has that operation. */
static bool
find_unlocked(const struct inpcbtable *it, const struct in_conninfo *c,
    struct socket **sop)
{
	return (__predict_false(it->it_ops != NULL) &&
	    it->it_ops->po_find(c, sop));
}

struct socket *
in_pcblookup_conn(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct socket *so = NULL;
	struct pcb_hint *ph;
	struct rwlock *lock;
	struct inpcb *inp;

	if (find_unlocked(it, c, &so))
		return (so);
	ph = pcb_hint(it, c);
	lock = lookup_lock(conn_lock(it, ph));
	inp = hint_find(ph);
	if (inp != NULL) {
		so = inp->inp_socket;
		soref(so);
	}
	lookup_unlock(lock);
	return (so);
}

bool
in_pcbconnected(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct socket *so = NULL;
	struct pcb_hint *ph;
	struct rwlock *lock;
	bool found;

	if (find_unlocked(it, c, &so)) {
		if (so != NULL)
			sorele(so);
		return (so != NULL);
	}
	ph = pcb_hint(it, c);
	lock = lookup_lock(conn_lock(it, ph));
	found = hint_find(ph) != NULL;
	lookup_unlock(lock);
	return (found);
}

/*
 * One of the pcbs that share a port with best (SO_REUSEPORT).  The connection's
 * hash selects it, so that all segments of a handshake come to one listener.
 */
NOINLINE static struct inpcb *
bound_share(const struct inpcbtable *it, const struct inport *ipt,
    struct inpcb *best, const struct in_conninfo *c)
    REQUIRES_SHARED(pcbtable_role)
{
	struct inpcb *inp;
	uint64_t n = 0, chosen;

	for (unsigned pass = 0; ; pass++) {
		chosen = n > 0 ? in_connhash(it, c) % n : UINT64_MAX;
		n = 0;
		LIST_FOREACH(inp, &ipt->ipt_bound, inp_link)
			if ((inp->inp_reuse & SOO_REUSEPORT) != 0 &&
			    inp->inp_listening == best->inp_listening &&
			    inp->inp_family == best->inp_family &&
			    IN6_ARE_ADDR_EQUAL(&inp->inp_conn.laddr,
			    &best->inp_conn.laddr) && n++ == chosen)
				return (inp);
		if (pass > 0)
			return (best);
	}
}

/* The best pcb bound to a packet's destination. */
NOINLINE static struct inpcb *
bound_find(struct inpcbtable *it, const struct in_conninfo *c)
    REQUIRES_SHARED(it->it_lock, pcbtable_role)
{
	struct inport *ipt = in_portfind(it, c->lport);
	struct inpcb *inp, *best = NULL;

	if (ipt == NULL)
		return (NULL);
	LIST_FOREACH(inp, &ipt->ipt_bound, inp_link) {
		if (it->it_stream && !inp->inp_listening)
			continue;
		if (!in_pcbcovers(inp, &inp->inp_conn.laddr, &c->laddr) ||
		    (inp->inp_conn.zone != 0 && inp->inp_conn.zone != c->zone))
			continue;
		/* prefer a pcb bound to this address */
		if (best == NULL || !in_isany(&inp->inp_conn.laddr))
			best = inp;
	}
	return (best != NULL && (best->inp_reuse & SOO_REUSEPORT) ?
	    bound_share(it, ipt, best, c) : best);
}

__hot struct socket *
in_pcblookup(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct socket *so = NULL;
	struct pcb_hint *ph;
	struct rwlock *lock;
	struct inpcb *inp;

	if (find_unlocked(it, c, &so) && so != NULL)
		return (so);
	ph = pcb_hint(it, c);
	lock = lookup_lock(conn_lock(it, ph));
	inp = hint_find(ph);
	if (__predict_false(inp == NULL)) {
		if (lock != &it->it_lock) {
			lookup_unlock(lock);
			lock = lookup_lock(&it->it_lock);
		}
		rw_assert_rlocked(&it->it_lock);
		inp = bound_find(it, c);
	}
	if (inp != NULL) {
		so = inp->inp_socket;
		soref(so);
	}
	lookup_unlock(lock);
	return (so);
}

unsigned
in_pcblookup_all(struct inpcbtable *it, const struct in_conninfo *c,
    struct socket **sos, unsigned max)
{
	struct inport *ipt;
	struct inpcb *inp;
	unsigned n = 0;

	rw_rlock_as(&it->it_lock, &pcbtable_role);
	inp = in_connfind(it, c);
	if (inp != NULL)
		sos[n++] = inp->inp_socket;
	ipt = in_portfind(it, c->lport);
	if (ipt != NULL)
		LIST_FOREACH(inp, &ipt->ipt_bound, inp_link)
			if (in_pcbcovers(inp, &inp->inp_conn.laddr,
			    &c->laddr) && (inp->inp_conn.zone == 0 ||
			    inp->inp_conn.zone == c->zone) && n++ < max)
				sos[n - 1] = inp->inp_socket;
	for (unsigned i = 0; i < n && i < max; i++)
		soref(sos[i]);
	rw_runlock_as(&it->it_lock, &pcbtable_role);
	return (n);
}
