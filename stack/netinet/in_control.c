/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages of datagrams: ip(7), ipv6(7), RFC 3542 section 6, and the
 * receive time of socket(7).
 */
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/ip6.h>
#include <string.h>
#include <sys/time.h>

#include <linux/errqueue.h>	/* needs the time structures */

#include "kern/bpf_filter.h"
#include "kern/uipc_filter.h"
#include "netinet/in_pcb.h"

void
in_arrival(const struct mbuf *m, struct in_arrival *ia)
{
	const struct ifnet *ifp = m->m_pkthdr.rcvif;
	const struct ip *ip = mtod(m, const struct ip *);
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);

	ia->ia_coverage = 0;
	ia->ia_nochecksum = false;
	ia->ia_ifindex = ifp != NULL ? ifp->if_index : loif->if_index;
	if (ip->ip_v == 4) {
		ia->ia_ttl = ip->ip_ttl;
		ia->ia_tos = ip->ip_tos;
	} else {
		ia->ia_ttl = ip6->ip6_hlim;
		ia->ia_tos = (uint8_t)(ntohl(ip6->ip6_flow) >> 20);
	}
}

uint32_t
in_filter(const struct inpcb *inp, const struct mbuf *m, uint32_t off,
    uint32_t min)
{
	const struct ifnet *ifp = m->m_pkthdr.rcvif;
	const struct bpf_packet bp = {
		.bp_m = m, .bp_off = off, .bp_len = m->m_pkthdr.len - off,
		.bp_ifindex = ifp != NULL ? ifp->if_index : loif->if_index,
		.bp_protocol = in_packetfamily(m) == &in4_family ?
		    ETHERTYPE_IP : ETHERTYPE_IPV6,
		.bp_flow = m->m_pkthdr.flowid
	};

	return (sofilter_run(inp->inp_socket, &bp, min));
}

static void
add_pktinfo4(const struct in_conninfo *c, const struct in_arrival *ia,
    struct socontrol *sc)
{
	struct in_pktinfo info = {
		.ipi_ifindex = (int)ia->ia_ifindex,
		.ipi_spec_dst = in_unmap(&c->laddr),
		.ipi_addr = in_unmap(&c->laddr)
	};

	socontrol_add(sc, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

static void
add_pktinfo6(const struct in_conninfo *c, const struct in_arrival *ia,
    struct socontrol *sc)
{
	struct in6_pktinfo info = {
		.ipi6_addr = c->laddr, .ipi6_ifindex = ia->ia_ifindex
	};

	socontrol_add(sc, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
}

/*
 * SO_TIMESTAMP and SO_TIMESTAMPNS: one message, the finer if both are set; and
 * the time for SIOCGSTAMP.
 */
static void
add_time(unsigned options, struct socontrol *sc)
{
	struct timespec ts;
	struct timeval tv;
	nsec_t stamp;

	if (__predict_true((options & (SOO_TIMESTAMP | SOO_TIMESTAMPNS |
	    SOO_STAMP)) == 0))
		return;
	mach_walltime(&ts);
	stamp = timespec_nsec(&ts);
	if (options & SOO_STAMP)
		socontrol_add(sc, SOCONTROL_INTERNAL, 0, &stamp,
		    sizeof(stamp));
	tv.tv_sec = ts.tv_sec;
	tv.tv_usec = ts.tv_nsec / 1000;
	if (options & SOO_TIMESTAMPNS)
		socontrol_add(sc, SOL_SOCKET, SO_TIMESTAMPNS, &ts, sizeof(ts));
	else if (options & SOO_TIMESTAMP)
		socontrol_add(sc, SOL_SOCKET, SO_TIMESTAMP, &tv, sizeof(tv));
}

/* ip(7), IP_RECVORIGDSTADDR: address and port that a datagram was sent to. */
static void
add_origdst(int family, const struct in_conninfo *c, struct socontrol *sc)
{
	const struct in_endpoint ep = { c->laddr, c->lport, c->zone };
	struct sockname name;

	in_toname(family, &ep, &name);
	socontrol_add(sc, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
	    family == AF_INET ? IP_ORIGDSTADDR : IPV6_ORIGDSTADDR,
	    &name.sn_sa, name.sn_len);
}

void
in_control_received(const struct inpcb *inp, const struct in_conninfo *c,
    const struct in_arrival *ia, struct socontrol *sc)
    REQUIRES(inp->inp_socket->so_lock)
{
	const bool ipv4 = in_family(&c->laddr)->af_family == AF_INET;
	const unsigned want = inp->inp_recvopts;
	const int ttl = ia->ia_ttl, tclass = ia->ia_tos;

	add_time(inp->inp_socket->so_options, sc);
	if (want & INP_RECVPKTINFO6)
		add_pktinfo6(c, ia, sc);
	if (ipv4) {
		if (want & INP_RECVPKTINFO)
			add_pktinfo4(c, ia, sc);
		if (want & INP_RECVTTL)
			socontrol_add(sc, IPPROTO_IP, IP_TTL, &ttl,
			    sizeof(ttl));
		if (want & INP_RECVTOS)
			socontrol_add(sc, IPPROTO_IP, IP_TOS, &ia->ia_tos,
			    sizeof(ia->ia_tos));
		if (want & INP_RECVORIGDST)
			add_origdst(AF_INET, c, sc);
		return;
	}
	if (want & INP_RECVORIGDST6)
		add_origdst(AF_INET6, c, sc);
	if (want & INP_RECVHOPLIMIT)
		socontrol_add(sc, IPPROTO_IPV6, IPV6_HOPLIMIT, &ttl,
		    sizeof(ttl));
	if (want & INP_RECVTCLASS)
		socontrol_add(sc, IPPROTO_IPV6, IPV6_TCLASS, &tclass,
		    sizeof(tclass));
}

/* The error as a control message for recvmsg(), with its sender. */
static void
add_error(const struct inpcb *inp, const struct sock_extended_err *ee,
    const struct in_icmperr *ie, struct socontrol *sc)
{
	const struct in_endpoint ep = { .addr = ie->offender };
	struct {
		struct sock_extended_err ee;
		union {
			struct sockaddr_in	 sin;
			struct sockaddr_in6	 sin6;
		} offender;
	} e = { .ee = *ee };
	struct sockname name;

	in_toname(inp->inp_family, &ep, &name);
	memcpy(&e.offender, &name.sn_sa, name.sn_len);
	if (inp->inp_family == AF_INET)
		socontrol_add(sc, IPPROTO_IP, IP_RECVERR, &e, sizeof(e.ee) +
		    name.sn_len);
	else
		socontrol_add(sc, IPPROTO_IPV6, IPV6_RECVERR, &e,
		    sizeof(e.ee) + name.sn_len);
}

void
in_pcberror(struct inpcb *inp, int error, const struct in_conninfo *c,
    uint32_t mtu, const struct in_icmperr *ie, uint32_t skip)
    REQUIRES(inp->inp_socket->so_lock)
{
	const struct in_endpoint to = { c->faddr, c->fport, c->zone };
	const struct sock_extended_err ee = {
		.ee_errno = (uint32_t)error, .ee_type = ie->type,
		.ee_code = ie->code, .ee_info = error == EMSGSIZE ? mtu : 0,
		.ee_origin = IN6_IS_ADDR_V4MAPPED(&ie->offender) ?
		    SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6
	};
	struct socket *so = inp->inp_socket;
	struct socontrol control = { .sc_len = 0 };
	const uint32_t quoted = ie->quote->m_pkthdr.len;
	uint32_t from = ie->off + skip;
	struct sockname name;

	if (inp->inp_recverr) {
		if (from > quoted)
			from = quoted;
		in_toname(inp->inp_family, &to, &name);
		add_time(so->so_options, &control);
		add_error(inp, &ee, ie, &control);
		/* dropped if the queue is full, as in Linux */
		(void)sbappendaddr(&so->so_errors, &name, &control,
		    m_copym(ie->quote, from, quoted - from));
	}
	if (inp->inp_recverr || (so->so_state & SS_ISCONNECTED))
		soseterror(so, error);
}

/* Reads a number of a control message; a single byte only if byte is set. */
static int
get_number(const struct cmsghdr *cm, bool byte, int min, int max, int *num)
{
	const size_t len = cm->cmsg_len - CMSG_LEN(0);

	if (len == sizeof(*num))
		memcpy(num, CMSG_DATA(cm), sizeof(*num));
	else if (byte && len == 1)
		*num = *CMSG_DATA(cm);
	else
		return (EINVAL);
	return (*num < min || *num > max ? EINVAL : 0);
}

/* Sets the source address of one datagram, which must be local. */
static int
set_source(struct in_conninfo *c, const struct in6_addr *source)
{
	const struct in_endpoint ep = { .addr = *source, .zone = c->zone };

	if (in_isany(source))
		return (0);
	if (in_family(source) != in_family(&c->faddr) ||
	    !in_family(source)->af_isours(&ep, true))
		return (EINVAL);
	c->laddr = *source;
	return (0);
}

static int
send4(const struct cmsghdr *cm, struct in_conninfo *c,
    struct ip_sendopts *opts)
{
	struct in_pktinfo info;
	struct in6_addr source;
	int num, error;

	switch (cm->cmsg_type) {
	case IP_PKTINFO:
		if (cm->cmsg_len != CMSG_LEN(sizeof(info)))
			return (EINVAL);
		memcpy(&info, CMSG_DATA(cm), sizeof(info));
		source = in_map(info.ipi_spec_dst);
		return (set_source(c, &source));
	case IP_TTL:
		error = get_number(cm, false, 1, 255, &num);
		opts->ttl = error == 0 ? (uint8_t)num : opts->ttl;
		return (error);
	case IP_TOS:
		error = get_number(cm, true, 0, 255, &num);
		opts->tos = error == 0 ? (uint8_t)num : opts->tos;
		return (error);
	default:
		return (EINVAL);
	}
}

static int
send6(const struct cmsghdr *cm, struct in_conninfo *c,
    struct ip_sendopts *opts)
{
	struct in6_pktinfo info;
	int num, error;

	switch (cm->cmsg_type) {
	case IPV6_PKTINFO:
		if (cm->cmsg_len < CMSG_LEN(sizeof(info)))
			return (EINVAL);
		memcpy(&info, CMSG_DATA(cm), sizeof(info));
		return (set_source(c, &info.ipi6_addr));
	case IPV6_HOPLIMIT:
		error = get_number(cm, false, -1, 255, &num);
		if (error == 0 && num > 0)
			opts->ttl = (uint8_t)num;
		return (error);
	case IPV6_TCLASS:
		error = get_number(cm, false, -1, 255, &num);
		if (error == 0 && num >= 0)
			opts->tos = (uint8_t)num;
		return (error);
	default:
		return (EINVAL);
	}
}

int
in_control_send(const struct inpcb *inp, const struct msghdr *msg,
    struct in_conninfo *c, struct ip_sendopts *opts)
{
	const struct cmsghdr *cm = NULL;
	int error;

	while ((cm = socontrol_next(msg, cm, &error)) != NULL) {
		if (cm->cmsg_level == IPPROTO_IP)
			error = send4(cm, c, opts);
		else if (cm->cmsg_level == IPPROTO_IPV6 &&
		    inp->inp_family == AF_INET6)
			error = send6(cm, c, opts);
		else if (cm->cmsg_level == SOL_SOCKET)
			error = EINVAL;
		if (error != 0)
			break;
	}
	return (error);
}
