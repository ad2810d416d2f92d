/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP (RFC 768, RFC 1122 section 4.1): input and the socket operations.
 * UDP-Lite differs in its ports and in the checksum (udplite.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/in_pcb.h"
#include "netinet/udp_var.h"
#include "netinet/udplite.h"

#define	UDP_MANY	64	/* max sockets that receive one datagram */

struct udpstat udpstat COUNTERS;
static struct inpcbtable udp_table, udplite_table;
enum { UDP_GLOBAL, UDP_EPOCH };
static const char *const table_names[] = { "global", "epoch", NULL };
static atomic_u32 udp_lookup = UDP_EPOCH;	/* [I] after boot */
static atomic_u32 udp_recvspace = 1024 * 1024;
static atomic_u32 udp_sendspace = 256 * 1024;

#define	UDP_STAT_OID(name, descr)					\
	{ .oid_name = "net.inet.udp.stats." #name, .oid_type = CTL_U64,	\
	  .oid_ptr = &udpstat.name, .oid_descr = descr },

static const struct sysctl_oid udp_oids[] = {
	{ .oid_name = "net.inet.udp.pcbtable", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &udp_lookup,
	  .oid_names = table_names,
	  .oid_descr = "what a lookup of a socket takes: one lock (global), "
	  "none (epoch)" },
	{ .oid_name = "net.inet.udp.recvspace", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &udp_recvspace,
	  .oid_min = 2048, .oid_max = 16777216,
	  .oid_descr = "receive buffer of a new UDP socket, bytes" },
	{ .oid_name = "net.inet.udp.sendspace", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &udp_sendspace,
	  .oid_min = 2048, .oid_max = 16777216,
	  .oid_descr = "send buffer (max datagram) of a new UDP socket, bytes" },
	UDP_STATS(UDP_STAT_OID)
};

/*
 * Validates the header and removes padding.  Returns the packet, or NULL with
 * m freed.
 */
static struct mbuf *
udp_check(struct mbuf *m, unsigned hlen, struct udphdr *uh)
{
	uint32_t len = m->m_pkthdr.len - hlen, ulen;

	UDPSTAT_INC(received);
	if (len < UDP_HDRLEN)
		goto badlen;
	m_copydata(m, hlen, UDP_HDRLEN, uh);
	ulen = ntohs(uh->uh_ulen);
	if (ulen < UDP_HDRLEN || ulen > len)
		goto badlen;
	if (ulen < len)
		m_adj(m, (int64_t)ulen - (int64_t)len);
	if (uh->uh_sum != 0 && !in_cksum_ok(m, hlen, IPPROTO_UDP)) {
		UDPSTAT_INC(badsum);
		m_freem(m);
		return (NULL);
	}
	return (m);
badlen:
	UDPSTAT_INC(badlen);
	m_freem(m);
	return (NULL);
}

/*
 * UDP_GRO, udp(7): appends a datagram to a queued one of the same sender and
 * segment size.  False, m freed: no room.
 */
static bool
udp_append(const struct inpcb *inp, struct sockbuf *sb,
    const struct sockname *from, const struct socontrol *control,
    struct mbuf *m) REQUIRES(inp->inp_socket->so_lock)
{
	const uint32_t len = m->m_pkthdr.len;

	if (inp->inp_gro && sbmergeaddr(sb, from, control, m))
		return (true);
	if (!sbappendaddr(sb, from, control, m))
		return (false);
	if (inp->inp_gro)
		sb->sb_tail->m_pkthdr.tso_segsz = (uint16_t)len;
	return (true);
}

/* How long the datagrams are that were joined. */
static void
udp_control(const struct mbuf *m, struct socontrol *control)
{
	const int size = m->m_pkthdr.tso_segsz;

	if (size != 0 && m->m_pkthdr.len > (uint32_t)size)
		socontrol_add(control, IPPROTO_UDP, UDP_GRO, &size,
		    sizeof(size));
}

/* Whether the socket's filter drops the datagram, which it may cut. */
__cold static bool
udp_filtered(const struct inpcb *inp, struct mbuf *m, uint32_t hlen)
    REQUIRES(inp->inp_socket->so_lock)
{
	const uint32_t keep = in_filter(inp, m, hlen, UDP_HDRLEN);

	if (keep == 0)
		UDPSTAT_INC(filtered);
	else
		m_adj(m, -(int64_t)(m->m_pkthdr.len - hlen - keep));
	return (keep == 0);
}

/*
 * Whether the socket takes a datagram whose checksum covers only a part, or
 * which has none although its IP header has none either (RFC 6936).
 */
__cold static bool
udp_unchecked(const struct inpcb *inp, const struct in_arrival *arrival)
    REQUIRES(inp->inp_socket->so_lock)
{
	if (arrival->ia_nochecksum && !inp->inp_nocheck6_rx) {
		UDPSTAT_INC(badsum);
		return (false);
	}
	return (arrival->ia_coverage == 0 ||
	    udplite_accepts(inp, arrival->ia_coverage));
}

/* The datagram has hlen bytes of IP headers. */
static void
udp_receive(struct socket *so, struct inpcb *inp, struct mbuf *m,
    uint32_t hlen, const struct in_conninfo *c,
    const struct in_arrival *arrival) REQUIRES(so->so_lock)
{
	const struct in_endpoint from = { c->faddr, c->fport, c->zone };
	struct socontrol control;
	struct sockname name;

	so_assert_locked(inp->inp_socket);
	if (!in_mcast_hears(inp, c, arrival->ia_ifindex) ||
	    (__predict_false(arrival->ia_coverage != 0 ||
	    arrival->ia_nochecksum) && !udp_unchecked(inp, arrival)) ||
	    (__predict_false(so->so_filter != NULL) &&
	    udp_filtered(inp, m, hlen))) {
		m_freem(m);
		return;
	}
	m_adj(m, (int64_t)(hlen + UDP_HDRLEN));
	in_toname(so->so_proto->pr_domain, &from, &name);
	control.sc_len = 0;
	in_control_received(inp, c, arrival, &control);
	if (udp_append(inp, &so->so_rcv, &name, &control, m)) {
		UDPSTAT_INC(delivered);
		sorwakeup(so);
	} else {
		UDPSTAT_INC(fullsock);
	}
}

static void
udp_deliver(struct socket *so, struct mbuf *m, uint32_t hlen,
    const struct in_conninfo *c, const struct in_arrival *arrival)
{
	mtx_lock(&so->so_lock);
	if (so->so_pcb != NULL)
		udp_receive(so, so->so_pcb, m, hlen, c, arrival);
	else
		m_freem(m);
	mtx_unlock(&so->so_lock);
}

/*
 * Delivers a multicast or broadcast datagram to every socket bound to the
 * port.
 */
static void
udp_input_many(struct inpcbtable *table, struct mbuf *m, uint32_t hlen,
    const struct in_conninfo *c, const struct in_arrival *arrival)
{
	struct socket *sos[UDP_MANY];
	unsigned n = in_pcblookup_all(table, c, sos, UDP_MANY);

	if (n == 0)
		UDPSTAT_INC(noportbcast);
	for (; n > UDP_MANY; n--)
		UDPSTAT_INC(toomany);
	for (unsigned i = 0; i < n; i++) {
		udp_deliver(sos[i], m_copym(m, 0, m->m_pkthdr.len), hlen, c,
		    arrival);
		sorele(sos[i]);
	}
	m_freem(m);
}

/* Delivers a valid datagram to the sockets of a table. */
static void
udp_demux(struct inpcbtable *table, struct mbuf *m, unsigned hlen,
    const struct udphdr *uh, uint16_t coverage)
{
	const struct in_family *af = in_packetfamily(m);
	struct in_arrival arrival;
	struct in_conninfo c;
	struct socket *so;

	af_endpoints(af, m, &c);
	c.lport = uh->uh_dport;
	c.fport = uh->uh_sport;
	in_arrival(m, &arrival);
	arrival.ia_coverage = coverage;
	arrival.ia_nochecksum = uh->uh_sum == 0 && af != &in4_family;
	if (af_ismany(af, m, &c.laddr)) {
		udp_input_many(table, m, hlen, &c, &arrival);
		return;
	}
	so = in_pcblookup(table, &c);
	if (so != NULL) {
		udp_deliver(so, m, hlen, &c, &arrival);
		sorele(so);
	} else if (arrival.ia_nochecksum) {
		UDPSTAT_INC(badsum);
		m_freem(m);
	} else {
		UDPSTAT_INC(noport);
		af->af_portunreach(m);
	}
}

static void
udp_input(struct mbuf *m, unsigned hlen)
{
	struct udphdr uh;

	m = udp_check(m, hlen, &uh);
	if (m != NULL)
		udp_demux(&udp_table, m, hlen, &uh, 0);
}

static void
udplite_input(struct mbuf *m, unsigned hlen)
{
	uint16_t coverage;
	struct udphdr uh;

	UDPSTAT_INC(received);
	if (udplite_valid(m, hlen, &uh, &coverage)) {
		udp_demux(&udplite_table, m, hlen, &uh, coverage);
	} else {
		UDPSTAT_INC(badsum);
		m_freem(m);
	}
}

/* Whether the socket is connected, and c is its connection. */
static bool
udp_sends(const struct inpcb *inp, const struct in_conninfo *c)
    REQUIRES(inp->inp_socket->so_lock)
{
	return (inp->inp_connected && inp->inp_conn.fport == c->fport &&
	    IN6_ARE_ADDR_EQUAL(&inp->inp_conn.faddr, &c->faddr));
}

/*
 * RFC 1122 section 4.1.3.3: an ICMP error is reported to a connected socket,
 * or to one that enabled such errors.  The path's MTU is kept only for a
 * connected one: a host that knows a port of another can quote any destination.
 */
static void
udp_error(struct inpcbtable *table, int error, const struct in_conninfo *c,
    uint32_t mtu, const struct in_icmperr *ie)
{
	struct socket *so = in_pcblookup(table, c);
	struct inpcb *inp;

	if (so == NULL)
		return;
	mtx_lock(&so->so_lock);
	inp = so->so_pcb;
	if (inp != NULL) {
		so_assert_locked(inp->inp_socket);
		if (error == EMSGSIZE && mtu != 0 && udp_sends(inp, c))
			in_pmtu_update(&c->faddr, c->zone, mtu);
		in_pcberror(inp, error, c, mtu, ie, UDP_HDRLEN);
	}
	mtx_unlock(&so->so_lock);
	sorele(so);
}

static void
udp_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	(void)header;
	udp_error(&udp_table, error, c, mtu, ie);
}

static void
udplite_ctlinput(int error, const struct in_conninfo *c,
    const uint8_t *header, uint32_t mtu, const struct in_icmperr *ie)
{
	(void)header;
	udp_error(&udplite_table, error, c, mtu, ie);
}

bool
udp_islite(const struct inpcb *inp)
{
	return (inp->inp_table == &udplite_table);
}

static int
udp_attach(struct socket *so) REQUIRES(so->so_lock)
{
	struct inpcb *inp = kmalloc(sizeof(*inp));

	in_pcbinit(inp, so, so->so_proto->pr_protocol == IPPROTO_UDPLITE ?
	    &udplite_table : &udp_table);
	soref(so);
	so->so_pcb = inp;
	soreserve(so, atomic_load_u32(&udp_sendspace),
	    atomic_load_u32(&udp_recvspace));
	return (0);
}

static void
udp_detach(struct socket *so) REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;

	so_assert_locked(inp->inp_socket);
	in_mcast_free(inp);
	in_pcbremove(inp);
	so->so_pcb = NULL;
	kfree(inp);
	sorele(so);
}

static int
udp_bind(struct socket *so, const struct sockname *name)
    REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;
	struct in_endpoint ep;
	int error = in_bindname(inp->inp_family, name, &ep);

	so_assert_locked(inp->inp_socket);
	return (error != 0 ? error : in_pcbbind(inp, &ep));
}

static int
udp_connect(struct socket *so, const struct sockname *name, int flags)
    REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;
	struct in_endpoint ep;
	int error;

	(void)flags;
	if (inp == NULL)
		return (EINVAL);
	so_assert_locked(inp->inp_socket);
	if (name != NULL &&
	    (error = in_fromname(inp->inp_family, name, &ep)) != 0)
		return (error);
	if (inp->inp_connected && name == NULL)
		in_pcbdissolve(inp);
	else if (inp->inp_connected)
		in_pcbdisconnect(inp);
	so->so_state &= ~(unsigned)SS_ISCONNECTED;
	so->so_error = 0;
	if (name == NULL)
		return (0);
	if (!inp->inp_entered && (error = in_pcbbind(inp, NULL)) != 0)
		return (error);
	error = in_pcbconnect(inp, &ep);
	if (error == 0)
		so->so_state |= SS_ISCONNECTED;
	return (error);
}

static int
udp_shutdown(struct socket *so)
{
	socantsendmore(so);
	return (0);
}

static void
udp_rcvd(struct socket *so)
{
	(void)so;
}

static int
udp_setown(struct inpcb *inp, int name, const void *val, socklen_t len)
    REQUIRES(inp->inp_socket->so_lock)
{
	int num;

	if (len < sizeof(num))
		return (EINVAL);
	memcpy(&num, val, sizeof(num));
	if (name == UDP_GRO) {
		inp->inp_gro = num != 0;
		return (0);
	}
	if (name == UDP_NO_CHECK6_TX) {
		inp->inp_nocheck6_tx = num != 0;
		return (0);
	}
	if (name == UDP_NO_CHECK6_RX) {
		inp->inp_nocheck6_rx = num != 0;
		return (0);
	}
	if (name != UDP_SEGMENT)
		return (udp_islite(inp) ? udplite_setopt(inp, name, num) :
		    ENOPROTOOPT);
	if (num < 0 || num > UINT16_MAX)
		return (EINVAL);
	inp->inp_segment = (uint16_t)num;
	return (0);
}

static int
udp_setopt(struct socket *so, int level, int name, const void *val,
    socklen_t len) REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;

	so_assert_locked(inp->inp_socket);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return (in_pcbsetopt(inp, level, name, val, len));
	if (level == so->so_proto->pr_protocol || level == IPPROTO_UDP)
		return (udp_setown(inp, name, val, len));
	return (level == SOL_SOCKET ? 0 : ENOPROTOOPT);
}

static int
udp_getopt(struct socket *so, int level, int name, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;
	int num;

	so_assert_locked(inp->inp_socket);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return (in_pcbgetopt(inp, level, name, val, len));
	if (level != so->so_proto->pr_protocol && level != IPPROTO_UDP)
		return (ENOPROTOOPT);
	if (name == UDP_SEGMENT)
		num = inp->inp_segment;
	else if (name == UDP_GRO)
		num = inp->inp_gro;
	else if (name == UDP_NO_CHECK6_TX)
		num = inp->inp_nocheck6_tx;
	else if (name == UDP_NO_CHECK6_RX)
		num = inp->inp_nocheck6_rx;
	else if (!udp_islite(inp) || udplite_getopt(inp, name, &num) != 0)
		return (ENOPROTOOPT);
	if (*len > sizeof(num))
		*len = sizeof(num);
	memcpy(val, &num, *len);
	return (0);
}

static int
udp_sockaddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	return (in_pcbsockaddr(so->so_pcb, name));
}

static int
udp_peeraddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	return (in_pcbpeeraddr(so->so_pcb, name));
}

static const struct protosw udp_protosw = {
	.pr_name = "udp",
	.pr_domain = AF_INET,
	.pr_type = SOCK_DGRAM,
	.pr_protocol = IPPROTO_UDP,
	.pr_namelen = sizeof(struct sockaddr_in),
	.pr_attach = udp_attach,
	.pr_detach = udp_detach,
	.pr_abort = udp_detach,
	.pr_bind = udp_bind,
	.pr_connect = udp_connect,
	.pr_shutdown = udp_shutdown,
	.pr_rcvd = udp_rcvd,
	.pr_send = udp_send,
	.pr_sendname = udp_sendname,
	.pr_setopt = udp_setopt,
	.pr_getopt = udp_getopt,
	.pr_sockaddr = udp_sockaddr,
	.pr_peeraddr = udp_peeraddr,
	.pr_control = udp_control,
};

/* [I] after boot */
static struct protosw udp6_protosw, udplite_protosw, udplite6_protosw;

/* Derives a protocol from UDP and registers it. */
static void
udp_variant(struct protosw *pr, const char *name, int protocol, int domain)
{
	*pr = udp_protosw;
	pr->pr_name = name;
	pr->pr_protocol = protocol;
	pr->pr_domain = domain;
	if (domain == AF_INET6)
		pr->pr_namelen = sizeof(struct sockaddr_in6);
	protosw_register(pr);
}

void
udp_init(void)
{
	giant_component("udp");
	in_pcbtable_init(&udp_table, "udp", false);
	in_pcbtable_init(&udplite_table, "udplite", false);
	sysctl_register(udp_oids, nitems(udp_oids));
	protosw_register(&udp_protosw);
	udp_variant(&udp6_protosw, "udp6", IPPROTO_UDP, AF_INET6);
	udp_variant(&udplite_protosw, "udplite", IPPROTO_UDPLITE, AF_INET);
	udp_variant(&udplite6_protosw, "udplite6", IPPROTO_UDPLITE, AF_INET6);
	in_proto_register(IPPROTO_UDP, udp_input, udp_ctlinput);
	in_proto_register(IPPROTO_UDPLITE, udplite_input, udplite_ctlinput);
}

int
udp_start(void)
{
	const enum pcb_lookup lookup = atomic_load_u32(&udp_lookup) ==
	    UDP_EPOCH ? PCBLOOKUP_ALL : PCBLOOKUP_LOCKS;

	udp_table.it_lookup = udplite_table.it_lookup = lookup;
	return (0);
}
