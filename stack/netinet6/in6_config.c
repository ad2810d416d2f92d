/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 addresses of interfaces, from loader.conf.  if.<name>.inet6 is a list
 * of addresses like 2001:db8:1::2/64; the word "auto" enables
 * autoconfiguration by routers (RFC 4862).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/sysctl.h"
#include "net/if_config.h"
#include "netinet6/ip6_private.h"

/* Parses one word of the list. */
static int
take_word(struct if_config *ic, const char *word)
{
	struct if_inet6 in6;

	if (strcmp(word, "auto") == 0) {
		ic->autoconf6 = true;
		return (0);
	}
	if (!in_parse_prefix(AF_INET6, word, &in6.addr, &in6.plen) ||
	    IN6_IS_ADDR_MULTICAST(&in6.addr) ||
	    IN6_IS_ADDR_UNSPECIFIED(&in6.addr) ||
	    IN6_IS_ADDR_V4MAPPED(&in6.addr) ||
	    IN6_IS_ADDR_LOOPBACK(&in6.addr))
		return (EINVAL);
	if (ic->ninet6 == nitems(ic->inet6))
		return (ENOSPC);
	ic->inet6[ic->ninet6++] = in6;
	return (0);
}

int
in6_config_set(struct if_config *ic, const char *value, char *why, size_t len)
{
	ic->ninet6 = 0;
	ic->autoconf6 = false;
	return (if_config_words(ic, value, take_word,
	    "neither an address like 2001:db8:1::2/64 nor auto", why, len));
}

static int
config_show(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct if_config *ic = oid->oid_ptr;
	char addr[INET6_ADDRSTRLEN];
	size_t used = 0;

	(void)value;
	snprintf(buf, len, "%s", ic->autoconf6 ? "auto" : "");
	used = strlen(buf);
	for (unsigned i = 0; i < ic->ninet6 && used < len; i++) {
		snprintf(buf + used, len - used, "%s%s/%u", used > 0 ? " " :
		    "", inet_ntop(AF_INET6, &ic->inet6[i].addr, addr,
		    sizeof(addr)), ic->inet6[i].plen);
		used += strlen(buf + used);
	}
	return (0);
}

int
in6_config_attach(struct if_config *ic)
{
	struct ifnet *ifp = if_byname(ic->name);
	char text[INET6_ADDRSTRLEN];
	int error = 0;

	if (ic->ninet6 == 0 && !ic->autoconf6)
		return (0);
	if (ifp->if_mtu < IP6_MINMTU) {
		console("%s: mtu %u: IPv6 needs at least %u", ic->name,
		    ifp->if_mtu, IP6_MINMTU);
		return (EINVAL);
	}
	if (ifp->if_in6 == NULL)
		in6_ifattach(ifp, ic->autoconf6);
	for (unsigned i = 0; i < ic->ninet6 && error == 0; i++) {
		const struct if_inet6 *in6 = &ic->inet6[i];

		error = in6_addr_add(ifp, &in6->addr, in6->plen, 0,
		    NSEC_FOREVER, NSEC_FOREVER);
		if (error != 0)
			console("%s: %s: %s", ic->name, inet_ntop(AF_INET6,
			    &in6->addr, text, sizeof(text)), error == EEXIST ?
			    "this host has the address already" :
			    strerror(error));
	}
	if (error == 0)
		sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_PROC,
		    .oid_flags = CTL_TUN, .oid_ptr = ic,
		    .oid_proc = config_show,
		    .oid_descr = "IPv6 addresses; auto: also "
		        "autoconfiguration" },
		    "if.%s.inet6", ic->name);
	return (error);
}

void
in6_config_init(void)
{
	static struct if_family inet6 = {
		.fam_name = "inet6", .fam_set = in6_config_set,
		.fam_attach = in6_config_attach, .fam_show = in6_addr_show,
		.fam_ether = nd6_ifattach,
	};

	if_family_register(&inet6);
}
