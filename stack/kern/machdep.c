/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPUs of the stack, and placement and scheduling of its threads.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/kern_private.h"
#include "kern/sysctl.h"

static char cpus[128];
static bool smp_disabled;
static bool smt = true;
static const char *const placement_names[] = { "floating", "pinned", NULL };
static atomic_u32 placement;		/* [I] after boot */
static const char *const sched_names[] = { [MACH_SCHED_OTHER] = "other",
    [MACH_SCHED_BATCH] = "batch", [MACH_SCHED_FIFO] = "fifo",
    [MACH_SCHED_RR] = "rr", NULL };
static atomic_u32 sched = MACH_SCHED_OTHER;	/* [I] after boot */
static atomic_u32 priority = 1;			/* [I] after boot */

/* Conflicts between these are detected later in the boot. */
static const struct sysctl_oid machine_oids[] = {
	{ .oid_name = "kern.smp.disabled", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &smp_disabled,
	    .oid_descr = "1: confine all threads, including the program's, "
	    "to the first of machine.cpus" },
	{ .oid_name = "machine.cpus", .oid_type = CTL_STRING,
	    .oid_flags = CTL_TUN, .oid_ptr = cpus, .oid_max = sizeof(cpus),
	    .oid_descr = "CPUs of the stack's threads, for example 0-1,3; "
	    "empty: all" },
	{ .oid_name = "machine.placement", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &placement,
	    .oid_names = placement_names,
	    .oid_descr = "placement of the stack's threads: floating on "
	    "machine.cpus, or pinned round robin" },
	{ .oid_name = "machine.priority", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN, .oid_ptr = &priority, .oid_min = 1,
	    .oid_max = 99,
	    .oid_descr = "real-time priority with machine.sched fifo and rr" },
	{ .oid_name = "machine.sched", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &sched, .oid_names = sched_names,
	    .oid_descr = "scheduling policy of the stack's threads, "
	    "sched(7): other, batch, fifo, rr" },
	{ .oid_name = "machine.smt", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &smt,
	    .oid_descr = "0: use one hardware thread of each core" },
};

void
machine_init(void)
{
	sysctl_register(machine_oids, nitems(machine_oids));
}

static int
choose_cpus(void)
{
	int error;

	if (cpus[0] != '\0') {
		error = mach_cpus_set(cpus);
		if (error != 0) {
			console("machine.cpus: '%s': %s", cpus,
			    error == ENODEV ? "this process may not run there" :
			    "not a list of CPUs like 0-1,3");
			return (error);
		}
	}
	if (!smt)
		mach_cpus_nosmt();
	return (0);
}

/* One CPU for all threads: a tunable in most builds, always with -Dup=true. */
static int
confine(void)
{
	int error;

	if (!smp_disabled && !mach_up())
		return (0);
	if (cpus[0] != '\0' && mach_ncpus() > 1) {
		console("machine.cpus: '%s' has %u CPUs, but %s uses one", cpus,
		    mach_ncpus(), smp_disabled ? "kern.smp.disabled=\"1\"" :
		    "a stack built with -Dup=true");
		return (EINVAL);
	}
	error = mach_cpus_confine();
	if (error != 0) {
		console("one CPU for all threads: %s", strerror(error));
		return (error);
	}
	if (!smp_disabled)
		sysctl_forced("kern.smp.disabled", "0", "1",
		    "the stack was built with -Dup=true");
	smp_disabled = true;
	lock_spin_never();
	return (0);
}

static int
set_schedule(void)
{
	uint32_t how = atomic_load_u32(&sched);
	int error;

	mach_placement_set(atomic_load_u32(&placement) != 0);
	if (how == MACH_SCHED_OTHER)
		return (0);
	error = mach_sched_set((enum mach_sched)how,
	    (int)atomic_load_u32(&priority));
	if (error != 0)
		console("machine.sched: %s: %s", sched_names[how],
		    error == EPERM ? "needs the capability CAP_SYS_NICE, or "
		    "RLIMIT_RTPRIO (ulimit -r)" : strerror(error));
	return (error);
}

int
machine_start(void)
{
	int error = choose_cpus();

	if (error == 0)
		error = confine();
	if (error == 0)
		error = set_schedule();
	return (error);
}
