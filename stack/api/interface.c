/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program asks of interfaces: the stack's, not the kernel's, through
 * its sockets (netdevice(7)), getifaddrs() and if_nametoindex().
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "api/api.h"
#include "net/if_var.h"

static struct ifnet *
if_byindex(unsigned index)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (ifp->if_index == index)
			break;
	return (ifp);
}

static void
set_sin(struct sockaddr *sa, struct in_addr addr)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = addr };

	memcpy(sa, &sin, sizeof(sin));
}

static struct in_addr
broadcast_of(const struct ifnet *ifp)
{
	return ((struct in_addr){
	    ifp->if_addr.s_addr | ~ifp->if_mask.s_addr });
}

static short
interface_flags(const struct ifnet *ifp)
{
	if (ifp->if_loopback)
		return (IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
	return (IFF_UP | IFF_RUNNING | IFF_BROADCAST);
}

/* SIOCGIFNAME goes from index to name, the others from name to something. */
static struct ifnet *
interface_asked(unsigned long cmd, struct ifreq *req)
{
	if (cmd == SIOCGIFNAME)
		return (if_byindex((unsigned)req->ifr_ifindex));
	req->ifr_name[IFNAMSIZ - 1] = '\0';
	return (if_byname(req->ifr_name));
}

static int
interface_get(unsigned long cmd, struct ifreq *req)
{
	const struct ifnet *ifp;

	if ((ifp = interface_asked(cmd, req)) == NULL)
		return (ENODEV);
	switch (cmd) {
	case SIOCGIFADDR:
		set_sin(&req->ifr_addr, ifp->if_addr);
		return (0);
	case SIOCGIFNETMASK:
		set_sin(&req->ifr_netmask, ifp->if_mask);
		return (0);
	case SIOCGIFBRDADDR:
		set_sin(&req->ifr_broadaddr, broadcast_of(ifp));
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

/* SIOCGIFCONF: as many as there is room for; without a buffer, the size. */
static int
interface_list(struct ifconf *conf)
{
	struct ifnet *ifp;
	int used = 0;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next) {
		struct ifreq req = { 0 };

		if (conf->ifc_buf != NULL) {
			if (conf->ifc_len - used < (int)sizeof(req))
				break;
			memcpy(req.ifr_name, ifp->if_xname, IFNAMSIZ);
			set_sin(&req.ifr_addr, ifp->if_addr);
			memcpy(conf->ifc_buf + used, &req, sizeof(req));
		}
		used += (int)sizeof(req);
	}
	conf->ifc_len = used;
	return (0);
}

int
interface_ioctl(unsigned long cmd, void *arg)
{
	return (cmd == SIOCGIFCONF ? interface_list(arg) :
	    interface_get(cmd, arg));
}

/*
 * One entry of getifaddrs(), which the C library's freeifaddrs() gives back
 * with one free() for the whole list.
 */
struct entry {
	struct ifaddrs	 ifa;
	struct sockaddr_in addr, mask, brd;
	char		 name[IFNAMSIZ];
};

static void
entry_fill(struct entry *e, const struct ifnet *ifp)
{
	memcpy(e->name, ifp->if_xname, IFNAMSIZ);
	set_sin((struct sockaddr *)&e->addr, ifp->if_addr);
	set_sin((struct sockaddr *)&e->mask, ifp->if_mask);
	set_sin((struct sockaddr *)&e->brd, broadcast_of(ifp));
	e->ifa.ifa_name = e->name;
	e->ifa.ifa_flags = (unsigned)interface_flags(ifp);
	e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
	e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
	if (!ifp->if_loopback)
		e->ifa.ifa_broadaddr = (struct sockaddr *)&e->brd;
}

EXPORT int
getifaddrs(struct ifaddrs **list)
{
	const struct ifnet *ifp;
	struct entry *entries;
	size_t n = 0;

	if (api_state() != API_UP)
		return (real.getifaddrs(list));
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		n++;
	entries = calloc(n, sizeof(*entries));
	if (entries == NULL)
		return ((int)api_return(ENOMEM, 0));
	for (ifp = ifnet_list, n = 0; ifp != NULL; ifp = ifp->if_next, n++) {
		entry_fill(&entries[n], ifp);
		if (ifp->if_next != NULL)
			entries[n].ifa.ifa_next = &entries[n + 1].ifa;
	}
	*list = &entries->ifa;
	return (0);
}

EXPORT unsigned
if_nametoindex(const char *name)
{
	const struct ifnet *ifp;

	if (api_state() != API_UP)
		return (real.if_nametoindex(name));
	ifp = if_byname(name);
	if (ifp == NULL)
		errno = ENODEV;
	return (ifp != NULL ? ifp->if_index : 0);
}

EXPORT char *
if_indextoname(unsigned index, char name[IFNAMSIZ])
{
	const struct ifnet *ifp;

	if (api_state() != API_UP)
		return (real.if_indextoname(index, name));
	ifp = if_byindex(index);
	if (ifp == NULL) {
		errno = ENXIO;
		return (NULL);
	}
	return (memcpy(name, ifp->if_xname, IFNAMSIZ));
}
