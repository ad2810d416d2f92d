/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes as people write them: in loader.conf (route.<destination>), and
 * while running as "route add", "route delete" and "route get".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "net/if_private.h"
#include "net/route.h"

#define	PREFIX		"route."

struct destination {
	struct in_addr	 net;
	unsigned	 plen;
};

/* Routes of loader.conf, until the interfaces are there; kept to be told. */
static struct route_config {
	struct route_config *next;
	struct destination dst;
	struct in_addr	 gw;
} *route_configs, **route_configs_tail = &route_configs;

/* "default" or "10.2.0.0/16" */
static int
parse_destination(const char *s, struct destination *d, char *why, size_t len)
{
	struct in_addr mask;

	*d = (struct destination){ { INADDR_ANY }, 0 };
	if (strcmp(s, "default") == 0)
		return (0);
	if (!inet_parse_prefix(s, &d->net, &mask)) {
		snprintf(why, len, "'%s' is neither default nor a subnet like "
		    "10.2.0.0/16", s);
		return (EINVAL);
	}
	d->plen = inet_masklen(mask);
	if ((d->net.s_addr & ~mask.s_addr) != 0) {
		snprintf(why, len, "'%s' has bits beyond its first %u", s,
		    d->plen);
		return (EINVAL);
	}
	return (0);
}

static int
parse_address(const char *s, struct in_addr *a, const char *what, char *why,
    size_t len)
{
	if (inet_pton(AF_INET, s, a) == 1)
		return (0);
	snprintf(why, len, "'%s' is not the address of a %s", s, what);
	return (EINVAL);
}

static int
route_config_set(const char *name, const char *value, char *why, size_t len)
{
	struct route_config rc = { 0 };
	int error;

	error = parse_destination(name + strlen(PREFIX), &rc.dst, why, len);
	if (error == 0)
		error = parse_address(value, &rc.gw, "gateway", why, len);
	if (error != 0)
		return (error);
	*route_configs_tail = kmalloc(sizeof(rc));
	**route_configs_tail = rc;
	route_configs_tail = &(*route_configs_tail)->next;
	return (0);
}

/* What the table has now: the route may have been deleted or replaced. */
static int
show_gateway(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct route_config *rc = oid->oid_ptr;
	struct in_addr gw;

	(void)value;
	if (!route_gateway(rc->dst.net, rc->dst.plen, &gw)) {
		snprintf(buf, len, "deleted");
		return (0);
	}
	return (inet_ntop(AF_INET, &gw, buf, (socklen_t)len) != NULL ? 0 :
	    EINVAL);
}

const char *
route_why_not(int error)
{
	switch (error) {
	case ENETUNREACH:
		return ("the gateway is on no interface's subnet");
	case EEXIST:
		return ("there is a route to this destination; delete it "
		    "first");
	case ESRCH:
		return ("there is no route to just this destination; "
		    "'route show' lists them");
	default:
		return (strerror(error));
	}
}

/* Adds a route of loader.conf, and a sysctl that tells it. */
static int
route_config_add(struct route_config *rc)
{
	char text[INET_ADDRSTRLEN], via[INET_ADDRSTRLEN];
	struct sysctl_oid oid = { .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
	    .oid_ptr = rc, .oid_proc = show_gateway,
	    .oid_descr = "gateway of this route" };
	int error = route_add(rc->dst.net, rc->dst.plen, rc->gw, NULL);

	inet_ntop(AF_INET, &rc->dst.net, text, sizeof(text));
	if (error != 0)
		console("route: %s/%u by %s: %s", text, rc->dst.plen,
		    inet_ntop(AF_INET, &rc->gw, via, sizeof(via)),
		    route_why_not(error));
	else if (rc->dst.plen == 0)
		sysctl_add(&oid, PREFIX "default");
	else
		sysctl_add(&oid, PREFIX "%s/%u", text, rc->dst.plen);
	return (error);
}

int
route_config_attach(void)
{
	static const struct in_addr onlink = { INADDR_ANY };
	struct route_config *rc;
	struct ifnet *ifp;
	int error = 0;

	for (ifp = ifnet_list; ifp != NULL && error == 0; ifp = ifp->if_next)
		if (ifp->if_addr.s_addr != INADDR_ANY)
			error = route_add(ifp->if_addr,
			    inet_masklen(ifp->if_mask), onlink, ifp);
	if (error != 0)
		console("route: two interfaces on one subnet");
	for (rc = route_configs; rc != NULL && error == 0; rc = rc->next)
		error = route_config_add(rc);
	return (error);
}

static int
usage(const char *text, char *why, size_t len)
{
	snprintf(why, len, "usage: %s", text);
	return (EINVAL);
}

static int
cmd_add(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	struct destination d;
	struct in_addr gw;
	int error;

	(void)co;
	if (argc != 2)
		return (usage("route add DESTINATION GATEWAY, as 'route add "
		    "10.2.0.0/16 10.1.0.1' or 'route add default 10.1.0.1'",
		    why, len));
	error = parse_destination(argv[0], &d, why, len);
	if (error == 0)
		error = parse_address(argv[1], &gw, "gateway", why, len);
	if (error != 0)
		return (error);
	error = route_add(d.net, d.plen, gw, NULL);
	if (error != 0)
		snprintf(why, len, "%s by %s: %s", argv[0], argv[1],
		    route_why_not(error));
	return (error);
}

static int
cmd_delete(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	struct destination d;
	int error;

	(void)co;
	if (argc != 1)
		return (usage("route delete DESTINATION, as 'route delete "
		    "10.2.0.0/16' or 'route delete default'", why, len));
	error = parse_destination(argv[0], &d, why, len);
	if (error != 0)
		return (error);
	error = route_delete(d.net, d.plen);
	if (error != 0)
		snprintf(why, len, "%s: %s", argv[0], route_why_not(error));
	return (error);
}

static int
cmd_get(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr dst;
	struct nhop nh;
	int error;

	if (argc != 1)
		return (usage("route get ADDRESS", why, len));
	error = parse_address(argv[0], &dst, "host", why, len);
	if (error != 0)
		return (error);
	if (!route_lookup(dst, &nh)) {
		snprintf(why, len, "no route to %s", argv[0]);
		return (ESRCH);
	}
	inet_ntop(AF_INET, &nh.nh_gw, text, sizeof(text));
	ctl_printf(co, "%s by %s on %s\n", argv[0], text, nh.nh_ifp->if_xname);
	return (0);
}

void
route_config_init(void)
{
	sysctl_register_prefix(PREFIX, route_config_set);
	ctl_command_register("route add", cmd_add);
	ctl_command_register("route delete", cmd_delete);
	ctl_command_register("route get", cmd_get);
}
