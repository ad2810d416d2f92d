/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet sockets on an interface of the host, with the virtio headers of TAP
 * devices.  Several queues share received frames by flow hash (PACKET_FANOUT).
 */
#include <stdio.h>
#include <string.h>

#include "dev/drivers.h"
#include "dev/hostif.h"

static int
packet_open(struct hostif *hi, char *why, size_t len)
{
	uint16_t group;
	int error = 0;

	mach_random(&group, sizeof(group));
	group |= 1;	/* 0 means no group */
	for (unsigned i = 0; i < hi->hi_nqueues && error == 0; i++)
		error = mach_devq_open_packet(hi->hi_if.if_xname,
		    hi->hi_nqueues > 1 ? group : 0,
		    &hi->hi_queues[i].hq_devq);
	if (error != 0)
		snprintf(why, len, "%s; check that it is a host interface, "
		    "that it is up, and that this user has CAP_NET_RAW",
		    strerror(error));
	return (error);
}

static const struct hostif_ops packet_ops = {
	.open = packet_open, .receive = hostif_take, .vnet = true,
	.caps = IFCAP_OFFLOADS, .mtu_max = UINT32_MAX,
};

static int
packet_attach(const struct if_config *ic, char *why, size_t len)
{
	return (hostif_attach(&packet_ops, ic, why, len));
}

void
packet_init(void)
{
	static struct if_driver driver = { .name = "packet",
	    .has = IFHAS_FRAMES, .attach = packet_attach, .start = hostif_start,
	    .detach = hostif_detach };

	if_driver_register(&driver);
}
