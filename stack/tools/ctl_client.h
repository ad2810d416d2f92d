/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of the control socket (kern/ctl.h): one request line,
 * one answer, a connection each.
 */
#ifndef TOOLS_CTL_CLIENT_H
#define TOOLS_CTL_CLIENT_H

#include <stdio.h>

#define	CTL_REQUEST_MAX	1024

/*
 * Sends a line, which ends with a newline, to the stack at path and opens
 * its answer; NULL after a message that begins with program's name.
 */
FILE	*ctl_ask(const char *program, const char *path, const char *line);
/*
 * Reads to the end of the answer and closes it.  What follows "ok" goes to
 * out; a refusal, or a word about the lack of an answer, to standard error.
 * Returns 0 or 1, as an exit status.
 */
int	 ctl_answer(const char *program, FILE *in, FILE *out);

#endif /* TOOLS_CTL_CLIENT_H */
