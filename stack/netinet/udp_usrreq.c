/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP (RFC 768, RFC 1122 section 4.1): input, output and the socket
 * operations.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/in_pcb.h"
#include "netinet/udp_var.h"

#define	UDP_HDRLEN	sizeof(struct udphdr)
#define	UDP_SEGMENTS_MAX 128	/* segments of one write, as in Linux */
#define	UDP_MANY	64	/* max sockets that receive one datagram */

struct udpstat udpstat COUNTERS;
static struct inpcbtable udp_table;
static atomic_u32 udp_recvspace = 1024 * 1024;
static atomic_u32 udp_sendspace = 256 * 1024;

#define	UDP_STAT_OID(name, descr)					\
	{ .oid_name = "net.inet.udp.stats." #name, .oid_type = CTL_U64,	\
	  .oid_ptr = &udpstat.name, .oid_descr = descr },

static const struct sysctl_oid udp_oids[] = {
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
	/* zero: no checksum, which IPv6 forbids (RFC 8200 section 8.1) */
	if (uh->uh_sum == 0 ? in_packetfamily(m) != &in4_family :
	    !in_cksum_ok(m, hlen, IPPROTO_UDP)) {
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

static void
udp_receive(struct socket *so, struct inpcb *inp, struct mbuf *m,
    const struct in_conninfo *c, const struct in_arrival *arrival)
    REQUIRES(so->so_lock)
{
	const struct in_endpoint from = { c->faddr, c->fport, c->zone };
	struct socontrol control;
	struct sockname name;

	so_assert_locked(inp->inp_socket);
	if (!in_mcast_hears(inp, c, arrival->ia_ifindex)) {
		m_freem(m);
		return;
	}
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
udp_deliver(struct socket *so, struct mbuf *m, const struct in_conninfo *c,
    const struct in_arrival *arrival)
{
	mtx_lock(&so->so_lock);
	if (so->so_pcb != NULL)
		udp_receive(so, so->so_pcb, m, c, arrival);
	else
		m_freem(m);
	mtx_unlock(&so->so_lock);
}

/*
 * Delivers a multicast or broadcast datagram to every socket bound to the
 * port.
 */
static void
udp_input_many(struct mbuf *m, const struct in_conninfo *c,
    const struct in_arrival *arrival)
{
	struct socket *sos[UDP_MANY];
	unsigned n = in_pcblookup_all(&udp_table, c, sos, UDP_MANY);

	if (n == 0)
		UDPSTAT_INC(noportbcast);
	for (; n > UDP_MANY; n--)
		UDPSTAT_INC(toomany);
	for (unsigned i = 0; i < n; i++) {
		udp_deliver(sos[i], m_copym(m, 0, m->m_pkthdr.len), c,
		    arrival);
		sorele(sos[i]);
	}
	m_freem(m);
}

static void
udp_input(struct mbuf *m, unsigned hlen)
{
	const struct in_family *af;
	struct in_arrival arrival;
	struct in_conninfo c;
	struct udphdr uh;
	struct socket *so;

	m = udp_check(m, hlen, &uh);
	if (m == NULL)
		return;
	af = in_packetfamily(m);
	af_endpoints(af, m, &c);
	c.lport = uh.uh_dport;
	c.fport = uh.uh_sport;
	in_arrival(m, &arrival);
	if (af_ismany(af, m, &c.laddr)) {
		m_adj(m, (int64_t)(hlen + UDP_HDRLEN));
		udp_input_many(m, &c, &arrival);
		return;
	}
	so = in_pcblookup(&udp_table, &c);
	if (so != NULL) {
		m_adj(m, (int64_t)(hlen + UDP_HDRLEN));
		udp_deliver(so, m, &c, &arrival);
		sorele(so);
	} else {
		UDPSTAT_INC(noport);
		af->af_portunreach(m);
	}
}

/*
 * RFC 1122 section 4.1.3.3: an ICMP error is reported to a connected socket,
 * or to one that enabled such errors.
 */
static void
udp_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	struct socket *so = in_pcblookup(&udp_table, c);
	struct inpcb *inp;

	(void)header;
	if (so == NULL)
		return;
	mtx_lock(&so->so_lock);
	inp = so->so_pcb;
	if (inp != NULL) {
		so_assert_locked(inp->inp_socket);
		in_pcberror(inp, error, c, mtu, ie, UDP_HDRLEN);
	}
	mtx_unlock(&so->so_lock);
	sorele(so);
}

static int
udp_attach(struct socket *so) REQUIRES(so->so_lock)
{
	struct inpcb *inp = kmalloc(sizeof(*inp));

	in_pcbinit(inp, so, &udp_table);
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
	int error = in_fromname(inp->inp_family, name, &ep);

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
	if (inp->inp_port == NULL && (error = in_pcbbind(inp, NULL)) != 0)
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

/* Prepends the header; the device computes the checksum.  Consumes m. */
static int
udp_output(struct mbuf *m, const struct in_conninfo *c,
    const struct ip_sendopts *opts)
{
	const struct in_family *af = in_family(&c->faddr);
	struct udphdr *uh;
	uint32_t len = m->m_pkthdr.len + (uint32_t)UDP_HDRLEN;

	m = m_prepend(m, UDP_HDRLEN);
	uh = mtod(m, struct udphdr *);
	uh->uh_sport = c->lport;
	uh->uh_dport = c->fport;
	uh->uh_ulen = htons((uint16_t)len);
	uh->uh_sum = af_pseudo(af, c, IPPROTO_UDP, len);
	m->m_pkthdr.csum_flags = CSUM_TX;
	m->m_pkthdr.csum_start = 0;
	m->m_pkthdr.csum_offset = offsetof(struct udphdr, uh_sum);
	UDPSTAT_INC(sent);
	return (af_output(af, m, c, IPPROTO_UDP, opts));
}

/* The addresses of a datagram to be sent. */
static int
udp_route(struct inpcb *inp, const struct sockname *to, struct in_conninfo *c)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_endpoint ep = { inp->inp_conn.faddr, inp->inp_conn.fport,
	    inp->inp_conn.zone };
	struct sockname inet;
	int error;

	if (to != NULL) {
		/* Linux treats AF_UNSPEC as AF_INET here */
		if (to->sn_sa.sa_family == AF_UNSPEC) {
			inet = *to;
			inet.sn_sa.sa_family = AF_INET;
			to = &inet;
		}
		error = in_fromname(inp->inp_family, to, &ep);
		if (error != 0)
			return (error);
		if (ep.port == 0)
			return (EINVAL);
	} else if (!inp->inp_connected) {
		return (EDESTADDRREQ);
	}
	error = in_pcbroute(inp, &ep, c);
	/* sending binds an unbound socket */
	if (error == 0 && inp->inp_port == NULL)
		error = in_pcbbind(inp, NULL);
	c->lport = inp->inp_conn.lport;
	return (error);
}

/* The segment size of a write, as in udp(7); 0: one datagram. */
static int
udp_segment(const struct inpcb *inp, const struct msghdr *msg,
    const struct in_conninfo *c, uint32_t len, uint16_t *size)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_family *af = in_family(&c->faddr);
	const struct cmsghdr *cm = NULL;
	struct in6_addr src;
	uint32_t mtu;
	int error;

	*size = inp->inp_segment;
	while ((cm = socontrol_next(msg, cm, &error)) != NULL) {
		if (cm->cmsg_level != IPPROTO_UDP ||
		    cm->cmsg_type != UDP_SEGMENT)
			continue;
		if (cm->cmsg_len != CMSG_LEN(sizeof(*size)))
			return (EINVAL);
		memcpy(size, CMSG_DATA(cm), sizeof(*size));
	}
	if (*size >= len)
		*size = 0;
	if (*size != 0 && (len > (uint32_t)*size * UDP_SEGMENTS_MAX ||
	    !af->af_route(c, &src, &mtu) ||
	    *size + UDP_HDRLEN + af->af_hdrlen > mtu))
		return (EINVAL);
	return (error);
}

/* Sends datagrams of the segment size; the last may be shorter.  Consumes m. */
static int
udp_output_segments(struct mbuf *m, const struct in_conninfo *c,
    const struct ip_sendopts *opts, uint16_t size)
{
	const uint32_t len = m->m_pkthdr.len;
	uint32_t off, n;
	int error = 0;

	for (off = 0; off < len && error == 0; off += n) {
		n = len - off < size ? len - off : size;
		error = udp_output(m_copym(m, off, n), c, opts);
	}
	m_freem(m);
	return (error);
}

static int
udp_send(struct socket *so, struct mbuf *m, const struct sockname *to,
    const struct msghdr *msg, int flags) REQUIRES(so->so_lock)
{
	struct inpcb *inp = so->so_pcb;
	struct ip_sendopts opts;
	struct in_conninfo c;
	uint16_t size = 0;
	int error;

	(void)flags;
	if (inp == NULL)
		error = EBADF;
	else if (m->m_pkthdr.len > IP_MAXPACKET - 20 - UDP_HDRLEN)
		error = EMSGSIZE;
	else {
		so_assert_locked(inp->inp_socket);
		error = udp_route(inp, to, &c);
	}
	if (error == 0) {
		so_assert_locked(inp->inp_socket);
		opts = inp->inp_opts;
		opts.broadcast = (so->so_options & SOO_BROADCAST) != 0;
		if (in_isgroup(&c.faddr))
			in_mcast_sendopts(inp, &opts);
		error = in_control_send(inp, msg, &c, &opts);
	}
	if (error == 0) {
		so_assert_locked(inp->inp_socket);
		error = udp_segment(inp, msg, &c, m->m_pkthdr.len, &size);
	}
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	return (size != 0 ? udp_output_segments(m, &c, &opts, size) :
	    udp_output(m, &c, &opts));
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
	if (name != UDP_SEGMENT)
		return (ENOPROTOOPT);
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
	if (level == IPPROTO_UDP)
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
	if (level != IPPROTO_UDP || (name != UDP_SEGMENT && name != UDP_GRO))
		return (ENOPROTOOPT);
	num = name == UDP_SEGMENT ? inp->inp_segment : inp->inp_gro;
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
	.pr_setopt = udp_setopt,
	.pr_getopt = udp_getopt,
	.pr_sockaddr = udp_sockaddr,
	.pr_peeraddr = udp_peeraddr,
	.pr_control = udp_control,
};

static struct protosw udp6_protosw;	/* [I] after boot */

void
udp_init(void)
{
	giant_component("udp");
	in_pcbtable_init(&udp_table, "udp", false);
	sysctl_register(udp_oids, nitems(udp_oids));
	udp6_protosw = udp_protosw;
	udp6_protosw.pr_name = "udp6";
	udp6_protosw.pr_domain = AF_INET6;
	udp6_protosw.pr_namelen = sizeof(struct sockaddr_in6);
	protosw_register(&udp_protosw);
	protosw_register(&udp6_protosw);
	in_proto_register(IPPROTO_UDP, udp_input, udp_ctlinput);
}
