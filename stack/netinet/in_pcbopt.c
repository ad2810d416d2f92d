/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of level IPPROTO_IP, which are the same for every protocol above
 * IP; names and meanings are Linux's ip(7).
 */
#include <errno.h>
#include <string.h>

#include "netinet/in_pcb.h"

/* Linux takes a byte or an int for these. */
static int
getnumber(const void *val, socklen_t len, int *num)
{
	if (len >= sizeof(*num)) {
		memcpy(num, val, sizeof(*num));
		return (0);
	}
	if (len == 0)
		return (EINVAL);
	*num = *(const unsigned char *)val;
	return (0);
}

int
in_pcbsetopt(struct inpcb *inp, int name, const void *val, socklen_t len)
{
	int num, error;

	error = getnumber(val, len, &num);
	if (error != 0)
		return (error);
	switch (name) {
	case IP_TOS:
		inp->inp_opts.tos = (uint8_t)num;
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
		/* TCP fits its segments to the path whatever is said */
		if (!inp->inp_table->it_stream)
			inp->inp_opts.dontfrag = num == IP_PMTUDISC_DO ||
			    num == IP_PMTUDISC_PROBE;
		return (0);
	case IP_RECVERR:
		inp->inp_recverr = num != 0;
		return (0);
	case IP_RECVTOS:
	case IP_RECVTTL:
	case IP_PKTINFO:
	case IP_BIND_ADDRESS_NO_PORT:
	case IP_FREEBIND:
	case IP_MULTICAST_LOOP:
	case IP_MULTICAST_TTL:
		return (0);
	default:
		return (ENOPROTOOPT);
	}
}

int
in_pcbgetopt(struct inpcb *inp, int name, void *val, socklen_t *len)
{
	int num;

	switch (name) {
	case IP_TOS:
		num = inp->inp_opts.tos;
		break;
	case IP_TTL:
		num = inp->inp_opts.ttl != 0 ? inp->inp_opts.ttl : 64;
		break;
	case IP_MTU_DISCOVER:
		num = inp->inp_mtudiscover;
		break;
	case IP_RECVERR:
		num = inp->inp_recverr;
		break;
	case IP_OPTIONS:
		*len = 0;		/* none are ever set */
		return (0);
	default:
		return (ENOPROTOOPT);
	}
	if (*len > sizeof(num))
		*len = sizeof(num);
	memcpy(val, &num, *len);
	return (0);
}
