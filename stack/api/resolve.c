/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name resolution.  If the stack has no IPv6 address, a request for addresses
 * of any family returns IPv4 addresses, because many programs use the first
 * one; a server still listens on both families.  AI_ADDRCONFIG (only families
 * configured on this host) would make the C library look at the kernel's
 * interfaces, so it is handled here.  So are zones of IPv6 addresses, which are
 * names of interfaces (RFC 4007 section 11).  DNS queries use the kernel's
 * network.
 */
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

/* A numeric address needs no address of this host (RFC 3493 section 6.1). */
static bool
is_numeric6(const char *node)
{
	return (node != NULL && strchr(node, ':') != NULL);
}

/* The text of an IPv6 address with the index of its zone in place of its name. */
static const char *
zone_by_index(const char *node, char *room, size_t size)
{
	const char *zone = node != NULL ? strchr(node, '%') : NULL;
	unsigned index;
	int length;

	if (zone == NULL || (index = if_nametoindex(zone + 1)) == 0)
		return (node);
	length = snprintf(room, size, "%.*s%%%u", (int)(zone - node), node,
	    index);
	return (length < (int)size ? room : node);
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
	char room[NI_MAXHOST];

	if (api_state() == API_PASSIVE)
		return (real.getaddrinfo(node, service, hints, result));
	if (hints != NULL)
		ours = *hints;
	if (ours.ai_family == AF_UNSPEC && !is_numeric6(node) &&
	    (node != NULL || (ours.ai_flags & AI_PASSIVE) == 0) &&
	    atomic_load_u32(&api_inet6_kernel) == 0 && !interface_global6())
		ours.ai_family = AF_INET;
	ours.ai_flags &= ~AI_ADDRCONFIG;
	return (real.getaddrinfo(zone_by_index(node, room, sizeof(room)),
	    service, &ours, result));
}

EXPORT int
getnameinfo(const struct sockaddr *restrict sa, socklen_t salen,
    char *restrict host, socklen_t hostlen, char *restrict service,
    socklen_t servicelen, int flags)
{
	char name[IFNAMSIZ], text[NI_MAXHOST], *zone;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
	int error, length;

	if (api_state() == API_PASSIVE || host == NULL || hostlen == 0 ||
	    salen < sizeof(*sin6) || sa->sa_family != AF_INET6 ||
	    sin6->sin6_scope_id == 0)
		return (real.getnameinfo(sa, salen, host, hostlen, service,
		    servicelen, flags));
	error = real.getnameinfo(sa, salen, text, sizeof(text), service,
	    servicelen, flags);
	if (error != 0)
		return (error);
	zone = strchr(text, '%');
	if (zone == NULL)
		length = snprintf(host, hostlen, "%s", text);
	else if (if_indextoname(sin6->sin6_scope_id, name) != NULL)
		length = snprintf(host, hostlen, "%.*s%%%s",
		    (int)(zone - text), text, name);
	else
		length = snprintf(host, hostlen, "%.*s%%%u",
		    (int)(zone - text), text, sin6->sin6_scope_id);
	return (length < (int)hostlen ? 0 : EAI_OVERFLOW);
}
