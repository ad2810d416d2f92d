/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 of interfaces, from loader.conf: if.<name>.inet is a list of addresses
 * like 10.1.0.2/24.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "net/if_driver.h"
#include "netinet/arp.h"

/* Parses one word of the list; 0.0.0.0/0 means no address. */
static int
take_word(struct if_config *ic, const char *word)
{
	struct if_inet in;
	unsigned plen;

	if (!in_parse_prefix(AF_INET, word, &in.addr, &plen) ||
	    IN_MULTICAST(ntohl(in.addr.s_addr)) ||
	    in.addr.s_addr == htonl(INADDR_BROADCAST))
		return (EINVAL);
	if (in.addr.s_addr == INADDR_ANY)
		return (0);
	if (ic->ninet == nitems(ic->inet))
		return (ENOSPC);
	for (unsigned i = 0; i < ic->ninet; i++)
		if (ic->inet[i].addr.s_addr == in.addr.s_addr)
			return (EEXIST);
	in.mask = inet_mask(plen);
	ic->inet[ic->ninet++] = in;
	return (0);
}

int
inet_config_set(struct if_config *ic, const char *value, char *why, size_t len)
{
	ic->ninet = 0;
	return (if_config_words(ic, value, take_word,
	    "not an address like 10.1.0.2/24", why, len));
}

static const char *
prefix_text(const struct if_inet *in, char *buf, size_t len)
{
	char addr[INET_ADDRSTRLEN];

	snprintf(buf, len, "%s/%u", inet_ntop(AF_INET, &in->addr, addr,
	    sizeof(addr)), inet_masklen(in->mask));
	return (buf);
}

static int
config_show(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct if_config *ic = oid->oid_ptr;
	char text[INET_ADDRSTRLEN + 4];
	size_t used = 0;

	(void)value;
	for (unsigned i = 0; i < ic->ninet && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s",
		    used > 0 ? " " : "",
		    prefix_text(&ic->inet[i], text, sizeof(text)));
	return (0);
}

static void
inet_show(const struct ifnet *ifp, struct ctl_out *co)
{
	char text[INET_ADDRSTRLEN + 4];

	for (unsigned i = 0; i < ifp->if_ninet; i++)
		ctl_printf(co, "\tinet %s\n", prefix_text(&ifp->if_inet[i],
		    text, sizeof(text)));
}

/* The driver has copied the addresses already (if_initname()). */
static int
config_attach(struct if_config *ic)
{
	if (ic->ninet > 0)
		sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_PROC,
		    .oid_flags = CTL_TUN, .oid_ptr = ic,
		    .oid_proc = config_show,
		    .oid_descr = "IPv4 addresses" }, "if.%s.inet", ic->name);
	return (0);
}

void
inet_init(void)
{
	static struct if_family inet = {
		.fam_name = "inet", .fam_set = inet_config_set,
		.fam_attach = config_attach, .fam_show = inet_show,
		.fam_ether = arp_ifattach,
	};

	if_family_register(&inet);
}
