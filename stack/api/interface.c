/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Information about interfaces: the stack's, not the kernel's, through its
 * sockets (netdevice(7)), getifaddrs() and if_nametoindex().
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "api/remote.h"
#include "net/if_var.h"
#include "netinet6/ip6_var.h"

static void
describe(const struct ifnet *ifp, struct interface *in)
{
	memset(in, 0, sizeof(*in));
	memcpy(in->name, ifp->if_xname, IFNAMSIZ);
	in->index = ifp->if_index;
	in->mtu = ifp->if_mtu;
	in->loopback = ifp->if_loopback;
	memcpy(in->lladdr, ifp->if_lladdr, sizeof(in->lladdr));
	in->n4 = ifp->if_ninet;
	for (unsigned i = 0; i < in->n4; i++) {
		in->addr4[i] = ifp->if_inet[i].addr;
		in->mask4[i] = ifp->if_inet[i].mask;
	}
	in->n6 = in6_addr_list(ifp, in->addr6, in->plen6, ADDRS6_MAX);
}

unsigned
interface_describe(struct interface *list, unsigned room)
{
	const struct ifnet *ifp;
	unsigned n = 0;

	for (ifp = ifnet_list; ifp != NULL && n < room; ifp = ifp->if_next)
		describe(ifp, &list[n++]);
	return (n);
}

/* Allocated for free(); *n is 0 without memory, or without the stack. */
static struct interface *
interfaces(unsigned *n)
{
	struct interface *list = malloc(INTERFACES_MAX * sizeof(*list));

	*n = 0;
	if (list == NULL)
		return (NULL);
	api_enter();
	*n = api_state() == API_CLIENT ? remote_interfaces(list) :
	    interface_describe(list, INTERFACES_MAX);
	api_leave(0);
	return (list);
}

/* Stores the one with a name, or an index if the name is NULL. */
static bool
interface_find(const char *name, unsigned index, struct interface *found)
{
	struct interface *list;
	unsigned n, i;

	/* the loopback interface has Linux's name, too */
	if (name != NULL && strcmp(name, "lo") == 0)
		name = "lo0";
	list = interfaces(&n);
	for (i = 0; i < n; i++)
		if (name != NULL ? strcmp(list[i].name, name) == 0 :
		    list[i].index == index)
			break;
	if (i < n)
		*found = list[i];
	free(list);
	return (i < n);
}

static void
set_sin(struct sockaddr *sa, struct in_addr addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = addr };

	memcpy(sa, &sin, sizeof(sin));
}

static struct in_addr
broadcast_of(const struct interface *in, unsigned i)
{
	return ((struct in_addr){ in->addr4[i].s_addr |
	    ~in->mask4[i].s_addr });
}

static short
interface_flags(const struct interface *in)
{
	if (in->loopback)
		return (IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
	return (IFF_UP | IFF_RUNNING | IFF_BROADCAST);
}

/* SIOCGIFNAME maps an index to a name; the others take a name. */
static bool
interface_asked(unsigned long cmd, struct ifreq *req, struct interface *in)
{
	if (cmd == SIOCGIFNAME)
		return (interface_find(NULL, (unsigned)req->ifr_ifindex, in));
	req->ifr_name[IFNAMSIZ - 1] = '\0';
	return (interface_find(req->ifr_name, 0, in));
}

static int
interface_get(unsigned long cmd, struct ifreq *req)
{
	struct interface in;

	if (!interface_asked(cmd, req, &in))
		return (ENODEV);
	switch (cmd) {
	case SIOCGIFADDR:
		if (in.n4 == 0)
			return (EADDRNOTAVAIL);
		set_sin(&req->ifr_addr, in.addr4[0]);
		return (0);
	case SIOCGIFNETMASK:
		set_sin(&req->ifr_netmask, in.mask4[0]);
		return (0);
	case SIOCGIFBRDADDR:
		set_sin(&req->ifr_broadaddr, broadcast_of(&in, 0));
		return (0);
	case SIOCGIFNAME:
		memcpy(req->ifr_name, in.name, IFNAMSIZ);
		return (0);
	case SIOCGIFHWADDR:
		req->ifr_hwaddr.sa_family = in.loopback ?
		    ARPHRD_LOOPBACK : ARPHRD_ETHER;
		memcpy(req->ifr_hwaddr.sa_data, in.lladdr, sizeof(in.lladdr));
		return (0);
	case SIOCGIFFLAGS:
		req->ifr_flags = interface_flags(&in);
		return (0);
	case SIOCGIFMTU:
		req->ifr_mtu = (int)in.mtu;
		return (0);
	case SIOCGIFINDEX:
		req->ifr_ifindex = (int)in.index;
		return (0);
	default:
		return (EINVAL);
	}
}

/* Appends an interface's IPv4 addresses to the list after used bytes. */
static int
interface_append(const struct interface *in, const struct ifconf *conf,
    int used)
{
	struct ifreq req = { 0 };

	memcpy(req.ifr_name, in->name, IFNAMSIZ);
	for (unsigned i = 0; i < in->n4; i++) {
		if (conf->ifc_buf != NULL) {
			if (conf->ifc_len - used < (int)sizeof(req))
				break;
			set_sin(&req.ifr_addr, in->addr4[i]);
			memcpy(conf->ifc_buf + used, &req, sizeof(req));
		}
		used += (int)sizeof(req);
	}
	return (used);
}

/* SIOCGIFCONF: as many entries as fit; without a buffer, the size. */
static int
interface_list(struct ifconf *conf)
{
	struct interface *list;
	unsigned n;
	int used = 0;

	list = interfaces(&n);
	for (unsigned i = 0; i < n; i++)
		used = interface_append(&list[i], conf, used);
	free(list);
	conf->ifc_len = used;
	return (0);
}

/* Requests that interface_get() serves; others write nothing (ioctl(2)). */
int
interface_ioctl(unsigned long cmd, void *arg)
{
	switch (cmd) {
	case SIOCGIFCONF:
		return (interface_list(arg));
	case SIOCGIFADDR:
	case SIOCGIFNETMASK:
	case SIOCGIFBRDADDR:
	case SIOCGIFNAME:
	case SIOCGIFHWADDR:
	case SIOCGIFFLAGS:
	case SIOCGIFMTU:
	case SIOCGIFINDEX:
		return (interface_get(cmd, arg));
	default:
		return (ENOTTY);
	}
}

/*
 * One entry of getifaddrs().  The list is one allocation, because the C
 * library's freeifaddrs() frees it with one free().
 */
struct entry {
	struct ifaddrs	 ifa;
	struct sockaddr_in6 addr, mask, brd;	/* or sockaddr_in */
	char		 name[IFNAMSIZ];
};

/* Fills in what both families share. */
static void
entry_init(struct entry *e, const struct interface *in)
{
	memcpy(e->name, in->name, IFNAMSIZ);
	e->ifa.ifa_name = e->name;
	e->ifa.ifa_flags = (unsigned)interface_flags(in);
	e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
	e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
}

static void
entry_inet(struct entry *e, const struct interface *in, unsigned i)
{
	entry_init(e, in);
	set_sin(e->ifa.ifa_addr, in->addr4[i]);
	set_sin(e->ifa.ifa_netmask, in->mask4[i]);
	if (in->loopback)
		return;
	e->ifa.ifa_broadaddr = (struct sockaddr *)&e->brd;
	set_sin(e->ifa.ifa_broadaddr, broadcast_of(in, i));
}

static void
entry_inet6(struct entry *e, const struct interface *in, unsigned i)
{
	entry_init(e, in);
	e->addr.sin6_family = e->mask.sin6_family = AF_INET6;
	e->addr.sin6_addr = in->addr6[i];
	if (IN6_IS_ADDR_LINKLOCAL(&in->addr6[i]))
		e->addr.sin6_scope_id = in->index;
	for (unsigned bit = 0; bit < in->plen6[i]; bit++)
		e->mask.sin6_addr.s6_addr[bit / 8] |=
		    (uint8_t)(0x80 >> bit % 8);
}

/* The entries of n interfaces; *count of them.  NULL: no memory. */
static struct entry *
entries_of(const struct interface *list, unsigned n, size_t *count)
{
	struct entry *e;

	*count = 0;
	for (unsigned i = 0; i < n; i++)
		*count += list[i].n4 + list[i].n6;
	e = calloc(*count + 1, sizeof(*e));
	*count = 0;
	for (unsigned i = 0; i < n && e != NULL; i++) {
		for (unsigned k = 0; k < list[i].n4; k++)
			entry_inet(&e[(*count)++], &list[i], k);
		for (unsigned k = 0; k < list[i].n6; k++)
			entry_inet6(&e[(*count)++], &list[i], k);
	}
	return (e);
}

EXPORT int
getifaddrs(struct ifaddrs **result)
{
	struct interface *list;
	struct entry *entries;
	unsigned n;
	size_t count;

	if (api_state() == API_PASSIVE)
		return (real.getifaddrs(result));
	list = interfaces(&n);
	entries = entries_of(list, n, &count);
	free(list);
	if (entries == NULL)
		return ((int)api_return(ENOMEM, 0));
	for (size_t i = 1; i < count; i++)
		entries[i - 1].ifa.ifa_next = &entries[i].ifa;
	*result = &entries->ifa;
	if (count == 0) {
		free(entries);
		*result = NULL;
	}
	return (0);
}

/* One allocation for each part, because if_freenameindex() frees each. */
EXPORT struct if_nameindex *
if_nameindex(void)
{
	struct interface *list;
	struct if_nameindex *result;
	unsigned n;

	if (api_state() == API_PASSIVE)
		return (real.if_nameindex());
	list = interfaces(&n);
	result = calloc(n + 1, sizeof(*result));
	for (unsigned i = 0; i < n && result != NULL; i++) {
		result[i].if_index = list[i].index;
		result[i].if_name = strdup(list[i].name);
	}
	free(list);
	if (result == NULL)
		errno = ENOBUFS;
	return (result);
}

EXPORT unsigned
if_nametoindex(const char *name)
{
	struct interface in;

	if (api_state() == API_PASSIVE)
		return (real.if_nametoindex(name));
	if (interface_find(name, 0, &in))
		return (in.index);
	errno = ENODEV;
	return (0);
}

EXPORT char *
if_indextoname(unsigned index, char name[IFNAMSIZ])
{
	struct interface in;

	if (api_state() == API_PASSIVE)
		return (real.if_indextoname(index, name));
	if (interface_find(NULL, index, &in))
		return (memcpy(name, in.name, IFNAMSIZ));
	errno = ENXIO;
	return (NULL);
}

bool
interface_global6(void)
{
	struct interface *list;
	unsigned n;
	bool global = false;

	if (api_state() == API_UP)
		return (in6_global());
	list = interfaces(&n);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n6; k++)
			global = global || (!list[i].loopback &&
			    !IN6_IS_ADDR_LINKLOCAL(&list[i].addr6[k]));
	free(list);
	return (global);
}
