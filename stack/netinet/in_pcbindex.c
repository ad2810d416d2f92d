/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a table of pcbs, in which bound pcbs are found, and with
 * PCBLOOKUP_ALL connections, too.  It is changed with a lock and read in epochs
 * (kern/epoch.h).
 *
 * An entry has a copy of all that a lookup compares.  It never changes: a pcb
 * that gets another address leaves the index and is entered again.  An entry
 * holds no reference to its socket.  A lookup takes one, unless the last one
 * is gone; the memory of the socket is retired after that (so_retired).
 *
 * Bound pcbs are hashed by port and address.  A lookup searches the packet's
 * address first, then "any".
 */
#include <arpa/inet.h>

#include "kern/epoch_list.h"
#include "kern/planted.h"
#include "kern/socopies.h"
#include "netinet/in_pcbtable.h"

struct pcb_entry {
	struct epoch_link pe_link;	/* [a] in ix_conns or ix_bound */
	struct in_conninfo pe_conn;	/* [I] */
	struct socket	*pe_so;		/* [I] not referenced */
	int		 pe_family;	/* [I] AF_* of the socket */
	bool		 pe_v6only;	/* [I] IPV6_V6ONLY */
	bool		 pe_shared;	/* [I] SO_REUSEPORT at bind time */
};

/*
 * Only this host's programs enter pcbs, so the hashes need no secret to bound
 * the lists.
 */
static uint32_t
slot_of(uint32_t ports, uint32_t addr)
{
	return (((ports ^ addr) * 0x9e3779b1u) >> (32 - PCBINDEX_BITS));
}

static uint32_t
folded(const struct in6_addr *a)
{
	return (ntohl((a->s6_addr32[0] ^ a->s6_addr32[1]) * 31 +
	    (a->s6_addr32[2] ^ a->s6_addr32[3])));
}

static atomic_uptr *
conn_slot(struct inpcbtable *it, const struct in_conninfo *c)
{
	return (&it->it_index.ix_conns[slot_of((uint32_t)ntohs(c->fport) << 16 |
	    ntohs(c->lport), folded(&c->faddr) + folded(&c->laddr) * 31)]);
}

/* "Any" of both families is in one slot. */
static atomic_uptr *
bound_slot(struct inpcbtable *it, in_port_t port, const struct in6_addr *addr)
{
	return (&it->it_index.ix_bound[slot_of(ntohs(port),
	    in_isany(addr) ? 0 : folded(addr))]);
}

void
in_pcbindex_enter(struct inpcbtable *it, struct inpcb *inp)
{
	struct pcb_entry *pe = kmalloc(sizeof(*pe));
	const struct in_conninfo *c = &inp->inp_conn;

	KASSERT(inp->inp_entry == NULL, ("in_pcbindex_enter: twice"));
	pe->pe_conn = *c;
	pe->pe_so = inp->inp_socket;
	pe->pe_family = inp->inp_family;
	pe->pe_v6only = inp->inp_v6only;
	pe->pe_shared = (inp->inp_reuse & SOO_REUSEPORT) != 0;
	if (it->it_lookup != PCBLOOKUP_LOCKS)
		inp->inp_socket->so_retired = true;
	inp->inp_entry = pe;
	mtx_lock(&it->it_index.ix_lock);
	epoch_list_insert(inp->inp_connected ? conn_slot(it, c) :
	    bound_slot(it, c->lport, &c->laddr), &pe->pe_link);
	mtx_unlock(&it->it_index.ix_lock);
}

void
in_pcbindex_leave(struct inpcbtable *it, struct inpcb *inp)
{
	struct pcb_entry *pe = inp->inp_entry;

	if (pe == NULL)
		return;
	inp->inp_entry = NULL;
	mtx_lock(&it->it_index.ix_lock);
	epoch_list_remove(&pe->pe_link);
	mtx_unlock(&it->it_index.ix_lock);
	if (PLANTED(PCB_FREE))
		kfree(pe);
	else
		epoch_call(kfree, pe);
}

static const struct pcb_entry *
entry_of(const struct epoch_link *el)
{
	const struct pcb_entry *pe = container_of(el, struct pcb_entry,
	    pe_link);

	KASSERT(pe->pe_family == AF_INET || pe->pe_family == AF_INET6,
	    ("pcb_entry: family %d", pe->pe_family));
	return (pe);
}

static const struct pcb_entry *
find_conn(struct inpcbtable *it, const struct in_conninfo *c)
{
	struct epoch_link *el;

	EPOCH_LIST_FOREACH(el, conn_slot(it, c)) {
		const struct pcb_entry *pe = entry_of(el);

		if (in_connequal(&pe->pe_conn, c))
			return (pe);
	}
	return (NULL);
}

/* Whether a bound pcb receives packets to c's address and port. */
static bool
hears(const struct pcb_entry *pe, const struct in_conninfo *c)
{
	return (pe->pe_conn.lport == c->lport &&
	    in_covers(pe->pe_v6only, &pe->pe_conn.laddr, &c->laddr) &&
	    (pe->pe_conn.zone == 0 || pe->pe_conn.zone == c->zone));
}

/* Whether two pcbs share a port as far as SO_REUSEPORT shares packets. */
static bool
is_sharer(const struct pcb_entry *pe, const struct pcb_entry *best)
{
	return (pe->pe_shared && pe->pe_family == best->pe_family &&
	    pe->pe_conn.lport == best->pe_conn.lport &&
	    IN6_ARE_ADDR_EQUAL(&pe->pe_conn.laddr, &best->pe_conn.laddr));
}

/*
 * One of the pcbs that share a port with best (SO_REUSEPORT).  The connection's
 * hash selects it, so that all segments of a handshake come to one listener.
 * An entry may leave between the two passes.
 */
NOINLINE static const struct pcb_entry *
share(struct inpcbtable *it, atomic_uptr *slot, const struct pcb_entry *best,
    const struct in_conninfo *c)
{
	struct epoch_link *el;
	uint64_t n = 0, chosen;

	EPOCH_LIST_FOREACH(el, slot)
		n += is_sharer(entry_of(el), best);
	chosen = n > 0 ? in_connhash(it, c) % n : 0;
	EPOCH_LIST_FOREACH(el, slot)
		if (is_sharer(entry_of(el), best) && chosen-- == 0)
			return (entry_of(el));
	return (best);
}

/* The pcb that was bound first to the address, or last to "any". */
static const struct pcb_entry *
find_bound_to(struct inpcbtable *it, const struct in6_addr *addr,
    const struct in_conninfo *c)
{
	atomic_uptr *slot = bound_slot(it, c->lport, addr);
	const struct pcb_entry *best = NULL;
	struct epoch_link *el;

	EPOCH_LIST_FOREACH(el, slot) {
		const struct pcb_entry *pe = entry_of(el);

		if (hears(pe, c) && (best == NULL ||
		    !in_isany(&pe->pe_conn.laddr)))
			best = pe;
	}
	return (best != NULL && best->pe_shared ? share(it, slot, best, c) :
	    best);
}

static const struct pcb_entry *
find_bound(struct inpcbtable *it, const struct in_conninfo *c)
{
	const struct pcb_entry *pe = find_bound_to(it, &c->laddr, c);

	return (pe != NULL ? pe : find_bound_to(it, &in6addr_any, c));
}

struct socket *
in_pcbindex_bound(struct inpcbtable *it, const struct in_conninfo *c)
{
	const struct pcb_entry *pe;
	struct socket *so = NULL;

	epoch_enter();
	pe = find_bound(it, c);
	if (pe != NULL)
		so = socopies_ref(pe->pe_so);
	epoch_exit();
	return (so);
}

struct socket *
in_pcbindex_find(struct inpcbtable *it, const struct in_conninfo *c)
{
	const struct pcb_entry *pe;
	struct socket *so = NULL;

	epoch_enter();
	pe = find_conn(it, c);
	if (pe == NULL)
		pe = find_bound(it, c);
	if (pe != NULL && soref_unless_dying(pe->pe_so))
		so = pe->pe_so;
	epoch_exit();
	return (so);
}
