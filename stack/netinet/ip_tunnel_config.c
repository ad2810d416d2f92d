/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration of tunnels: if.gif0.tunnel="LOCAL REMOTE", if.gre0.key,
 * if.gif0.ttl.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "netinet/in_family.h"
#include "netinet/ip_tunnel.h"

#define	ETHER_MTU	1500

/*
 * Parses a unicast address of either family that is not link-local; IPv4 is
 * mapped.
 */
static bool
parse_end(const char *s, struct in6_addr *a)
{
	struct in_addr a4;

	if (inet_pton(AF_INET, s, &a4) == 1)
		*a = in_map(a4);
	else if (inet_pton(AF_INET6, s, a) != 1 || IN6_IS_ADDR_V4MAPPED(a))
		return (false);
	return (!in_isany(a) && !in_isgroup(a) && !in_islinklocal(a));
}

/* Parses "10.1.0.2 10.1.0.1": local and remote address. */
static int
parse_ends(struct tunnel *t, const char *spec, char *why, size_t len)
{
	char text[128], *rest, *ours, *theirs;

	snprintf(text, sizeof(text), "%s", spec);
	ours = strtok_r(text, " ", &rest);
	theirs = strtok_r(NULL, " ", &rest);
	if (ours == NULL || theirs == NULL ||
	    strtok_r(NULL, " ", &rest) != NULL || !parse_end(ours, &t->t_src) ||
	    !parse_end(theirs, &t->t_dst) ||
	    in_family(&t->t_src) != in_family(&t->t_dst) ||
	    IN6_ARE_ADDR_EQUAL(&t->t_src, &t->t_dst)) {
		snprintf(why, len, "tunnel '%s' must be two addresses of one "
		    "family, local and remote, like \"10.1.0.2 10.1.0.1", spec);
		return (EINVAL);
	}
	return (0);
}

static int
parse_key(struct tunnel *t, const char *key, char *why, size_t len)
{
	unsigned long number;
	char *end;

	if (*key == '\0')
		return (0);
	errno = 0;
	number = strtoul(key, &end, 0);
	if (*key < '0' || *key > '9' || *end != '\0' || errno != 0 ||
	    number > UINT32_MAX || !t->t_gre) {
		snprintf(why, len, "key '%s': only gre has one, a number up to "
		    "%u", key, UINT32_MAX);
		return (EINVAL);
	}
	t->t_keyed = true;
	t->t_key = htonl((uint32_t)number);
	return (0);
}

/*
 * Makes a link address from the local address, for IPv6's interface
 * identifier.
 */
static void
make_lladdr(struct tunnel *t)
{
	t->t_if.if_lladdr[0] = 2;
	t->t_if.if_lladdr[1] = t->t_gre;
	memcpy(t->t_if.if_lladdr + 2, t->t_src.s6_addr + 12, 4);
}

int
tunnel_create(const struct if_config *ic, bool gre, char *why, size_t len)
{
	struct tunnel *t = kmalloc(sizeof(*t));
	struct in_conninfo c;
	int error;

	t->t_gre = gre;
	t->t_ttl = (uint8_t)ic->ttl;
	error = parse_ends(t, ic->tunnel, why, len);
	if (error == 0)
		error = parse_key(t, ic->key, why, len);
	c = (struct in_conninfo){ .laddr = t->t_src, .faddr = t->t_dst };
	if (error == 0 && tunnel_find(&c, gre) != NULL) {
		snprintf(why, len, "another tunnel has these ends");
		error = EEXIST;
	}
	if (error != 0) {
		kfree(t);
		return (error);
	}
	t->t_overhead = in_family(&t->t_dst)->af_hdrlen + (gre ?
	    GRE_HDRLEN + (t->t_keyed ? 4U : 0) : 0);
	if_initname(&t->t_if, ic, ETHER_MTU - t->t_overhead);
	make_lladdr(t);
	t->t_if.if_softc = t;
	t->t_if.if_output = tunnel_output;
	t->t_if.if_output6 = tunnel_output6;
	if_attach(&t->t_if);
	t->t_next = tunnels;
	tunnels = t;
	return (0);
}

static int
gif_attach(const struct if_config *ic, char *why, size_t len)
{
	return (tunnel_create(ic, false, why, len));
}

static int
gre_attach(const struct if_config *ic, char *why, size_t len)
{
	return (tunnel_create(ic, true, why, len));
}

/* Called when all interfaces exist: one must have our address. */
static int
tunnel_start(struct ifnet *ifp)
{
	const struct tunnel *t = ifp->if_softc;
	const struct in_endpoint ep = { .addr = t->t_src };

	if (in_family(&t->t_src)->af_isours(&ep, true))
		return (0);
	console("%s: the first address of its tunnel must be local",
	    ifp->if_xname);
	return (EADDRNOTAVAIL);
}

static const char *
end_text(const struct in6_addr *a, char *buf)
{
	return (IN6_IS_ADDR_V4MAPPED(a) ? inet_ntop(AF_INET, a->s6_addr + 12,
	    buf, INET6_ADDRSTRLEN) : inet_ntop(AF_INET6, a, buf,
	    INET6_ADDRSTRLEN));
}

static void
tunnel_show(const struct ifnet *ifp, struct ctl_out *co)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const struct tunnel *t = ifp->if_softc;

	ctl_printf(co, "\ttunnel %s -> %s ttl %u", end_text(&t->t_src, src),
	    end_text(&t->t_dst, dst), t->t_ttl);
	if (t->t_keyed)
		ctl_printf(co, " key %u", ntohl(t->t_key));
	ctl_printf(co, "\n");
}

void
tunnel_init(void)
{
	static struct if_driver gif = { .name = "gif", .has = IFHAS_TUNNEL,
	    .attach = gif_attach, .start = tunnel_start,
	    .show = tunnel_show };
	static struct if_driver gre = { .name = "gre", .has = IFHAS_TUNNEL,
	    .attach = gre_attach, .start = tunnel_start,
	    .show = tunnel_show };

	giant_component("tunnel");
	tunnel_input_init();
	if_driver_register(&gif);
	if_driver_register(&gre);
}
