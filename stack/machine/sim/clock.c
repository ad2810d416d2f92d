/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks, random numbers, and park and unpark.  The time is that of the
 * calling CPU; no other CPU can have read a later one.
 */
#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

#define	BOOT_DATE	NSEC_PER_SEC	/* no time is zero */
#define	BOOT_WALLTIME	946684800	/* 2000-01-01 00:00 UTC */

nsec_t
mach_uptime(void)
{
	sim_charge(SIM_COST(clock));
	sim_sync();
	return (BOOT_DATE + sim.cpu->sc_clock / PSEC_PER_NSEC);
}

void
mach_walltime(struct timespec *ts)
{
	nsec_t date = mach_uptime();

	ts->tv_sec = (time_t)(BOOT_WALLTIME + date / NSEC_PER_SEC);
	ts->tv_nsec = (long)(date % NSEC_PER_SEC);
}

void
mach_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	sim_sync();	/* the CPU that is next in time takes the next number */
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)splitmix(sim.random += SPLITMIX_STEP);
}

/* A time of mach_uptime() on the clocks of CPUs. */
static psec_t
clock_of(nsec_t deadline)
{
	if (deadline >= PSEC_FOREVER / PSEC_PER_NSEC)
		return (PSEC_FOREVER);
	return (deadline > BOOT_DATE ? (deadline - BOOT_DATE) * PSEC_PER_NSEC :
	    0);
}

int
mach_park(atomic_u32 *word, uint32_t expected, nsec_t deadline)
{
	if (atomic_load_acq_u32(word) != expected)
		return (0);
	/* No other thread has run since the word was loaded. */
	sim_charge(SIM_COST(park));
	return (sim_wait(word, clock_of(deadline)));
}

/* Wakes in the order of parking. */
void
mach_unpark(atomic_u32 *word, int nthreads)
{
	struct mach_thread *mt, *next;

	sim_charge(SIM_COST(unpark));
	sim_sync();
	for (mt = TAILQ_FIRST(&sim.parked); mt != NULL && nthreads > 0;
	    mt = next) {
		next = TAILQ_NEXT(mt, mt_link);
		if (mt->mt_word != word)
			continue;
		sim_wake(mt);
		nthreads--;
	}
}
