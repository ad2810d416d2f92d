/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw sockets of both families (raw(7), RFC 3542 section 3) and ping sockets
 * (SOCK_DGRAM with IPPROTO_ICMP or IPPROTO_ICMPV6): delivery of packets.
 */
#include <netinet/icmp6.h>
#include <string.h>

#include "netinet/ip_private.h"
#include "netinet/raw_pcb.h"

#define	RAW_MANY	64	/* max sockets that receive one packet */

struct rwlock raw_lock;
struct rawstat rawstat COUNTERS;
static LIST_HEAD(, rawcb) raw_list GUARDED_BY(raw_lock);	/* [r] */
static atomic_u32 raw_count; /* [a] number of raw sockets, usually 0 */

void
raw_input_init(void)
{
	rw_init(&raw_lock, LC_RAW);
}

void
raw_insert(struct rawcb *rc)
{
	rw_wlock_as(&raw_lock, &pcbtable_role);
	LIST_INSERT_HEAD(&raw_list, rc, rc_link);
	rw_wunlock_as(&raw_lock, &pcbtable_role);
	atomic_count_u32(&raw_count, 1);
}

void
raw_remove(struct rawcb *rc)
{
	rw_wlock_as(&raw_lock, &pcbtable_role);
	LIST_REMOVE(rc, rc_link);
	rw_wunlock_as(&raw_lock, &pcbtable_role);
	atomic_count_u32(&raw_count, UINT32_MAX);
}

/* Whether a packet matches the socket's addresses and protocol. */
static bool
raw_matches(const struct rawcb *rc, const struct in_conninfo *c, uint8_t proto)
    REQUIRES_SHARED(raw_lock, pcbtable_role)
{
	const struct in_conninfo *mine = &rc->rc_inp.inp_conn;

	return (rc->rc_proto == proto &&
	    rc->rc_inp.inp_family == in_family(&c->faddr)->af_family &&
	    (in_isany(&mine->laddr) ||
	    IN6_ARE_ADDR_EQUAL(&mine->laddr, &c->laddr)) &&
	    (in_isany(&mine->faddr) ||
	    IN6_ARE_ADDR_EQUAL(&mine->faddr, &c->faddr)) &&
	    (mine->zone == 0 || c->zone == 0 || mine->zone == c->zone));
}

/*
 * Sockets that receive a packet, referenced.  ident 0 finds raw sockets;
 * otherwise the ping socket of that identifier.
 */
static unsigned
raw_lookup(const struct in_conninfo *c, uint8_t proto, in_port_t ident,
    struct socket *sos[RAW_MANY])
{
	struct rawcb *rc;
	unsigned n = 0;

	rw_rlock_as(&raw_lock, &pcbtable_role);
	LIST_FOREACH(rc, &raw_list, rc_link) {
		if (rc->rc_ping != (ident != 0) || (rc->rc_ping &&
		    rc->rc_inp.inp_conn.lport != ident) ||
		    !raw_matches(rc, c, proto))
			continue;
		if (n == RAW_MANY) {
			RAWSTAT_INC(toomany);
			continue;
		}
		sos[n] = rc->rc_inp.inp_socket;
		soref(sos[n++]);
	}
	rw_runlock_as(&raw_lock, &pcbtable_role);
	return (n);
}

/* Whether the socket's filter blocks this type of ICMP or ICMPv6. */
static bool
filtered(const struct rawcb *rc, const struct mbuf *m, unsigned hlen)
    REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	uint8_t type;

	if (rc->rc_ping || m->m_pkthdr.len <= hlen)
		return (false);
	m_copydata(m, hlen, 1, &type);
	if (rc->rc_inp.inp_family == AF_INET)
		return (rc->rc_proto == IPPROTO_ICMP && type < 32 &&
		    (rc->rc_filter4 & 1U << type) != 0);
	return (rc->rc_proto == IPPROTO_ICMPV6 &&
	    !ICMP6_FILTER_WILLPASS(type, &rc->rc_filter6));
}

/* RFC 3542 section 3.1: verifies the checksum if the socket set its offset. */
static bool
checksum_wrong(const struct rawcb *rc, const struct mbuf *m, unsigned hlen)
    REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	if (rc->rc_inp.inp_family == AF_INET || rc->rc_ping ||
	    rc->rc_checksum == NO_CHECKSUM)
		return (false);
	if (m->m_pkthdr.len < hlen + (unsigned)rc->rc_checksum + 2 ||
	    !in_cksum_ok(m, hlen, rc->rc_proto)) {
		RAWSTAT_INC(checksum);
		return (true);
	}
	return (false);
}

static void
raw_append(struct socket *so, const struct mbuf *m, unsigned hlen,
    const struct in_conninfo *c, const struct in_arrival *arrival)
    REQUIRES(so->so_lock)
{
	const struct rawcb *rc = sotorawcb(so);
	const struct in_endpoint from = { c->faddr, 0, c->zone };
	/* raw sockets of IPv4 receive the IP header, too: raw(7) */
	const uint32_t skip = rc->rc_ping || rc->rc_inp.inp_family != AF_INET ?
	    hlen : 0;
	struct socontrol control = { .sc_len = 0 };
	uint32_t keep = m->m_pkthdr.len - skip;
	struct sockname name;

	so_assert_locked(rc->rc_inp.inp_socket);
	if ((so->so_state & SS_CANTRCVMORE) || filtered(rc, m, hlen) ||
	    checksum_wrong(rc, m, hlen) ||
	    !in_mcast_hears(&rc->rc_inp, c, arrival->ia_ifindex))
		return;
	if (__predict_false(so->so_filter != NULL) &&
	    (keep = in_filter(&rc->rc_inp, m, skip, 1)) == 0) {
		RAWSTAT_INC(filtered);
		return;
	}
	in_toname(rc->rc_inp.inp_family, &from, &name);
	in_control_received(&rc->rc_inp, c, arrival, &control);
	if (sbappendaddr(&so->so_rcv, &name, &control, m_copym(m, skip,
	    keep))) {
		RAWSTAT_INC(delivered);
		sorwakeup(so);
	} else {
		RAWSTAT_INC(fullsock);
	}
}

static bool
raw_deliver(const struct mbuf *m, unsigned hlen, uint8_t proto,
    in_port_t ident)
{
	struct socket *sos[RAW_MANY];
	struct in_arrival arrival;
	struct in_conninfo c;
	unsigned n;

	af_endpoints(in_packetfamily(m), m, &c);
	n = raw_lookup(&c, proto, ident, sos);
	if (n > 0)
		in_arrival(m, &arrival);
	for (unsigned i = 0; i < n; i++) {
		mtx_lock(&sos[i]->so_lock);
		if (sos[i]->so_pcb != NULL)
			raw_append(sos[i], m, hlen, &c, &arrival);
		mtx_unlock(&sos[i]->so_lock);
		sorele(sos[i]);
	}
	return (n > 0);
}

bool
raw_input(const struct mbuf *m, unsigned hlen, uint8_t proto)
{
	return (atomic_load_u32(&raw_count) != 0 &&
	    raw_deliver(m, hlen, proto, 0));
}

void
raw_ping_input(const struct mbuf *m, unsigned hlen, uint8_t proto)
{
	in_port_t ident;

	if (atomic_load_u32(&raw_count) == 0)
		return;
	m_copydata(m, hlen + 4, sizeof(ident), &ident);
	if (ident != 0)
		(void)raw_deliver(m, hlen, proto, ident);
}

void
raw_ctlinput(int error, uint8_t proto, const struct in_conninfo *c,
    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *ie)
{
	struct socket *sos[RAW_MANY];
	struct in_conninfo ports = *c;
	in_port_t ident = 0;
	unsigned n;

	if (atomic_load_u32(&raw_count) == 0)
		return;
	ports.lport = ports.fport = 0;
	n = raw_lookup(&ports, proto, 0, sos);
	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
		memcpy(&ident, header + 4, sizeof(ident));
	if (n == 0 && ident != 0)
		n = raw_lookup(&ports, proto, ident, sos);
	for (unsigned i = 0; i < n; i++) {
		struct socket *so = sos[i];
		struct inpcb *inp;

		mtx_lock(&so->so_lock);
		inp = so->so_pcb;
		if (inp != NULL) {
			so_assert_locked(inp->inp_socket);
			in_pcberror(inp, error, &ports, mtu, ie, 0);
		}
		mtx_unlock(&so->so_lock);
		sorele(so);
	}
}
