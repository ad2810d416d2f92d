/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages that a program sends, to an Internet socket of either
 * family and to one of the UNIX domain.  Whatever they say, what goes into a
 * packet must be in range, and reading stays inside the buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "fuzz.h"
#include "kern/unpcb.h"
#include "netinet/in_pcb.h"

static struct inpcb *
pcb_of(int domain)
{
	struct socket *so;

	if (socreate(domain, SOCK_DGRAM, 0, &so) != 0)
		panic("no socket of domain %d", domain);
	return (so->so_pcb);
}

static void
send_with(const struct inpcb *inp, const struct msghdr *msg)
{
	struct in_conninfo c = inp->inp_conn;
	struct ip_sendopts opts = { .ttl = 64 };

	c.faddr = in_family(&c.laddr)->af_loopback;
	if (in_control_send(inp, msg, &c, &opts) == 0 && opts.ttl == 0)
		panic("a packet that would not live");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct inpcb *inp4, *inp6;
	struct unp_control uc;
	struct msghdr msg = { .msg_controllen = size };

	if (inp4 == NULL) {
		if (stack_boot(NULL) != 0)
			panic("no stack");
		inp4 = pcb_of(AF_INET);
		inp6 = pcb_of(AF_INET6);
	}
	/* a copy, so that a sanitizer sees overruns */
	msg.msg_control = malloc(size > 0 ? size : 1);
	memcpy(msg.msg_control, data, size);
	send_with(inp4, &msg);
	send_with(inp6, &msg);
	if (unp_internalize(&msg, &uc) == 0)
		unp_rights_discard(uc.uc_rights);
	free(msg.msg_control);
	return (0);
}
