/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name look-up.  Where the stack has no IPv6 address, a program that asks for
 * addresses of any kind gets those of IPv4: many take the first that they are
 * given.  AI_ADDRCONFIG, which means the kinds of addresses that this host
 * has, would make the C library look at the kernel's interfaces, so it is
 * taken care of here.  A DNS server is asked over the kernel's network.
 */
#include <netdb.h>

#include "api/api.h"
#include "netinet6/ip6_var.h"

EXPORT int
getaddrinfo(const char *restrict node, const char *restrict service,
    const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	/* What no hints means, getaddrinfo(3). */
	struct addrinfo ours = {
		.ai_family = AF_UNSPEC,
		.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG
	};

	if (api_state() != API_UP)
		return (real.getaddrinfo(node, service, hints, result));
	if (hints != NULL)
		ours = *hints;
	if (ours.ai_family == AF_UNSPEC &&
	    atomic_load_u32(&api_inet6_kernel) == 0 && !in6_global())
		ours.ai_family = AF_INET;
	ours.ai_flags &= ~AI_ADDRCONFIG;
	return (real.getaddrinfo(node, service, &ours, result));
}
