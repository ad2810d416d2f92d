/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command-line arguments.  An invalid value ends the program with EX_USAGE and
 * a line with the option, the value and the valid range.  A partly parsed
 * number, such as 12k, would otherwise measure something else.
 */
#ifndef _TOOLS_ARGUMENT_H_
#define	_TOOLS_ARGUMENT_H_

#include <stdint.h>

/* Prints "tool: what 'word'; see tool --help" and exits. */
_Noreturn void	argument_refuse(const char *what, const char *word);
/* A decimal number from min to max. */
double	argument_number(const char *option, const char *word, double min,
	    double max);
/* An integer from min to max. */
uint64_t	argument_whole(const char *option, const char *word,
		    uint64_t min, uint64_t max);

#endif
