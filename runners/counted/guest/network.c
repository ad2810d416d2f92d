/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Three hosts in network namespaces, joined by two pairs of veth(4):
 *
 *     left  10.1.0.1 fd01::1 --- .2 router .2 --- 10.2.0.1 fd02::1  right
 *
 * Set up by rtnetlink(7), because then the guest needs no other program.
 *
 * Linux hashes a neighbour by its address, a random number and the address of
 * its net_device in memory (arp_hashfn(), ndisc_hashfn()).  The latter moves
 * with the kernel's layout, and a longer chain would look like a cost of a
 * patch.  So idle neighbours make the tables large; then the neighbours of the
 * hosts are added, and Linux puts the newest one at the head of its chain.
 * They are permanent, so no packet resolves them and no timer moves them.
 */
#define _GNU_SOURCE
#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define IDLE_NEIGHBOURS	1000	/* of each family: a table of 1024 chains */

/* The ends of a pair of veth. */
struct ends {
	unsigned char	near[6];
	unsigned char	far[6];
};

static const struct ends left_pair = { { 2, 0, 0, 0, 1, 2 }, { 2, 0, 0, 0, 1, 1 } };
static const struct ends right_pair = { { 2, 0, 0, 0, 2, 2 }, { 2, 0, 0, 0, 2, 1 } };

static int	namespaces[HOSTS];

static struct {
	struct nlmsghdr	head;
	char		body[1024];
} request;

static void
append(const void *data, size_t size)
{
	memcpy((char *)&request + request.head.nlmsg_len, data, size);
	request.head.nlmsg_len += NLMSG_ALIGN(size);
}

static void
start(int type, int flags, const void *data, size_t size)
{
	memset(&request, 0, sizeof(request));
	request.head.nlmsg_len = NLMSG_HDRLEN;
	request.head.nlmsg_type = type;
	request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	append(data, size);
}

static struct rtattr *
attribute(int type, const void *data, size_t size)
{
	struct rtattr *head;

	head = (void *)((char *)&request + request.head.nlmsg_len);
	head->rta_type = type;
	head->rta_len = RTA_LENGTH(size);
	request.head.nlmsg_len += RTA_LENGTH(0);
	append(data, size);
	return (head);
}

/* Ends an attribute that holds all after its head. */
static void
close_nest(struct rtattr *head)
{
	head->rta_len = (char *)&request + request.head.nlmsg_len -
	    (char *)head;
}

/* Sends the request in the present namespace, and reads its result. */
static void
finish(const char *what)
{
	struct {
		struct nlmsghdr	head;
		struct nlmsgerr	error;
		char		rest[1024];
	} reply;
	int fd;

	fd = TRY(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	TRY(send(fd, &request, request.head.nlmsg_len, 0));
	TRY(recv(fd, &reply, sizeof(reply), 0));
	close(fd);
	errno = -reply.error.error;
	if (errno != 0)
		die(what);
}

static void
add_pair(const char *name, const struct ends *addresses, const char *peer,
    enum host other)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC };
	struct rtattr *about, *data, *end;

	start(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
	attribute(IFLA_IFNAME, name, strlen(name) + 1);
	attribute(IFLA_ADDRESS, addresses->near, sizeof(addresses->near));
	about = attribute(IFLA_LINKINFO, "", 0);
	attribute(IFLA_INFO_KIND, "veth", 4);
	data = attribute(IFLA_INFO_DATA, "", 0);
	end = attribute(VETH_INFO_PEER, &link, sizeof(link));
	attribute(IFLA_IFNAME, peer, strlen(peer) + 1);
	attribute(IFLA_ADDRESS, addresses->far, sizeof(addresses->far));
	attribute(IFLA_NET_NS_FD, &namespaces[other], sizeof(int));
	close_nest(end);
	close_nest(data);
	close_nest(about);
	finish("a pair of veth");
}

static void
set_up(const char *name)
{
	struct ifinfomsg link = {
		.ifi_index = TRY((int)if_nametoindex(name)),
		.ifi_flags = IFF_UP,
		.ifi_change = IFF_UP,
	};

	start(RTM_NEWLINK, 0, &link, sizeof(link));
	finish("an interface up");
}

/* The family of an address, which is written to `out`, and its length. */
static int
parse(const char *text, unsigned char *out, size_t *length)
{
	int family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;

	*length = family == AF_INET6 ? 16 : 4;
	inet_pton(family, text, out);
	return (family);
}

static void
add_address(const char *name, const char *text)
{
	unsigned char bytes[16];
	size_t length;
	int family = parse(text, bytes, &length);
	struct ifaddrmsg address = {
		.ifa_family = family,
		.ifa_prefixlen = family == AF_INET6 ? 64 : 24,
		.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
		.ifa_index = if_nametoindex(name),
	};

	start(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &address,
	    sizeof(address));
	attribute(IFA_LOCAL, bytes, length);
	attribute(IFA_ADDRESS, bytes, length);
	finish(text);
}

static void
add_neighbour(const char *name, const char *text, const unsigned char *link)
{
	unsigned char bytes[16];
	size_t length;
	int family = parse(text, bytes, &length);
	struct ndmsg neighbour = {
		.ndm_family = family,
		.ndm_ifindex = if_nametoindex(name),
		.ndm_state = NUD_PERMANENT,
	};

	start(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &neighbour,
	    sizeof(neighbour));
	attribute(NDA_DST, bytes, length);
	attribute(NDA_LLADDR, link, 6);
	finish(text);
}

/* No packet goes to these. */
static void
add_idle_neighbours(const char *name)
{
	char text[INET6_ADDRSTRLEN];

	for (int i = 0; i < IDLE_NEIGHBOURS; i++) {
		snprintf(text, sizeof(text), "10.3.%d.%d", i / 256, i % 256);
		add_neighbour(name, text, left_pair.far);
		snprintf(text, sizeof(text), "fd03::%x", i);
		add_neighbour(name, text, left_pair.far);
	}
}

static void
add_route(const char *to, const char *via)
{
	unsigned char destination[16], gateway[16];
	size_t length;
	int family = parse(to, destination, &length);
	struct rtmsg route = {
		.rtm_family = family,
		.rtm_dst_len = family == AF_INET6 ? 64 : 24,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_type = RTN_UNICAST,
	};

	parse(via, gateway, &length);
	start(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &route, sizeof(route));
	attribute(RTA_DST, destination, length);
	attribute(RTA_GATEWAY, gateway, length);
	finish(to);
}

void
write_file(const char *path, const char *text)
{
	int fd = TRY(open(path, O_WRONLY));

	TRY(write(fd, text, strlen(text)));
	close(fd);
}

void
enter(enum host host)
{
	TRY(setns(namespaces[host], CLONE_NEWNET));
}

/* Without packets that no load sends. */
static void
make_host(enum host host)
{
	if (host != LEFT)
		TRY(unshare(CLONE_NEWNET));
	namespaces[host] = TRY(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	write_file("/proc/sys/net/ipv6/conf/default/router_solicitations", "0");
	set_up("lo");
}

static void
set_up_end(const char *name, const char *address, const char *address6)
{
	add_address(name, address);
	add_address(name, address6);
	set_up(name);
}

static void
meet(const char *name, const unsigned char *link, const char *address,
    const char *address6)
{
	add_neighbour(name, address, link);
	add_neighbour(name, address6, link);
}

void
set_up_network(void)
{
	for (enum host host = LEFT; host < HOSTS; host++)
		make_host(host);
	enter(ROUTER);
	add_pair("toleft", &left_pair, "data", LEFT);
	add_pair("toright", &right_pair, "data", RIGHT);
	set_up_end("toleft", "10.1.0.2", "fd01::2");
	set_up_end("toright", "10.2.0.2", "fd02::2");
	write_file("/proc/sys/net/ipv4/ip_forward", "1");
	write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	enter(RIGHT);
	set_up_end("data", "10.2.0.1", "fd02::1");
	add_route("10.1.0.0", "10.2.0.2");
	add_route("fd01::", "fd02::2");
	enter(LEFT);
	set_up_end("data", "10.1.0.1", "fd01::1");
	add_route("10.2.0.0", "10.1.0.2");
	add_route("fd02::", "fd01::2");
	add_idle_neighbours("data");
	meet("data", left_pair.near, "10.1.0.2", "fd01::2");
	enter(ROUTER);
	meet("toleft", left_pair.far, "10.1.0.1", "fd01::1");
	meet("toright", right_pair.far, "10.2.0.1", "fd02::1");
	enter(RIGHT);
	meet("data", right_pair.near, "10.2.0.2", "fd02::2");
	enter(LEFT);
}
