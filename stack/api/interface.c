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

#include "api/api.h"
#include "net/if_var.h"
#include "netinet6/ip6_var.h"

static void
set_sin(struct sockaddr *sa, struct in_addr addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = addr };

	memcpy(sa, &sin, sizeof(sin));
}

static struct in_addr
broadcast_of(const struct if_inet *in)
{
	return ((struct in_addr){ in->addr.s_addr | ~in->mask.s_addr });
}

static short
interface_flags(const struct ifnet *ifp)
{
	if (ifp->if_loopback)
		return (IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
	return (IFF_UP | IFF_RUNNING | IFF_BROADCAST);
}

/* The loopback interface has Linux's name, too. */
static struct ifnet *
interface_named(const char *name)
{
	return (if_byname(strcmp(name, "lo") == 0 ? "lo0" : name));
}

/* SIOCGIFNAME maps an index to a name; the others take a name. */
static struct ifnet *
interface_asked(unsigned long cmd, struct ifreq *req)
{
	if (cmd == SIOCGIFNAME)
		return (if_byindex((unsigned)req->ifr_ifindex));
	req->ifr_name[IFNAMSIZ - 1] = '\0';
	return (interface_named(req->ifr_name));
}

static int
interface_get(unsigned long cmd, struct ifreq *req)
{
	const struct ifnet *ifp;

	if ((ifp = interface_asked(cmd, req)) == NULL)
		return (ENODEV);
	switch (cmd) {
	case SIOCGIFADDR:
		if (ifp->if_addr.s_addr == INADDR_ANY)
			return (EADDRNOTAVAIL);
		set_sin(&req->ifr_addr, ifp->if_addr);
		return (0);
	case SIOCGIFNETMASK:
		set_sin(&req->ifr_netmask, ifp->if_mask);
		return (0);
	case SIOCGIFBRDADDR:
		set_sin(&req->ifr_broadaddr, broadcast_of(ifp->if_inet));
		return (0);
	case SIOCGIFNAME:
		memcpy(req->ifr_name, ifp->if_xname, IFNAMSIZ);
		return (0);
	case SIOCGIFHWADDR:
		req->ifr_hwaddr.sa_family = ifp->if_loopback ?
		    ARPHRD_LOOPBACK : ARPHRD_ETHER;
		memcpy(req->ifr_hwaddr.sa_data, ifp->if_lladdr,
		    sizeof(ifp->if_lladdr));
		return (0);
	case SIOCGIFFLAGS:
		req->ifr_flags = interface_flags(ifp);
		return (0);
	case SIOCGIFMTU:
		req->ifr_mtu = (int)ifp->if_mtu;
		return (0);
	case SIOCGIFINDEX:
		req->ifr_ifindex = (int)ifp->if_index;
		return (0);
	default:
		return (EINVAL);
	}
}

/* Appends an interface's IPv4 addresses to the list after used bytes. */
static int
interface_append(const struct ifnet *ifp, const struct ifconf *conf, int used)
{
	struct ifreq req = { 0 };

	memcpy(req.ifr_name, ifp->if_xname, IFNAMSIZ);
	for (unsigned i = 0; i < ifp->if_ninet; i++) {
		if (conf->ifc_buf != NULL) {
			if (conf->ifc_len - used < (int)sizeof(req))
				break;
			set_sin(&req.ifr_addr, ifp->if_inet[i].addr);
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
	struct ifnet *ifp;
	int used = 0;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		used = interface_append(ifp, conf, used);
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

#define	ADDRS6_MAX	16	/* max listed for an interface */

/* Fills in what both families share. */
static void
entry_init(struct entry *e, const struct ifnet *ifp)
{
	memcpy(e->name, ifp->if_xname, IFNAMSIZ);
	e->ifa.ifa_name = e->name;
	e->ifa.ifa_flags = (unsigned)interface_flags(ifp);
	e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
	e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
}

static void
entry_inet(struct entry *e, const struct ifnet *ifp, const struct if_inet *in)
{
	entry_init(e, ifp);
	set_sin(e->ifa.ifa_addr, in->addr);
	set_sin(e->ifa.ifa_netmask, in->mask);
	if (ifp->if_loopback)
		return;
	e->ifa.ifa_broadaddr = (struct sockaddr *)&e->brd;
	set_sin(e->ifa.ifa_broadaddr, broadcast_of(in));
}

static void
entry_inet6(struct entry *e, const struct ifnet *ifp,
    const struct in6_addr *addr, unsigned plen)
{
	entry_init(e, ifp);
	e->addr.sin6_family = e->mask.sin6_family = AF_INET6;
	e->addr.sin6_addr = *addr;
	if (IN6_IS_ADDR_LINKLOCAL(addr))
		e->addr.sin6_scope_id = ifp->if_index;
	for (unsigned bit = 0; bit < plen; bit++)
		e->mask.sin6_addr.s6_addr[bit / 8] |=
		    (uint8_t)(0x80 >> bit % 8);
}

/* Fills the entries of an interface; returns their number. */
static unsigned
entries_of(const struct ifnet *ifp, struct entry *e)
{
	struct in6_addr addr[ADDRS6_MAX];
	unsigned plen[ADDRS6_MAX], n6, n = 0;

	for (unsigned i = 0; i < ifp->if_ninet; i++)
		entry_inet(&e[n++], ifp, &ifp->if_inet[i]);
	n6 = in6_addr_list(ifp, addr, plen, ADDRS6_MAX);
	for (unsigned i = 0; i < n6; i++)
		entry_inet6(&e[n++], ifp, &addr[i], plen[i]);
	return (n);
}

EXPORT int
getifaddrs(struct ifaddrs **list)
{
	const struct ifnet *ifp;
	struct entry *entries;
	size_t room = 1, n = 0;

	if (api_state() == API_PASSIVE)
		return (real.getifaddrs(list));
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		room += IF_INET_MAX + ADDRS6_MAX;
	entries = calloc(room, sizeof(*entries));
	if (entries == NULL)
		return ((int)api_return(ENOMEM, 0));
	api_enter();
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		n += entries_of(ifp, &entries[n]);
	api_leave(0);
	for (size_t i = 1; i < n; i++)
		entries[i - 1].ifa.ifa_next = &entries[i].ifa;
	*list = &entries->ifa;
	if (n == 0) {
		free(entries);
		*list = NULL;
	}
	return (0);
}

/* One allocation for each part, because if_freenameindex() frees each. */
EXPORT struct if_nameindex *
if_nameindex(void)
{
	const struct ifnet *ifp;
	struct if_nameindex *list;
	size_t n = 0;

	if (api_state() == API_PASSIVE)
		return (real.if_nameindex());
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (list == NULL) {
		errno = ENOBUFS;
		return (NULL);
	}
	n = 0;
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next, n++) {
		list[n].if_index = ifp->if_index;
		list[n].if_name = strdup(ifp->if_xname);
	}
	return (list);
}

EXPORT unsigned
if_nametoindex(const char *name)
{
	const struct ifnet *ifp;

	if (api_state() == API_PASSIVE)
		return (real.if_nametoindex(name));
	ifp = interface_named(name);
	if (ifp == NULL)
		errno = ENODEV;
	return (ifp != NULL ? ifp->if_index : 0);
}

EXPORT char *
if_indextoname(unsigned index, char name[IFNAMSIZ])
{
	const struct ifnet *ifp;

	if (api_state() == API_PASSIVE)
		return (real.if_indextoname(index, name));
	ifp = if_byindex(index);
	if (ifp == NULL) {
		errno = ENXIO;
		return (NULL);
	}
	return (memcpy(name, ifp->if_xname, IFNAMSIZ));
}
