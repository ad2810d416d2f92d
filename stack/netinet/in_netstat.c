/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The view "netstat -a": every socket with its queues, names and state.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "kern/ctl.h"
#include "netinet/tcp_var.h"

#define	NAMELEN	(INET6_ADDRSTRLEN + 6)

static const char *
endpoint(const struct in6_addr *addr, in_port_t port, char buf[NAMELEN])
{
	char ip[INET6_ADDRSTRLEN] = "*", number[6] = "*";

	if (!in_isany(addr) && IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr32[3], ip, sizeof(ip));
	else if (!in_isany(addr))
		inet_ntop(AF_INET6, addr, ip, sizeof(ip));
	if (port != 0)
		snprintf(number, sizeof(number), "%hu", ntohs(port));
	snprintf(buf, NAMELEN, "%s:%s", ip, number);
	return (buf);
}

static void
show_socket(struct socket *so, void *arg)
{
	const struct inpcb *inp;
	const char *state = "";
	char local[NAMELEN], foreign[NAMELEN];

	so_assert_locked(so);
	inp = so->so_pcb;
	if (inp == NULL || so->so_proto->pr_domain == AF_UNIX)
		return;
	so_assert_locked(inp->inp_socket);
	if (so->so_proto->pr_stream)
		state = tcp_state_names[sototcpcb(so)->t_state];
	ctl_printf(arg, "%-5s %8u %8u %-21s %-21s %s\n",
	    so->so_proto->pr_name, so->so_rcv.sb_cc, so->so_snd.sb_cc,
	    endpoint(&inp->inp_conn.laddr, inp->inp_conn.lport, local),
	    endpoint(&inp->inp_conn.faddr, inp->inp_conn.fport, foreign),
	    state);
}

static void
netstat_show(struct ctl_out *co)
{
	ctl_printf(co, "%-5s %8s %8s %-21s %-21s %s\n", "Proto", "Recv-Q",
	    "Send-Q", "Local address", "Foreign address", "State");
	so_foreach(show_socket, co);
}

void
in_netstat_init(void)
{
	ctl_view_register("netstat -a", netstat_show);
}
