/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event log: counts and hashes events, and writes them to a file if
 * requested.  Equal hashes mean identical runs.
 */
#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

const char *const sim_event_names[SIM_EVENT_COUNT] = {
#define	X(id, name)	[SIM_##id] = name,
	SIM_EVENTS(X)
#undef X
};

void
sim_event(enum sim_event event, psec_t date, const struct sim_cpu *cpu,
    unsigned thread)
{
	uint64_t what = (uint64_t)event << 56 |
	    (uint64_t)cpu->sc_number << 32 | thread;

	sim.report.events[event]++;
	sim.report.hash = splitmix(splitmix(sim.report.hash ^ date) ^ what);
	if (sim.config.log != NULL)
		fprintf(sim.config.log, "%llu.%03u cpu%u thread%u %s\n",
		    (unsigned long long)(date / PSEC_PER_NSEC),
		    (unsigned)(date % PSEC_PER_NSEC), cpu->sc_number, thread,
		    sim_event_names[event]);
}
