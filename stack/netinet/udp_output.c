/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of UDP (RFC 768) and UDP-Lite: a write is one datagram, or many of one
 * size (UDP_SEGMENT, udp(7)).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "netinet/in_pcb.h"
#include "netinet/udp_var.h"
#include "netinet/udplite.h"

#define	UDP_SEGMENTS_MAX 128	/* segments of one write, as in Linux */

/*
 * Prepends the header.  The device computes the checksum of UDP, unless the
 * datagram has none (opts->nochecksum).  Consumes m.
 */
static int
udp_output(const struct inpcb *inp, struct mbuf *m,
    const struct in_conninfo *c, const struct ip_sendopts *opts)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_family *af = in_family(&c->faddr);
	struct udphdr *uh;
	uint32_t len = m->m_pkthdr.len + (uint32_t)UDP_HDRLEN;

	m = m_prepend(m, UDP_HDRLEN);
	uh = mtod(m, struct udphdr *);
	uh->uh_sport = c->lport;
	uh->uh_dport = c->fport;
	uh->uh_ulen = htons((uint16_t)len);
	uh->uh_sum = 0;
	m->m_pkthdr.csum_flags = 0;
	UDPSTAT_INC(sent);
	if (__predict_false(udp_islite(inp))) {
		udplite_seal(inp, m, c);
		return (af_output(af, m, c, IPPROTO_UDPLITE, opts));
	}
	if (!opts->nochecksum) {
		uh->uh_sum = af_pseudo(af, c, IPPROTO_UDP, len);
		m->m_pkthdr.csum_flags = CSUM_TX;
		m->m_pkthdr.csum_start = 0;
		m->m_pkthdr.csum_offset = offsetof(struct udphdr, uh_sum);
	}
	return (af_output(af, m, c, IPPROTO_UDP, opts));
}

/* Where a datagram for a name goes to. */
static int
udp_target(const struct inpcb *inp, const struct sockname *to,
    struct in_endpoint *ep)
{
	struct sockname inet;
	int error;

	/* Linux treats AF_UNSPEC as AF_INET here */
	if (to->sn_sa.sa_family == AF_UNSPEC) {
		inet = *to;
		inet.sn_sa.sa_family = AF_INET;
		to = &inet;
	}
	error = in_fromname(inp->inp_family, to, ep);
	return (error == 0 && ep->port == 0 ? EINVAL : error);
}

int
udp_sendname(const struct socket *so, const struct sockname *to)
    REQUIRES(so->so_lock)
{
	struct in_endpoint ep;

	return (so->so_pcb == NULL ? EBADF : udp_target(so->so_pcb, to, &ep));
}

/* The addresses of a datagram to be sent. */
static int
udp_route(struct inpcb *inp, const struct sockname *to, struct in_conninfo *c)
    REQUIRES(inp->inp_socket->so_lock)
{
	struct in_endpoint ep = { inp->inp_conn.faddr, inp->inp_conn.fport,
	    inp->inp_conn.zone };
	int error;

	if (to != NULL) {
		error = udp_target(inp, to, &ep);
		if (error != 0)
			return (error);
	} else if (!inp->inp_connected) {
		return (EDESTADDRREQ);
	}
	error = in_pcbroute(inp, &ep, c);
	/* sending binds an unbound socket */
	if (error == 0 && !inp->inp_entered)
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
	    !af_path(c, &src, &mtu) ||
	    *size + UDP_HDRLEN + af->af_hdrlen > mtu))
		return (EINVAL);
	return (error);
}

/* IP_PMTUDISC_DO (ip(7)): no datagram is longer than the path's MTU. */
static bool
udp_fits(const struct inpcb *inp, const struct in_conninfo *c, uint32_t len)
    REQUIRES(inp->inp_socket->so_lock)
{
	return (__predict_true(inp->inp_mtudiscover != IP_PMTUDISC_DO) ||
	    len + UDP_HDRLEN + in_family(&c->faddr)->af_hdrlen <=
	    in_pmtu(&c->faddr, c->zone, UINT32_MAX));
}

/* Sends datagrams of the segment size; the last may be shorter.  Consumes m. */
static int
udp_output_segments(const struct inpcb *inp, struct mbuf *m,
    const struct in_conninfo *c, const struct ip_sendopts *opts,
    uint16_t size) REQUIRES(inp->inp_socket->so_lock)
{
	const uint32_t len = m->m_pkthdr.len;
	uint32_t off, n;
	int error = 0;

	for (off = 0; off < len && error == 0; off += n) {
		n = len - off < size ? len - off : size;
		error = udp_output(inp, m_copym(m, off, n), c, opts);
	}
	m_freem(m);
	return (error);
}

/* RFC 768 for IPv4, RFC 6935 for IPv6: each has its own option. */
static bool
udp_nochecksum(const struct socket *so, const struct in_conninfo *c)
    REQUIRES(so->so_lock)
{
	const struct inpcb *inp = so->so_pcb;

	so_assert_locked(inp->inp_socket);
	return (in_family(&c->faddr) == &in4_family ?
	    (so->so_options & SOO_NO_CHECK) != 0 : inp->inp_nocheck6_tx);
}

int
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
		opts.nochecksum = udp_nochecksum(so, &c);
		if (in_isgroup(&c.faddr))
			in_mcast_sendopts(inp, &opts);
		error = in_control_send(inp, msg, &c, &opts);
	}
	if (error == 0) {
		so_assert_locked(inp->inp_socket);
		error = udp_segment(inp, msg, &c, m->m_pkthdr.len, &size);
	}
	if (error == 0) {
		so_assert_locked(inp->inp_socket);
		if (!udp_fits(inp, &c, size != 0 ? size : m->m_pkthdr.len))
			error = EMSGSIZE;
	}
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	so_assert_locked(inp->inp_socket);
	return (size != 0 ? udp_output_segments(inp, m, &c, &opts, size) :
	    udp_output(inp, m, &c, &opts));
}
