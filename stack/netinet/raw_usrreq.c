/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw and ping sockets: socket operations and output.
 */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/ip_private.h"
#include "netinet/raw_pcb.h"

#define	ECHO_HDRLEN	8

static struct inpcbtable raw_table;	/* identifiers of ping sockets */
static atomic_u32 raw_allowed;
static atomic_u32 ping_allowed = 1;
static atomic_u32 raw_recvspace = 256 * 1024;
static atomic_u32 raw_sendspace = 128 * 1024;

static const struct sysctl_oid raw_oids[] = {
	{ .oid_name = "net.inet.raw.sockets", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &raw_allowed,
	    .oid_max = 1,
	    .oid_descr = "1: programs may open raw sockets; 0: EPERM" },
	{ .oid_name = "net.inet.raw.ping", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ping_allowed,
	    .oid_max = 1,
	    .oid_descr = "1: programs may open ping sockets; 0: EACCES" },
	{ .oid_name = "net.inet.raw.recvspace", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &raw_recvspace,
	    .oid_min = 2048, .oid_max = 16777216,
	    .oid_descr = "receive buffer of a new raw socket, bytes" },
	{ .oid_name = "net.inet.raw.sendspace", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &raw_sendspace,
	    .oid_min = 2048, .oid_max = 16777216,
	    .oid_descr = "max packet of a new raw socket, bytes" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet.raw.stats." #name, .oid_type = CTL_U64,	\
	    .oid_ptr = &rawstat.name, .oid_descr = descr },
	RAW_STATS(X)
#undef X
};

static int
raw_create(struct socket *so, bool ping) REQUIRES(so->so_lock)
{
	struct rawcb *rc;

	if (so->so_protocol <= 0 || so->so_protocol > 255)
		return (EPROTONOSUPPORT);
	if (atomic_load_u32(ping ? &ping_allowed : &raw_allowed) == 0)
		return (ping ? EACCES : EPERM);
	rc = kmalloc(sizeof(*rc));
	in_pcbinit(&rc->rc_inp, so, &raw_table);
	so_assert_locked(rc->rc_inp.inp_socket);
	rc->rc_proto = (uint8_t)so->so_protocol;
	rc->rc_ping = ping;
	rc->rc_hdrincl = rc->rc_proto == IPPROTO_RAW &&
	    so->so_proto->pr_domain == AF_INET;
	rc->rc_checksum = rc->rc_proto == IPPROTO_ICMPV6 &&
	    so->so_proto->pr_domain == AF_INET6 ? 2 : NO_CHECKSUM;
	ICMP6_FILTER_SETPASSALL(&rc->rc_filter6);
	soref(so);
	so->so_pcb = rc;
	soreserve(so, atomic_load_u32(&raw_sendspace),
	    atomic_load_u32(&raw_recvspace));
	raw_insert(rc);
	return (0);
}

static int
raw_attach(struct socket *so) REQUIRES(so->so_lock)
{
	return (raw_create(so, false));
}

static int
ping_attach(struct socket *so) REQUIRES(so->so_lock)
{
	return (raw_create(so, true));
}

static void
raw_detach(struct socket *so) REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);

	so_assert_locked(rc->rc_inp.inp_socket);
	raw_remove(rc);
	in_mcast_free(&rc->rc_inp);
	in_pcbremove(&rc->rc_inp);
	so->so_pcb = NULL;
	kfree(rc);
	sorele(so);
}

/* A ping socket's port is the identifier of its requests. */
static int
raw_bind(struct socket *so, const struct sockname *name) REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);
	struct inpcb *inp = &rc->rc_inp;
	struct in_endpoint ep;
	int error = in_fromname(inp->inp_family, name, &ep);

	if (error != 0)
		return (error);
	so_assert_locked(inp->inp_socket);
	if (!rc->rc_ping && !in_isany(&ep.addr) &&
	    !in_family(&ep.addr)->af_isours(&ep, false))
		return (EADDRNOTAVAIL);
	rw_wlock_as(&raw_lock, &pcbtable_role);
	if (rc->rc_ping) {
		error = in_pcbbind(inp, &ep);
	} else {
		inp->inp_conn.laddr = ep.addr;
		inp->inp_conn.zone = ep.zone;
	}
	rw_wunlock_as(&raw_lock, &pcbtable_role);
	return (error);
}

/* Assigns an identifier to a ping socket without one. */
static int
ping_bind(struct rawcb *rc) REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	int error = 0;

	if (rc->rc_ping && !rc->rc_inp.inp_entered) {
		rw_wlock_as(&raw_lock, &pcbtable_role);
		error = in_pcbbind(&rc->rc_inp, NULL);
		rw_wunlock_as(&raw_lock, &pcbtable_role);
	}
	return (error);
}

static int
raw_connect(struct socket *so, const struct sockname *name, int flags)
    REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);
	struct inpcb *inp = &rc->rc_inp;
	struct in_conninfo c;
	struct in_endpoint ep;
	int error;

	(void)flags;
	so_assert_locked(inp->inp_socket);
	c = inp->inp_conn;
	if (name != NULL) {
		error = in_fromname(inp->inp_family, name, &ep);
		if (error == 0)
			error = ping_bind(rc);
		ep.port = 0;
		if (error == 0)
			error = in_pcbroute(inp, &ep, &c);
		if (error != 0)
			return (error);
		so->so_state |= SS_ISCONNECTED;
	} else {
		c.faddr = in_family(&c.faddr)->af_any;
		so->so_state &= ~(unsigned)SS_ISCONNECTED;
	}
	rw_wlock_as(&raw_lock, &pcbtable_role);
	inp->inp_conn.faddr = c.faddr;
	inp->inp_conn.zone = c.zone;
	if (name != NULL)
		inp->inp_conn.laddr = c.laddr;
	rw_wunlock_as(&raw_lock, &pcbtable_role);
	return (0);
}

static int
raw_shutdown(struct socket *so)
{
	socantsendmore(so);
	return (0);
}

static void
raw_rcvd(struct socket *so)
{
	(void)so;
}

/* Computes a message's checksum, for protocols that have one. */
static int
raw_seal(struct mbuf **m, const struct in_conninfo *c, int at)
{
	const uint32_t len = (*m)->m_pkthdr.len;
	const struct in_family *af = in_family(&c->faddr);
	uint16_t sum = 0;

	if (at < 0)
		return (0);
	if (len < (uint32_t)at + sizeof(sum))
		return (EINVAL);
	*m = m_pullup(*m, (uint32_t)at + sizeof(sum));
	memcpy((*m)->m_data + at, &sum, sizeof(sum));
	sum = in_fold(in_sum(*m, 0, len, af == &in6_family ?
	    af_pseudo(af, c, IPPROTO_ICMPV6, len) : 0));
	memcpy((*m)->m_data + at, &sum, sizeof(sum));
	return (0);
}

/* Ping sockets send only echo requests, with their own identifier. */
static int
ping_prepare(struct rawcb *rc, struct mbuf **m)
    REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	struct inpcb *inp = &rc->rc_inp;
	const uint8_t request = rc->rc_proto == IPPROTO_ICMP ? ICMP_ECHO :
	    ICMP6_ECHO_REQUEST;
	int error;

	if ((*m)->m_pkthdr.len < ECHO_HDRLEN)
		return (EINVAL);
	*m = m_pullup(*m, ECHO_HDRLEN);
	if ((uint8_t)(*m)->m_data[0] != request || (*m)->m_data[1] != 0)
		return (EINVAL);
	error = ping_bind(rc);
	memcpy((*m)->m_data + 4, &inp->inp_conn.lport, 2);
	return (error);
}

/* The addresses of a packet to be sent. */
static int
raw_route(const struct socket *so, const struct sockname *to,
    struct in_conninfo *c) REQUIRES(so->so_lock)
{
	const struct inpcb *inp = so->so_pcb;
	struct in_endpoint ep;
	int error = 0;

	so_assert_locked(inp->inp_socket);
	ep = (struct in_endpoint){ inp->inp_conn.faddr, 0,
	    inp->inp_conn.zone };
	if (to != NULL)
		error = in_fromname(inp->inp_family, to, &ep);
	else if ((so->so_state & SS_ISCONNECTED) == 0)
		error = EDESTADDRREQ;
	ep.port = 0;
	return (error != 0 ? error : in_pcbroute(inp, &ep, c));
}

/* Consumes *m, also on errors. */
static int
raw_transmit(struct rawcb *rc, struct mbuf **m, struct in_conninfo *c,
    const struct ip_sendopts *opts) REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	int error = rc->rc_ping ? ping_prepare(rc, m) : 0;

	if (error == 0)
		error = raw_seal(m, c, rc->rc_ping ? 2 : rc->rc_checksum);
	if (error != 0) {
		m_freem(*m);
		return (error);
	}
	RAWSTAT_INC(sent);
	if (rc->rc_hdrincl)
		return (ip_outputheader(*m, in_unmap(&c->laddr),
		    in_unmap(&c->faddr), opts));
	return (af_output(in_family(&c->faddr), *m, c, rc->rc_proto, opts));
}

static int
raw_send(struct socket *so, struct mbuf *m, const struct sockname *to,
    const struct msghdr *msg, int flags) REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);
	struct ip_sendopts opts;
	struct in_conninfo c;
	int error;

	(void)flags;
	error = rc == NULL ? EBADF : raw_route(so, to, &c);
	if (error == 0) {
		so_assert_locked(rc->rc_inp.inp_socket);
		opts = rc->rc_inp.inp_opts;
		opts.broadcast = (so->so_options & SOO_BROADCAST) != 0;
		if (in_isgroup(&c.faddr))
			in_mcast_sendopts(&rc->rc_inp, &opts);
		error = in_control_send(&rc->rc_inp, msg, &c, &opts);
	}
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	so_assert_locked(rc->rc_inp.inp_socket);
	return (raw_transmit(rc, &m, &c, &opts));
}

static int
raw_sockaddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	return (in_pcbsockaddr(so->so_pcb, name));
}

static int
raw_peeraddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	const struct inpcb *inp = so->so_pcb;
	struct in_endpoint ep;

	if ((so->so_state & SS_ISCONNECTED) == 0)
		return (ENOTCONN);
	so_assert_locked(inp->inp_socket);
	ep = (struct in_endpoint){ inp->inp_conn.faddr, 0,
	    inp->inp_conn.zone };
	in_toname(inp->inp_family, &ep, name);
	return (0);
}

static const struct protosw raw_protosw = {
	.pr_name = "raw",
	.pr_domain = AF_INET,
	.pr_type = SOCK_RAW,
	.pr_anyproto = true,
	.pr_sendanyway = true,
	.pr_namelen = sizeof(struct sockaddr_in),
	.pr_attach = raw_attach,
	.pr_detach = raw_detach,
	.pr_abort = raw_detach,
	.pr_bind = raw_bind,
	.pr_connect = raw_connect,
	.pr_shutdown = raw_shutdown,
	.pr_rcvd = raw_rcvd,
	.pr_send = raw_send,
	.pr_setopt = raw_setopt,
	.pr_getopt = raw_getopt,
	.pr_sockaddr = raw_sockaddr,
	.pr_peeraddr = raw_peeraddr,
};

/* Raw and ping sockets of both families. [I] after boot */
static struct protosw raw_kinds[4];

void
raw_init(void)
{
	static const char *const names[] = { "raw", "raw6", "icmp", "icmp6" };

	giant_component("raw");
	in_pcbtable_init(&raw_table, "raw", false);
	raw_input_init();
	sysctl_register(raw_oids, nitems(raw_oids));
	for (unsigned i = 0; i < nitems(raw_kinds); i++) {
		struct protosw *pr = &raw_kinds[i];

		*pr = raw_protosw;
		pr->pr_name = names[i];
		if (i % 2 != 0) {
			pr->pr_domain = AF_INET6;
			pr->pr_namelen = sizeof(struct sockaddr_in6);
		}
		if (i >= 2) {
			pr->pr_type = SOCK_DGRAM;
			pr->pr_anyproto = false;
			pr->pr_protocol = i == 2 ? IPPROTO_ICMP :
			    IPPROTO_ICMPV6;
			pr->pr_attach = ping_attach;
		}
		protosw_register(pr);
	}
}
