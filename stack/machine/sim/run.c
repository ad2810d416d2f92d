/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creation and end of a machine.
 */
#include <errno.h>
#include <string.h>

#include "machine/sim/sim_private.h"
#include "machine/splitmix.h"

struct sim sim;

void
sim_report(struct sim_report *report)
{
	sim_sync();
	*report = sim.report;
	report->clock = sim.cpu->sc_clock / PSEC_PER_NSEC;
}

/* The function of the first thread. */
struct first {
	void		(*fn)(void *);
	void		*arg;
	struct sim_report *report;
};

static void
run_first(void *arg)
{
	struct first *first = arg;

	first->fn(first->arg);
	sim_report(first->report);
	context_switch(&sim.cpu->sc_running->mt_context, &sim.host);
}

static void
cpu_init(unsigned n)
{
	const struct sim_preset *p = sim.config.machine;
	struct sim_cpu *cpu = &sim.cpus[n];

	cpu->sc_number = n;
	cpu->sc_core = n % (p->sockets * p->cores);
	cpu->sc_socket = cpu->sc_core / p->cores;
	TAILQ_INIT(&cpu->sc_queue);
}

int
sim_run(const struct sim_config *config, void (*fn)(void *), void *arg,
    struct sim_report *report)
{
	struct first first = { fn, arg, report };
	struct mach_thread *mt;

	if (config->ncpus == 0 || config->ncpus > SIM_CPUS_MAX ||
	    config->ncpus > sim_preset_cpus(config->machine))
		return (EINVAL);
	sim_threads_reset();
	memset(&sim, 0, sizeof(sim));
	sim_blocks = sim_instructions = 0;
	sim_every_block = false;
	sim.config = *config;
	sim.costs = config->machine->costs;
	sim.chance = splitmix(config->seed);
	sim.random = splitmix(~config->seed);
	mach_self = NULL;
	mach_counters = 0;
	TAILQ_INIT(&sim.parked);
	TAILQ_INIT(&sim.timers);
	for (unsigned i = 0; i < config->ncpus; i++)
		cpu_init(i);
	sim_memory_reset();
	sim_explain_reset();
	sim_lines_reset();
	sim_cpus_reset();
	mt = sim_thread_new("first", MACH_CPU_ANY, run_first, &first);
	if (mt == NULL)
		return (ENOMEM);
	sim_begin(mt);
	return (0);
}
