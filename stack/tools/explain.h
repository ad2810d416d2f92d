/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simstack --explain: which lines and locks take which share of the CPUs' time.
 */
#ifndef TOOLS_EXPLAIN_H
#define TOOLS_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "machine/sim/explain.h"

/*
 * Prints a table, or a JSON object.  Lines of source are named with
 * addr2line(1); without it, or without debugging information, only functions
 * are.
 */
void	 explain_print(FILE *, const struct sim_explained *, bool json);

#endif /* TOOLS_EXPLAIN_H */
