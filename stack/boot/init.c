/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Boot and shutdown of the stack: the start order of subsystems.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "dev/drivers.h"
#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/epoch.h"
#include "kern/kern_private.h"
#include "kern/mbuf_private.h"
#include "kern/netlock.h"
#include "kern/planted.h"
#include "kern/socketvar.h"
#include "kern/sysctl.h"
#include "kern/unpcb.h"
#include "kern/watchdog.h"
#include "net/if_bridge.h"
#include "net/if_config.h"
#include "net/if_ether.h"
#include "net/netisr.h"
#include "net/route.h"
#include "netinet/arp.h"
#include "netinet/in_exclusive.h"
#include "netinet/ip_private.h"
#include "netinet/ip_tunnel.h"
#include "netinet/raw_ip.h"
#include "netinet/tcp_lock.h"
#include "netinet/udp_var.h"
#include "netinet6/ip6_private.h"

static bool boot_mute;

static const struct sysctl_oid boot_oids[] = {
	{ .oid_name = "boot_mute", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &boot_mute,
	    .oid_descr = "1: print nothing while booting, except errors" },
};

static void
boot_init(void)
{
	sysctl_register(boot_oids, nitems(boot_oids));
}

/* First half: registers tunables and handlers; cannot fail. */
static void (*const subsystems[])(void) = {
	counter_init, sysctl_init, boot_init, machine_init, lock_init,
	giant_init, netlock_init, synch_init, sleep_prof_init, ddb_init,
	epoch_init, callout_subsys_init, mbuf_init, ctl_init, netisr_init,
	route_init, if_init, if_config_init, loop_init, ether_init, arp_init,
	inet_init, ip_init, ip6_init, socket_init, unp_init, in_pcb_sysctl_init, udp_init,
	tcp_init, raw_init, tunnel_init, bridge_init, in_netstat_init,
	tap_init, packet_init, xdp_init, mem_init,
#ifdef PLANTED_RACES
	planted_init,
#endif
};

/* The CPUs that machine.cpus and related tunables leave. */
static int
boot_banner(void)
{
	static const char built[] = ""
#ifdef MACH_UP
	    ", built for one"
#endif
#ifdef INVARIANTS
	    ", INVARIANTS"
#endif
#ifdef WITNESS
	    ", WITNESS"
#endif
#ifdef LOCK_PROFILING
	    ", LOCK_PROFILING"
#endif
	    ;

	if (boot_mute)
		return (0);
	console("reference network stack, %u CPU%s%s", mach_ncpus(),
	    mach_ncpus() == 1 ? "" : "s", built);
	return (0);
}

/* Second half, after loader.conf was read. */
static const struct {
	const char	*what;
	int		(*start)(void);
} starts[] = {
	{ "machine", machine_start },
	{ "banner", boot_banner },
	{ "TCP locking strategy", tcp_lock_start },	/* may set mpsafenet */
	{ "Giant", giant_start },
	{ "UNIX-domain sockets", unp_lock_start },
	{ "clock", callout_start },
	{ "netisr", netisr_start },
	{ "exclusive protocols", in_exclusive_start },
	{ "TCP connection table", tcp_table_start },	/* depends on both */
	{ "UDP sockets", udp_start },
	{ "interfaces", if_config_attach },
	{ "subnets", route_attach },
	{ "routes", route_config_attach },
	{ "receive threads", if_config_start },
	{ "IPv6 addresses", in6_start },
	{ "control socket", ctl_start },
};

static void
boot_value(const struct sysctl_oid *oid, const char *value, void *arg)
{
	const char *why, *asked = sysctl_asked(oid->oid_name, &why);

	(void)arg;
	if ((oid->oid_flags & CTL_TUN) == 0)
		return;
	if (asked != NULL)
		console("%s=\"%s\"	# not \"%s\": %s", oid->oid_name, value,
		    asked, why);
	else
		console("%s=\"%s\"", oid->oid_name, value);
}

int
stack_boot_config(int (*configure)(const char *), const char *arg)
{
	int error = 0;

	if (booted)
		return (EALREADY);
	for (size_t i = 0; i < nitems(subsystems); i++)
		subsystems[i]();
	if (configure != NULL)
		error = configure(arg);
	/*
	 * Before the control socket starts, so that boot-only tunables cannot
	 * be set.
	 */
	booted = true;
	for (size_t i = 0; i < nitems(starts) && error == 0; i++) {
		error = starts[i].start();
		if (error != 0)
			console("boot stopped at: %s", starts[i].what);
	}
	if (error == 0)
		error = watchdog_start();
	if (error != 0 || boot_mute)
		return (error);
	sysctl_foreach(boot_value, NULL);
	console("up");
	return (0);
}

int
stack_boot(const char *path)
{
	return (stack_boot_config(path != NULL ? loader_read : NULL, path));
}

int
stack_boot_client(void)
{
	for (size_t i = 0; i < nitems(subsystems); i++)
		subsystems[i]();
	booted = boot_mute = true;
	return (machine_start());
}

void
stack_shutdown(void)
{
	if (!booted)
		return;
	watchdog_stop();
	ctl_stop();
	if_config_detach();
	netisr_stop();
	in_exclusive_stop();
	callout_shutdown();
	if (!boot_mute)
		console("down");
}
