/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of levels IPPROTO_IP and IPPROTO_IPV6 for all protocols above IP;
 * names and meanings are those of Linux's ip(7) and ipv6(7).
 */
#include <errno.h>
#include <netinet/ip.h>
#include <string.h>

#include "netinet/in_pcb.h"

/* Linux accepts a byte or an int, and for some of these even nothing. */
static int
getnumber4(int name, const void *val, socklen_t len, int *num)
{
	*num = 0;
	if (len >= sizeof(*num))
		memcpy(num, val, sizeof(*num));
	else if (len > 0)
		*num = *(const unsigned char *)val;
	else if (name == IP_TTL || name == IP_FREEBIND ||
	    name == IP_MULTICAST_TTL || name == IP_MULTICAST_LOOP ||
	    name == IP_MULTICAST_ALL)
		return (EINVAL);
	return (0);
}

/* Linux takes no address for 0, and so a short value of IPV6_DONTFRAG. */
static int
getnumber6(int name, const void *val, socklen_t len, int *num)
{
	*num = 0;
	if (len < sizeof(*num))
		return (name == IPV6_DONTFRAG ? 0 : EINVAL);
	if (val != NULL)
		memcpy(num, val, sizeof(*num));
	return (0);
}

static int
setrecv(struct inpcb *inp, unsigned what, int on)
    REQUIRES(inp->inp_socket->so_lock)
{
	if (on != 0)
		inp->inp_recvopts |= what;
	else
		inp->inp_recvopts &= ~what;
	return (0);
}

static int
getrecv(const struct inpcb *inp, unsigned what, int *num)
    REQUIRES(inp->inp_socket->so_lock)
{
	*num = (inp->inp_recvopts & what) != 0;
	return (0);
}

/* The congestion marks of TCP are its own (RFC 3168 section 5). */
static void
settos(struct inpcb *inp, int tos) REQUIRES(inp->inp_socket->so_lock)
{
	const int marks = inp->inp_table->it_stream ? IPTOS_ECN_MASK : 0;

	inp->inp_opts.tos = (uint8_t)((tos & ~marks) |
	    (inp->inp_opts.tos & marks));
}

static int
setopt4(struct inpcb *inp, int name, int num) REQUIRES(inp->inp_socket->so_lock)
{
	switch (name) {
	case IP_TOS:
		settos(inp, num);
		return (0);
	case IP_TTL:
		if (num != -1 && (num < 1 || num > 255))
			return (EINVAL);
		inp->inp_opts.ttl = num == -1 ? 0 : (uint8_t)num;
		return (0);
	case IP_MTU_DISCOVER:
		if (num < IP_PMTUDISC_DONT || num > IP_PMTUDISC_OMIT)
			return (EINVAL);
		inp->inp_mtudiscover = (uint8_t)num;
		/* TCP always adapts to the path MTU */
		if (!inp->inp_table->it_stream)
			inp->inp_opts.dontfrag = num == IP_PMTUDISC_DO ||
			    num == IP_PMTUDISC_PROBE;
		return (0);
	case IP_RECVERR:
		inp->inp_recverr = num != 0;
		return (0);
	case IP_RECVTOS:
		return (setrecv(inp, INP_RECVTOS, num));
	case IP_RECVTTL:
		return (setrecv(inp, INP_RECVTTL, num));
	case IP_PKTINFO:
		return (setrecv(inp, INP_RECVPKTINFO, num));
	case IP_RECVORIGDSTADDR:
		return (setrecv(inp, INP_RECVORIGDST, num));
	case IP_BIND_ADDRESS_NO_PORT:
		return (setrecv(inp, INP_NOPORT, num));
	case IP_FREEBIND:
		return (setrecv(inp, INP_FREEBIND, num));
	case IP_RECVOPTS:
		return (setrecv(inp, INP_RECVOPTS, num));
	case IP_RETOPTS:
		return (setrecv(inp, INP_RETOPTS, num));
	case IP_MULTICAST_LOOP:
		inp->inp_mopts.mo_noloop = num == 0;
		return (0);
	case IP_MULTICAST_ALL:
		if (num != 0 && num != 1)
			return (EINVAL);
		inp->inp_mopts.mo_onlymine = num == 0;
		return (0);
	case IP_MULTICAST_TTL:
		if (num < -1 || num > 255 || inp->inp_table->it_stream)
			return (EINVAL);
		inp->inp_mopts.mo_ttl = num == -1 ? 1 : (uint8_t)num;
		return (0);
	default:
		return (ENOPROTOOPT);
	}
}

/* A socket has one traffic class and one hop limit for both families. */
static int
setopt6(struct inpcb *inp, int name, int num) REQUIRES(inp->inp_socket->so_lock)
{
	switch (name) {
	case IPV6_V6ONLY:
		if (inp->inp_entered)
			return (EINVAL);
		role_assert(&pcbtable_role);	/* it is in no table */
		inp->inp_v6only = num != 0;
		return (0);
	case IPV6_UNICAST_HOPS:
		if (num < -1 || num > 255)
			return (EINVAL);
		inp->inp_opts.ttl = num == -1 ? 0 : (uint8_t)num;
		return (0);
	case IPV6_TCLASS:
		if (num < -1 || num > 255)
			return (EINVAL);
		settos(inp, num == -1 ? 0 : num);
		return (0);
	case IPV6_DONTFRAG:
		if (!inp->inp_table->it_stream)
			inp->inp_opts.dontfrag = num != 0;
		return (setrecv(inp, INP_DONTFRAG, num));
	case IPV6_MTU_DISCOVER:
		return (setopt4(inp, IP_MTU_DISCOVER, num));
	case IPV6_RECVERR:
		return (setopt4(inp, IP_RECVERR, num));
	case IPV6_RECVPKTINFO:
		return (setrecv(inp, INP_RECVPKTINFO6, num));
	case IPV6_RECVTCLASS:
		return (setrecv(inp, INP_RECVTCLASS, num));
	case IPV6_RECVHOPLIMIT:
		return (setrecv(inp, INP_RECVHOPLIMIT, num));
	case IPV6_RECVORIGDSTADDR:
		return (setrecv(inp, INP_RECVORIGDST6, num));
	case IPV6_MULTICAST_HOPS:
		return (setopt4(inp, IP_MULTICAST_TTL, num));
	case IPV6_MULTICAST_LOOP:
		if (num != 0 && num != 1)
			return (EINVAL);
		return (setopt4(inp, IP_MULTICAST_LOOP, num));
	case IPV6_MULTICAST_ALL:
		return (setopt4(inp, IP_MULTICAST_ALL, num != 0));
	default:
		return (ENOPROTOOPT);
	}
}

/* IP_MTU: the MTU of the path to the peer. */
static int
getmtu(const struct inpcb *inp, int *num) REQUIRES(inp->inp_socket->so_lock)
{
	struct in6_addr src;
	uint32_t mtu;

	if (!inp->inp_connected || !af_path(&inp->inp_conn, &src, &mtu))
		return (ENOTCONN);
	*num = (int)mtu;
	return (0);
}

static int
getopt4(const struct inpcb *inp, int name, int *num)
    REQUIRES(inp->inp_socket->so_lock)
{
	switch (name) {
	case IP_TOS:
		*num = inp->inp_opts.tos;
		return (0);
	case IP_TTL:
		*num = inp->inp_opts.ttl != 0 ? inp->inp_opts.ttl : 64;
		return (0);
	case IP_MTU_DISCOVER:
		*num = inp->inp_mtudiscover;
		return (0);
	case IP_MTU:
		return (getmtu(inp, num));
	case IP_RECVERR:
		*num = inp->inp_recverr;
		return (0);
	case IP_RECVTOS:
		return (getrecv(inp, INP_RECVTOS, num));
	case IP_RECVTTL:
		return (getrecv(inp, INP_RECVTTL, num));
	case IP_PKTINFO:
		return (getrecv(inp, INP_RECVPKTINFO, num));
	case IP_RECVORIGDSTADDR:
		return (getrecv(inp, INP_RECVORIGDST, num));
	case IP_BIND_ADDRESS_NO_PORT:
		return (getrecv(inp, INP_NOPORT, num));
	case IP_FREEBIND:
		return (getrecv(inp, INP_FREEBIND, num));
	case IP_RECVOPTS:
		return (getrecv(inp, INP_RECVOPTS, num));
	case IP_RETOPTS:
		return (getrecv(inp, INP_RETOPTS, num));
	case IP_MULTICAST_IF:
		*num = in_mcast_getif(inp, IPPROTO_IP);
		return (0);
	case IP_MULTICAST_LOOP:
		*num = !inp->inp_mopts.mo_noloop;
		return (0);
	case IP_MULTICAST_ALL:
		*num = !inp->inp_mopts.mo_onlymine;
		return (0);
	case IP_MULTICAST_TTL:
		*num = inp->inp_mopts.mo_ttl;
		return (0);
	default:
		return (ENOPROTOOPT);
	}
}

static int
getopt6(const struct inpcb *inp, int name, int *num)
    REQUIRES(inp->inp_socket->so_lock)
{
	switch (name) {
	case IPV6_V6ONLY:
		*num = inp->inp_v6only;
		return (0);
	case IPV6_UNICAST_HOPS:
		return (getopt4(inp, IP_TTL, num));
	case IPV6_TCLASS:
		return (getopt4(inp, IP_TOS, num));
	case IPV6_DONTFRAG:
		return (getrecv(inp, INP_DONTFRAG, num));
	case IPV6_MTU_DISCOVER:
		return (getopt4(inp, IP_MTU_DISCOVER, num));
	case IPV6_RECVERR:
		return (getopt4(inp, IP_RECVERR, num));
	case IPV6_RECVPKTINFO:
		return (getrecv(inp, INP_RECVPKTINFO6, num));
	case IPV6_RECVTCLASS:
		return (getrecv(inp, INP_RECVTCLASS, num));
	case IPV6_RECVHOPLIMIT:
		return (getrecv(inp, INP_RECVHOPLIMIT, num));
	case IPV6_RECVORIGDSTADDR:
		return (getrecv(inp, INP_RECVORIGDST6, num));
	case IPV6_MULTICAST_IF:
		*num = in_mcast_getif(inp, IPPROTO_IPV6);
		return (0);
	case IPV6_MULTICAST_LOOP:
		return (getopt4(inp, IP_MULTICAST_LOOP, num));
	case IPV6_MULTICAST_ALL:
		return (getopt4(inp, IP_MULTICAST_ALL, num));
	case IPV6_MULTICAST_HOPS:
		return (getopt4(inp, IP_MULTICAST_TTL, num));
	case IPV6_MTU:
		return (getmtu(inp, num));
	default:
		return (ENOPROTOOPT);
	}
}

/* All numbers that can be set can be read, but not the reverse. */
static bool
issettable(const struct inpcb *inp, int level, int name)
    REQUIRES(inp->inp_socket->so_lock)
{
	int num;

	if (level == IPPROTO_IP ? name == IP_MTU : name == IPV6_MULTICAST_HOPS &&
	    inp->inp_table->it_stream)
		return (false);
	return ((level == IPPROTO_IP ? getopt4(inp, name, &num) :
	    getopt6(inp, name, &num)) != ENOPROTOOPT);
}

int
in_pcbsetopt(struct inpcb *inp, int level, int name, const void *val,
    socklen_t len) REQUIRES(inp->inp_socket->so_lock)
{
	int num, error;

	if (level == IPPROTO_IPV6 && inp->inp_family != AF_INET6)
		return (ENOPROTOOPT);
	error = in_mcast_setopt(inp, level, name, val, len);
	if (error != ENOPROTOOPT)
		return (error);
	if (!issettable(inp, level, name))
		return (ENOPROTOOPT);
	if (level == IPPROTO_IP && val == NULL && len > 0)
		return (EFAULT);
	error = level == IPPROTO_IP ? getnumber4(name, val, len, &num) :
	    getnumber6(name, val, len, &num);
	if (error != 0)
		return (error);
	return (level == IPPROTO_IP ? setopt4(inp, name, num) :
	    setopt6(inp, name, num));
}

int
in_pcbgetopt(struct inpcb *inp, int level, int name, void *val,
    socklen_t *len) REQUIRES(inp->inp_socket->so_lock)
{
	int num, error;

	if (level == IPPROTO_IP && name == IP_OPTIONS) {
		*len = 0;		/* no option is ever set */
		return (0);
	}
	if (level == IPPROTO_IP)
		error = getopt4(inp, name, &num);
	else if (inp->inp_family == AF_INET6)
		error = getopt6(inp, name, &num);
	else
		error = ENOPROTOOPT;
	if (error != 0)
		return (error);
	if (*len > sizeof(num))
		*len = sizeof(num);
	/* ip(7): a small number is one byte, if there is no room for an int */
	if (level == IPPROTO_IP && name != IP_MULTICAST_IF && *len > 0 &&
	    *len < sizeof(num) && num >= 0 && num <= UINT8_MAX)
		*len = 1;
	memcpy(val, &num, *len);
	return (0);
}
