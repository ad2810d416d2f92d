/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test of the stack on four CPUs of the simulated machine: the linker leads
 * main() here (--wrap), and the test's own is what the machine's first thread
 * runs.
 */
#include <stdio.h>

#include "machine/sim/sim.h"

#define	NCPUS	4

int	 __real_main(int, char **);
int	 __wrap_main(int, char **);

struct program {
	int		 argc;
	char		**argv;
	int		 status;
};

static void
run(void *arg)
{
	struct program *p = arg;

	p->status = __real_main(p->argc, p->argv);
}

int
__wrap_main(int argc, char **argv)
{
	const struct sim_config config = {
	    .machine = sim_preset_find("generic"), .ncpus = NCPUS, .seed = 1 };
	struct program program = { argc, argv, 1 };
	struct sim_report report;

	if (sim_run(&config, run, &program, &report) != 0)
		return (1);
	printf("hash %016llx\n", (unsigned long long)report.hash);
	return (program.status);
}
