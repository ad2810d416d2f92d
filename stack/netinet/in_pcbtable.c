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
	mtx_init(&it->it_index.ix_lock, LC_PCBGROUP);
	rw_init(&it->it_whole.pg_lock, LC_PCBGROUP);
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
	it->it_parts = kmalloc_aligned(INPORT_PARTS * sizeof(*it->it_parts),
	    _Alignof(struct pcbports));
	for (unsigned i = 0; i < INPORT_PARTS; i++)
		rw_init(&it->it_parts[i].pp_lock, LC_PCBTABLE);
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

/* The socket of a connection, referenced, or NULL. */
static struct socket *
hint_socket(struct pcb_hint *ph) REQUIRES_SHARED(pcbtable_role)
{
	struct inpcb *inp = hint_find(ph);

	if (__predict_false(inp == NULL))
		return (NULL);
	soref(inp->inp_socket);
	return (inp->inp_socket);
}

/* Ports in one bucket are in one part. */
_Static_assert(INPORT_BUCKETS % INPORT_PARTS == 0, "a bucket of two parts");
struct rwlock *
in_portlock(struct inpcbtable *it, in_port_t port)
{
	return (it->it_divided ?
	    &it->it_parts[ntohs(port) % INPORT_PARTS].pp_lock : &it->it_lock);
}

bool
in_portconnected(struct inpcbtable *it, in_port_t port)
{
	return (atomic_load_u32(&it->it_nconns[ntohs(port)]) > 0);
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
port_get(struct inpcbtable *it, in_port_t port) REQUIRES(pcbtable_role)
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
	if (LIST_EMPTY(&ipt->ipt_bound)) {
		LIST_REMOVE(ipt, ipt_hash);
		kfree(ipt);
	}
}

/* False: the connection exists. */
static bool
conn_enter(struct inpcbtable *it, struct inpcb *inp) REQUIRES(pcbtable_role)
{
	const struct in_conninfo *c = &inp->inp_conn;
	struct pcb_hint *ph = pcb_hint(it, c);
	struct pcbgroup *pg = ph->pg;
	bool exists;

	rw_wlock(&pg->pg_lock);
	exists = hint_find(ph) != NULL;
	if (!exists) {
		pg->pg_changes++;
		LIST_INSERT_HEAD(&it->it_conns[in_connhash(it, c) %
		    INPCB_BUCKETS], inp, inp_link);
	}
	rw_wunlock(&pg->pg_lock);
	if (!exists)
		atomic_fetchadd_u32(&it->it_nconns[ntohs(c->lport)], 1);
	return (!exists);
}

static void
conn_leave(struct inpcbtable *it, struct inpcb *inp) REQUIRES(pcbtable_role)
{
	const struct in_conninfo *c = &inp->inp_conn;
	struct pcbgroup *pg = pcb_hint(it, c)->pg;

	if (it->it_ops != NULL)
		it->it_ops->po_leaving(inp);
	rw_wlock(&pg->pg_lock);
	pg->pg_changes++;
	LIST_REMOVE(inp, inp_link);
	rw_wunlock(&pg->pg_lock);
	KASSERT(in_portconnected(it, c->lport), ("conn_leave: port %u has no "
	    "connection", ntohs(c->lport)));
	atomic_fetchadd_u32(&it->it_nconns[ntohs(c->lport)], UINT32_MAX);
}

bool
in_pcbenter(struct inpcbtable *it, struct inpcb *inp, bool connected)
{
	const struct in_conninfo *c = &inp->inp_conn;

	KASSERT(c->lport != 0, ("in_pcbenter: no port"));
	KASSERT(!inp->inp_entered, ("in_pcbenter: entered already"));
	inp->inp_connected = connected;
	if (connected && !conn_enter(it, inp)) {
		inp->inp_connected = false;
		return (false);
	}
	inp->inp_entered = true;
	if (connected && it->it_ops != NULL)
		it->it_ops->po_entered(inp);
	if (!connected) {
		inp->inp_port = port_get(it, c->lport);
		LIST_INSERT_HEAD(&inp->inp_port->ipt_bound, inp, inp_link);
	}
	if (connected ? it->it_lookup == PCBLOOKUP_ALL : !it->it_stream)
		in_pcbindex_enter(it, inp);
	return (true);
}

void
in_pcbtakeout(struct inpcbtable *it, struct inpcb *inp)
{
	KASSERT(inp->inp_table == it, ("in_pcbtakeout: wrong table"));
	if (!inp->inp_entered)
		return;
	in_pcbindex_leave(it, inp);
	if (inp->inp_connected) {
		conn_leave(it, inp);
	} else {
		LIST_REMOVE(inp, inp_link);
		port_put(inp->inp_port);
	}
	inp->inp_entered = inp->inp_connected = inp->inp_listening = false;
	inp->inp_port = NULL;
}

bool
in_covers(bool v6only, const struct in6_addr *laddr,
    const struct in6_addr *addr)
{
	if (IN6_ARE_ADDR_EQUAL(laddr, addr))
		return (true);
	if (!in_isany(laddr))
		return (false);
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return (IN6_IS_ADDR_V4MAPPED(laddr) || !v6only);
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

	if (find_unlocked(it, c, &so))
		return (so);
	ph = pcb_hint(it, c);
	lock = lookup_lock(conn_lock(it, ph));
	so = hint_socket(ph);
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

/* The socket bound to a packet's destination, in a table with groups. */
NOINLINE static struct socket *
find_bound(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct rwlock *lock;
	struct socket *so;

	if (it->it_lookup != PCBLOOKUP_LOCKS)
		return (in_pcbindex_bound(it, c));
	lock = lookup_lock(in_portlock(it, c->lport));
	so = in_pcbindex_bound(it, c);
	lookup_unlock(lock);
	return (so);
}

/*
 * Looks up with locks.  A lookup in epochs comes here if it has found nothing:
 * the pcb may be about to move in the table (connect(2)).
 */
__hot static struct socket *
find_locked(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct pcb_hint *ph = pcb_hint(it, c);
	struct rwlock *lock = lookup_lock(conn_lock(it, ph));
	struct socket *so = hint_socket(ph);

	if (so == NULL && !it->it_divided)
		so = in_pcbindex_bound(it, c);
	lookup_unlock(lock);
	return (__predict_true(so != NULL) || !it->it_divided ? so :
	    find_bound(it, c));
}

__hot struct socket *
in_pcblookup(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct socket *so = NULL;

	if (it->it_lookup == PCBLOOKUP_ALL)
		so = in_pcbindex_find(it, c);
	else
		(void)find_unlocked(it, c, &so);
	return (so != NULL ? so : find_locked(it, c));
}

unsigned
in_pcblookup_all(struct inpcbtable *it, const struct in_conninfo *c,
    struct socket **sos, unsigned max)
{
	struct inport *ipt;
	struct inpcb *inp;
	unsigned n = 0;

	KASSERT(!it->it_divided, ("in_pcblookup_all: %s", it->it_name));
	rw_rlock_as(&it->it_lock, &pcbtable_role);
	inp = hint_find(pcb_hint(it, c));
	if (inp != NULL)
		sos[n++] = inp->inp_socket;
	ipt = in_portfind(it, c->lport);
	if (ipt != NULL)
		LIST_FOREACH(inp, &ipt->ipt_bound, inp_link)
			if (in_covers(inp->inp_v6only, &inp->inp_conn.laddr,
			    &c->laddr) && (inp->inp_conn.zone == 0 ||
			    inp->inp_conn.zone == c->zone) && n++ < max)
				sos[n - 1] = inp->inp_socket;
	for (unsigned i = 0; i < n && i < max; i++)
		soref(sos[i]);
	rw_runlock_as(&it->it_lock, &pcbtable_role);
	return (n);
}
