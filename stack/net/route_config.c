/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Textual routes of all families: in loader.conf (route.<destination>,
 * route6.<destination>), and while running by "route add", "route delete" and
 * "route get".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "net/if_config.h"
#include "net/route.h"

#define	FAMILIES_MAX	2

static const struct route_family *families[FAMILIES_MAX];	/* [I] at boot */
static unsigned nfamilies;					/* [I] at boot */

/*
 * Routes of loader.conf, added when the interfaces exist; kept for their
 * sysctls.
 */
static struct route_config {
	struct route_config *next;
	const struct route_family *family;
	struct in6_addr	 dst, gw;
	unsigned	 plen;
} *route_configs, **route_configs_tail = &route_configs;

/* The family of a command ("route add") or tunable ("route.x"). */
static const struct route_family *
family_of(const char *name)
{
	const size_t len = strcspn(name, " .");
	unsigned i = 0;

	while (strlen(families[i]->rf_command) != len ||
	    strncmp(families[i]->rf_command, name, len) != 0)
		if (++i == nfamilies)
			panic("family_of: '%s'", name);
	return (families[i]);
}

/* The family's own address within one of 16 bytes. */
static void *
own_part(const struct route_family *rf, struct in6_addr *a)
{
	return (rf->rf_domain == AF_INET ? a->s6_addr + 12 : a->s6_addr);
}

static const char *
print_address(const struct route_family *rf, const struct in6_addr *a,
    char *buf, size_t len)
{
	struct in6_addr copy = *a;

	return (inet_ntop(rf->rf_domain, own_part(rf, &copy), buf,
	    (socklen_t)len));
}

/* Whether any of the last n bits is set. */
static bool
has_tail(const struct in6_addr *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (a->s6_addr[15 - i / 8] >> (i % 8) & 1)
			return (true);
	return (false);
}

/* Parses "default", or a subnet in the family's notation. */
static int
parse_destination(struct route_config *rc, const char *s, char *why,
    size_t len)
{
	const struct route_family *rf = rc->family;
	const unsigned bits = rf->rf_domain == AF_INET ? 32 : 128;

	rc->dst = rf->rf_any;
	rc->plen = 0;
	if (strcmp(s, "default") == 0)
		return (0);
	if (!in_parse_prefix(rf->rf_domain, s, own_part(rf, &rc->dst),
	    &rc->plen) || IN6_IS_ADDR_MULTICAST(&rc->dst)) {
		snprintf(why, len, "'%s' is neither default nor a subnet like "
		    "%s", s, rf->rf_subnet);
		return (EINVAL);
	}
	if (has_tail(&rc->dst, bits - rc->plen)) {
		snprintf(why, len, "'%s' has bits beyond its first %u", s,
		    rc->plen);
		return (EINVAL);
	}
	return (0);
}

static int
parse_address(const struct route_family *rf, const char *s,
    struct in6_addr *a, const char *what, char *why, size_t len)
{
	*a = rf->rf_any;
	if (inet_pton(rf->rf_domain, s, own_part(rf, a)) == 1 &&
	    !IN6_IS_ADDR_MULTICAST(a))
		return (0);
	snprintf(why, len, "'%s' is not the %saddress of a %s", s,
	    rf->rf_domain == AF_INET ? "" : "IPv6 ", what);
	return (EINVAL);
}

static int
parse_route(struct route_config *rc, const char *dst, const char *gw,
    char *why, size_t len)
{
	int error = parse_destination(rc, dst, why, len);

	return (error != 0 ? error : parse_address(rc->family, gw, &rc->gw,
	    "gateway", why, len));
}

/* route.default="10.1.0.1", route6.2001:db8:2::/48="2001:db8:1::1" */
static int
config_set(const char *name, const char *value, char *why, size_t len)
{
	struct route_config rc = { .family = family_of(name) };
	int error;

	error = parse_route(&rc, strchr(name, '.') + 1, value, why, len);
	if (error != 0)
		return (error);
	*route_configs_tail = kmalloc(sizeof(rc));
	**route_configs_tail = rc;
	route_configs_tail = &(*route_configs_tail)->next;
	return (0);
}

/* The current gateway: the route may have been deleted or replaced. */
static int
show_gateway(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct route_config *rc = oid->oid_ptr;
	struct in6_addr gw;

	(void)value;
	if (!rc->family->rf_gateway(&rc->dst, rc->plen, &gw)) {
		snprintf(buf, len, "deleted");
		return (0);
	}
	return (print_address(rc->family, &gw, buf, len) != NULL ? 0 : EINVAL);
}

const char *
route_why_not(int error)
{
	switch (error) {
	case ENETUNREACH:
		return ("the gateway is not in an interface's subnet");
	case EEXIST:
		return ("a route to this destination exists; delete it first");
	case ESRCH:
		return ("no route has exactly this destination; 'route show' "
		    "and 'route6 show' list them");
	default:
		return (strerror(error));
	}
}

/* Adds a route of loader.conf, and a sysctl for it. */
static int
config_add(struct route_config *rc)
{
	const struct route_family *rf = rc->family;
	char text[INET6_ADDRSTRLEN], via[INET6_ADDRSTRLEN];
	struct sysctl_oid oid = { .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
	    .oid_ptr = rc, .oid_proc = show_gateway,
	    .oid_descr = "gateway of this route" };
	int error = rf->rf_add(&rc->dst, rc->plen, &rc->gw);

	print_address(rf, &rc->dst, text, sizeof(text));
	print_address(rf, &rc->gw, via, sizeof(via));
	if (error != 0)
		console("%s: %s/%u by %s: %s", rf->rf_command, text, rc->plen,
		    via, route_why_not(error));
	else if (rc->plen == 0)
		sysctl_add(&oid, "%s.default", rf->rf_command);
	else
		sysctl_add(&oid, "%s.%s/%u", rf->rf_command, text, rc->plen);
	return (error);
}

int
route_config_attach(void)
{
	struct route_config *rc;
	int error = 0;

	for (rc = route_configs; rc != NULL && error == 0; rc = rc->next)
		error = config_add(rc);
	return (error);
}

static int
cmd_add(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	struct route_config rc = { .family = family_of(command) };
	int error;

	(void)co;
	if (argc != 2) {
		snprintf(why, len, "usage: %s DESTINATION GATEWAY, for "
		    "example '%s %s %s' or '%s default %s'", command, command,
		    rc.family->rf_subnet, rc.family->rf_gwname, command,
		    rc.family->rf_gwname);
		return (EINVAL);
	}
	error = parse_route(&rc, argv[0], argv[1], why, len);
	if (error != 0)
		return (error);
	error = rc.family->rf_add(&rc.dst, rc.plen, &rc.gw);
	if (error != 0)
		snprintf(why, len, "%s by %s: %s", argv[0], argv[1],
		    route_why_not(error));
	return (error);
}

static int
cmd_delete(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	struct route_config rc = { .family = family_of(command) };
	int error;

	(void)co;
	if (argc != 1) {
		snprintf(why, len, "usage: %s DESTINATION, for example '%s "
		    "%s' or '%s default'", command, command, rc.family->rf_subnet,
		    command);
		return (EINVAL);
	}
	error = parse_destination(&rc, argv[0], why, len);
	if (error != 0)
		return (error);
	error = rc.family->rf_delete(&rc.dst, rc.plen);
	if (error != 0)
		snprintf(why, len, "%s: %s", argv[0], route_why_not(error));
	return (error);
}

static int
cmd_get(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	const struct route_family *rf = family_of(command);
	struct in6_addr dst, gw = rf->rf_any;
	char text[INET6_ADDRSTRLEN];
	struct ifnet *ifp;
	int error;

	if (argc != 1) {
		snprintf(why, len, "usage: %s ADDRESS", command);
		return (EINVAL);
	}
	error = parse_address(rf, argv[0], &dst, "host", why, len);
	if (error != 0)
		return (error);
	if (!rf->rf_lookup(&dst, &gw, &ifp)) {
		snprintf(why, len, "no route to %s", argv[0]);
		return (ESRCH);
	}
	ctl_printf(co, "%s by %s on %s\n", argv[0], print_address(rf, &gw,
	    text, sizeof(text)), ifp->if_xname);
	return (0);
}

/* Allocates a name that is never freed. */
static const char *
name_of(const struct route_family *rf, const char *rest)
{
	const size_t len = strlen(rf->rf_command) + strlen(rest) + 1;
	char *name = kmalloc(len);

	snprintf(name, len, "%s%s", rf->rf_command, rest);
	return (name);
}

static void
netstat_show(struct ctl_out *co)
{
	for (unsigned i = 0; i < nfamilies; i++) {
		if (i > 0)
			ctl_printf(co, "\n");
		families[i]->rf_show(co);
	}
}

void
route_config_init(void)
{
	ctl_view_register("netstat -r", netstat_show);
}

void
route_family_register(const struct route_family *rf)
{
	KASSERT(nfamilies < FAMILIES_MAX, ("route_family_register: %s",
	    rf->rf_command));
	families[nfamilies++] = rf;
	sysctl_register_prefix(name_of(rf, "."), config_set);
	ctl_view_register(name_of(rf, " show"), rf->rf_show);
	ctl_command_register(name_of(rf, " add"), cmd_add);
	ctl_command_register(name_of(rf, " delete"), cmd_delete);
	ctl_command_register(name_of(rf, " get"), cmd_get);
}
