/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 routes as people write them: in loader.conf (route6.<destination>),
 * and while running as "route6 add", "route6 delete" and "route6 get".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "net/if_private.h"
#include "net/route.h"
#include "netinet6/ip6_private.h"

#define	PREFIX		"route6."

/* Routes of loader.conf, until the interfaces are there; kept to be told. */
static struct route6_config {
	struct route6_config *next;
	struct in6_addr	 dst, gw;
	unsigned	 plen;
} *configs, **configs_tail = &configs;

bool
in6_parse_prefix(const char *s, struct in6_addr *addr, unsigned *plen)
{
	char text[INET6_ADDRSTRLEN], *end;
	const char *slash = strchr(s, '/');
	unsigned long n;

	if (slash == NULL || (size_t)(slash - s) >= sizeof(text))
		return (false);
	memcpy(text, s, (size_t)(slash - s));
	text[slash - s] = '\0';
	n = strtoul(slash + 1, &end, 10);
	if (inet_pton(AF_INET6, text, addr) != 1 || slash[1] < '0' ||
	    slash[1] > '9' || *end != '\0' || n > 128)
		return (false);
	*plen = (unsigned)n;
	return (true);
}

/* "default" or "2001:db8:2::/48" */
static int
parse_destination(const char *s, struct route6_config *rc, char *why,
    size_t len)
{
	struct in6_addr net;

	rc->dst = in6addr_any;
	rc->plen = 0;
	if (strcmp(s, "default") == 0)
		return (0);
	if (!in6_parse_prefix(s, &rc->dst, &rc->plen) ||
	    IN6_IS_ADDR_MULTICAST(&rc->dst)) {
		snprintf(why, len, "'%s' is neither default nor a subnet like "
		    "2001:db8:2::/48", s);
		return (EINVAL);
	}
	net = in6_prefix(&rc->dst, rc->plen);
	if (!IN6_ARE_ADDR_EQUAL(&net, &rc->dst)) {
		snprintf(why, len, "'%s' has bits beyond its first %u", s,
		    rc->plen);
		return (EINVAL);
	}
	return (0);
}

static int
parse_address(const char *s, struct in6_addr *a, const char *what, char *why,
    size_t len)
{
	if (inet_pton(AF_INET6, s, a) == 1 && !IN6_IS_ADDR_MULTICAST(a))
		return (0);
	snprintf(why, len, "'%s' is not the IPv6 address of a %s", s, what);
	return (EINVAL);
}

static int
parse_route(const char *dst, const char *gw, struct route6_config *rc,
    char *why, size_t len)
{
	int error = parse_destination(dst, rc, why, len);

	return (error != 0 ? error :
	    parse_address(gw, &rc->gw, "gateway", why, len));
}

/* route6.default="2001:db8:1::1", route6.2001:db8::/32="2001:db8:1::1" */
static int
config_set(const char *name, const char *value, char *why, size_t len)
{
	struct route6_config rc = { .next = NULL };
	int error = parse_route(name + strlen(PREFIX), value, &rc, why, len);

	if (error != 0)
		return (error);
	*configs_tail = kmalloc(sizeof(rc));
	**configs_tail = rc;
	configs_tail = &(*configs_tail)->next;
	return (0);
}

/* What the table has now: the route may have been deleted or replaced. */
static int
show_gateway(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct route6_config *rc = oid->oid_ptr;
	struct in6_addr gw;

	(void)value;
	if (!route6_gateway(&rc->dst, rc->plen, &gw)) {
		snprintf(buf, len, "deleted");
		return (0);
	}
	return (inet_ntop(AF_INET6, &gw, buf, (socklen_t)len) != NULL ? 0 :
	    EINVAL);
}

static int
config_add(struct route6_config *rc)
{
	char text[INET6_ADDRSTRLEN], via[INET6_ADDRSTRLEN];
	struct sysctl_oid oid = { .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
	    .oid_ptr = rc, .oid_proc = show_gateway,
	    .oid_descr = "gateway of this route" };
	int error;

	error = route6_add(&rc->dst, rc->plen, &rc->gw, NULL, 0);
	inet_ntop(AF_INET6, &rc->dst, text, sizeof(text));
	inet_ntop(AF_INET6, &rc->gw, via, sizeof(via));
	if (error != 0)
		console("route6: %s/%u by %s: %s", text, rc->plen, via,
		    route_why_not(error));
	else if (rc->plen == 0)
		sysctl_add(&oid, PREFIX "default");
	else
		sysctl_add(&oid, PREFIX "%s/%u", text, rc->plen);
	return (error);
}

int
route6_config_attach(void)
{
	struct route6_config *rc;
	int error = 0;

	for (rc = configs; rc != NULL && error == 0; rc = rc->next)
		error = config_add(rc);
	return (error);
}

static int
cmd_add(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	struct route6_config rc;
	int error;

	(void)co;
	if (argc != 2) {
		snprintf(why, len, "usage: route6 add DESTINATION GATEWAY, as "
		    "'route6 add 2001:db8:2::/48 2001:db8:1::1'");
		return (EINVAL);
	}
	error = parse_route(argv[0], argv[1], &rc, why, len);
	if (error != 0)
		return (error);
	error = route6_add(&rc.dst, rc.plen, &rc.gw, NULL, 0);
	if (error != 0)
		snprintf(why, len, "%s by %s: %s", argv[0], argv[1],
		    route_why_not(error));
	return (error);
}

/* Addresses of this host and its subnets go with their interfaces only. */
static int
cmd_delete(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	struct route6_config rc;
	struct in6_addr gw;
	int error;

	(void)co;
	if (argc != 1) {
		snprintf(why, len, "usage: route6 delete DESTINATION, as "
		    "'route6 delete 2001:db8:2::/48' or 'default'");
		return (EINVAL);
	}
	error = parse_destination(argv[0], &rc, why, len);
	if (error != 0)
		return (error);
	if (!route6_gateway(&rc.dst, rc.plen, &gw) ||
	    IN6_IS_ADDR_UNSPECIFIED(&gw))
		error = ESRCH;
	else
		error = route6_delete(&rc.dst, rc.plen, 0);
	if (error != 0)
		snprintf(why, len, "%s: %s", argv[0], route_why_not(error));
	return (error);
}

static int
cmd_get(struct ctl_out *co, int argc, char *argv[], char *why, size_t len)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr dst;
	struct nhop6 nh;
	int error;

	if (argc != 1) {
		snprintf(why, len, "usage: route6 get ADDRESS");
		return (EINVAL);
	}
	error = parse_address(argv[0], &dst, "host", why, len);
	if (error != 0)
		return (error);
	if (!route6_lookup(&dst, 0, &nh)) {
		snprintf(why, len, "no route to %s", argv[0]);
		return (ESRCH);
	}
	inet_ntop(AF_INET6, &nh.nh_gw, text, sizeof(text));
	ctl_printf(co, "%s by %s on %s\n", argv[0], text, nh.nh_ifp->if_xname);
	return (0);
}

void
route6_config_init(void)
{
	sysctl_register_prefix(PREFIX, config_set);
	ctl_command_register("route6 add", cmd_add);
	ctl_command_register("route6 delete", cmd_delete);
	ctl_command_register("route6 get", cmd_get);
}
