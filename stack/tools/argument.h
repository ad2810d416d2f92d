/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words of a command line.  What cannot be meant ends the program with
 * EX_USAGE and a line that names the option, the word and what is possible:
 * half a number, like 12k, would otherwise be measured as another one.
 */
#ifndef _TOOLS_ARGUMENT_H_
#define	_TOOLS_ARGUMENT_H_

#include <stdint.h>

/* "tool: what 'word'; tool --help says what there is". */
_Noreturn void	argument_refuse(const char *what, const char *word);
/* A decimal number from min to max. */
double	argument_number(const char *option, const char *word, double min,
	    double max);
/* A whole one. */
uint64_t	argument_whole(const char *option, const char *word,
		    uint64_t min, uint64_t max);

#endif
