/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAP devices with virtio-net headers.  The host merges segments and leaves
 * checksums to the stack, and accepts both in the other direction, so that one
 * system call moves up to 64 KB.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>

#include "dev/drivers.h"
#include "dev/hostif.h"

static int
tap_open(struct hostif *hi, char *why, size_t len)
{
	const char *ifname = hi->hi_if.if_xname;
	unsigned caps = hi->hi_if.if_caps;
	unsigned offloads = ((caps & IFCAP_RXCSUM) != 0 ? TUN_F_CSUM : 0) |
	    ((caps & IFCAP_TSO4) != 0 ? TUN_F_TSO4 | TUN_F_TSO6 : 0);
	int error = 0;

	for (unsigned i = 0; i < hi->hi_nqueues && error == 0; i++)
		error = mach_devq_open_tap(ifname, hi->hi_nqueues > 1,
		    offloads, &hi->hi_queues[i].hq_devq);
	if (error != 0)
		snprintf(why, len, "%s; check that this user may open "
		    "/dev/net/tun, that the device was created by 'ip tuntap "
		    "add %s mode tap user UID multi_queue vnet_hdr', and "
		    "that no other process uses it",
		    strerror(error), ifname);
	return (error);
}

static const struct hostif_ops tap_ops = {
	.open = tap_open, .receive = hostif_read, .vnet = true,
	.caps = IFCAP_OFFLOADS, .mtu_max = UINT32_MAX,
};

static int
tap_attach(const struct if_config *ic, char *why, size_t len)
{
	return (hostif_attach(&tap_ops, ic, why, len));
}

void
tap_init(void)
{
	static struct if_driver driver = { .name = "tap",
	    .has = IFHAS_FRAMES, .attach = tap_attach, .start = hostif_start,
	    .detach = hostif_detach };

	if_driver_register(&driver);
}
