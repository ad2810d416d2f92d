/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of raw sockets: raw(7), icmp(7), RFC 3542 sections 3.1 and 3.2.
 */
#include <errno.h>
#include <string.h>

#include "netinet/raw_pcb.h"

#define	SOL_RAW		255	/* raw(7): the level */
#define	ICMP_FILTER	1	/* ... and its option, a set of types */

/* IPV6_CHECKSUM: an even offset, or -1 for none; ICMPv6's cannot be changed. */
static int
set_checksum(struct rawcb *rc, int at) REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	if (rc->rc_proto == IPPROTO_ICMPV6 || (at >= 0 && at % 2 != 0))
		return (EINVAL);
	rc->rc_checksum = at < 0 ? NO_CHECKSUM : at;
	return (0);
}

/* Options that only raw sockets have; ENOPROTOOPT: another option. */
static int
raw_setown(struct rawcb *rc, int level, int name, const void *val,
    socklen_t len) REQUIRES(rc->rc_inp.inp_socket->so_lock)
{
	const bool ipv4 = rc->rc_inp.inp_family == AF_INET;
	int num = 0;

	if (len >= sizeof(num))
		memcpy(&num, val, sizeof(num));
	if (ipv4 && level == IPPROTO_IP && name == IP_HDRINCL) {
		rc->rc_hdrincl = num != 0;
	} else if (ipv4 && level == SOL_RAW && name == ICMP_FILTER &&
	    rc->rc_proto == IPPROTO_ICMP) {
		rc->rc_filter4 = (uint32_t)num;
	} else if (!ipv4 && (level == IPPROTO_IPV6 || level == SOL_RAW) &&
	    name == IPV6_CHECKSUM) {
		return (len < sizeof(num) ? EINVAL : set_checksum(rc, num));
	} else if (!ipv4 && level == IPPROTO_ICMPV6 && name == ICMP6_FILTER &&
	    rc->rc_proto == IPPROTO_ICMPV6) {
		memcpy(&rc->rc_filter6, val, len < sizeof(rc->rc_filter6) ?
		    len : sizeof(rc->rc_filter6));
		return (0);
	} else {
		return (ENOPROTOOPT);
	}
	return (len < sizeof(num) ? EINVAL : 0);
}

int
raw_setopt(struct socket *so, int level, int name, const void *val,
    socklen_t len) REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);
	int error = ENOPROTOOPT;

	so_assert_locked(rc->rc_inp.inp_socket);
	if (!rc->rc_ping)
		error = raw_setown(rc, level, name, val, len);
	if (error != ENOPROTOOPT)
		return (error);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return (in_pcbsetopt(&rc->rc_inp, level, name, val, len));
	return (level == SOL_SOCKET ? 0 : ENOPROTOOPT);
}

int
raw_getopt(struct socket *so, int level, int name, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	struct rawcb *rc = sotorawcb(so);
	const bool ipv4 = rc->rc_inp.inp_family == AF_INET;
	const void *from;
	size_t size = sizeof(int);
	int hdrincl;

	so_assert_locked(rc->rc_inp.inp_socket);
	hdrincl = rc->rc_hdrincl;
	if (!rc->rc_ping && ipv4 && level == IPPROTO_IP && name == IP_HDRINCL) {
		from = &hdrincl;
	} else if (!rc->rc_ping && ipv4 && level == SOL_RAW &&
	    name == ICMP_FILTER && rc->rc_proto == IPPROTO_ICMP) {
		from = &rc->rc_filter4;
	} else if (!rc->rc_ping && !ipv4 && name == IPV6_CHECKSUM &&
	    (level == IPPROTO_IPV6 || level == SOL_RAW)) {
		from = &rc->rc_checksum;
	} else if (!rc->rc_ping && !ipv4 && level == IPPROTO_ICMPV6 &&
	    name == ICMP6_FILTER && rc->rc_proto == IPPROTO_ICMPV6) {
		from = &rc->rc_filter6;
		size = sizeof(rc->rc_filter6);
	} else if (level == IPPROTO_IP || level == IPPROTO_IPV6) {
		return (in_pcbgetopt(&rc->rc_inp, level, name, val, len));
	} else {
		return (ENOPROTOOPT);
	}
	if (*len > size)
		*len = (socklen_t)size;
	memcpy(val, from, *len);
	return (0);
}
