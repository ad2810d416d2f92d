/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The view "netstat -f unix": UNIX-domain sockets with their queues, state and
 * name; @ is the zero byte before an abstract name.
 */
#include <ctype.h>

#include "kern/ctl.h"
#include "kern/unpcb.h"

#define	PATH_AT	offsetof(struct sockaddr_un, sun_path)

static const char *
state_of(const struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_state & SS_LISTENING)
		return ("LISTEN");
	return (so->so_state & SS_ISCONNECTED ? "CONNECTED" : "-");
}

/* Prints ?  for bytes of a name that are not printable. */
static void
printable(const struct sockname *name, char text[sizeof(struct sockaddr_un)])
{
	const char *path = name->sn_un.sun_path;
	size_t len = 0;

	for (; PATH_AT + len < name->sn_len; len++) {
		if (path[len] == '\0' && len > 0)
			break;
		text[len] = path[len] == '\0' ? '@' :
		    isprint((unsigned char)path[len]) ? path[len] : '?';
	}
	text[len] = '\0';
}

static void
show_socket(struct socket *so, void *arg)
{
	struct sockname name = { .sn_len = 0 };
	char text[sizeof(struct sockaddr_un)];

	so_assert_locked(so);
	if (so->so_proto->pr_domain != AF_UNIX || so->so_pcb == NULL)
		return;
	unp_getname(sotounpcb(so), &name);
	printable(&name, text);
	ctl_printf(arg, "%-5s %8u %8u %-9s %s\n", so->so_proto->pr_name,
	    so->so_rcv.sb_cc, so->so_snd.sb_cc, state_of(so), text);
}

static void
netstat_unix(struct ctl_out *co)
{
	ctl_printf(co, "%-5s %8s %8s %-9s %s\n", "Proto", "Recv-Q", "Send-Q",
	    "State", "Name");
	so_foreach(show_socket, co);
}

void
unp_netstat_init(void)
{
	ctl_view_register("netstat -f unix", netstat_unix);
}
