/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name resolution.  If the stack has no IPv6 address, a request for addresses
 * of any family returns IPv4 addresses, because many programs use the first
 * one.  AI_ADDRCONFIG (only families configured on this host) would make the C
 * library look at the kernel's interfaces, so it is handled here.  DNS queries
 * use the kernel's network.
 */
#include <netdb.h>
#include <string.h>

#include "api/api.h"
#include "netinet6/ip6_var.h"

/* A numeric address needs no address of this host (RFC 3493 section 6.1). */
static bool
is_numeric6(const char *node)
{
	return (node != NULL && strchr(node, ':') != NULL);
}

EXPORT int
getaddrinfo(const char *restrict node, const char *restrict service,
    const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	/* The default hints, getaddrinfo(3). */
	struct addrinfo ours = {
		.ai_family = AF_UNSPEC,
		.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG
	};

	if (api_state() == API_PASSIVE)
		return (real.getaddrinfo(node, service, hints, result));
	if (hints != NULL)
		ours = *hints;
	if (ours.ai_family == AF_UNSPEC && !is_numeric6(node) &&
	    atomic_load_u32(&api_inet6_kernel) == 0 && !in6_global())
		ours.ai_family = AF_INET;
	ours.ai_flags &= ~AI_ADDRCONFIG;
	return (real.getaddrinfo(node, service, &ours, result));
}
