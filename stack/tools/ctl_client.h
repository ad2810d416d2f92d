/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of the control socket (kern/ctl.h): one request and one
 * answer for each connection.
 */
#ifndef TOOLS_CTL_CLIENT_H
#define TOOLS_CTL_CLIENT_H

#include <stdio.h>

#define	CTL_REQUEST_MAX	1024

/*
 * Sends a line, which ends with a newline, to the stack at path and opens its
 * answer.  On an error prints a message, which begins with program, and
 * returns NULL.
 */
FILE	*ctl_ask(const char *program, const char *path, const char *line);
/*
 * Reads the whole answer and closes it.  The text after "ok" goes to out; an
 * error goes to standard error.  Returns the exit status 0 or 1.
 */
int	 ctl_answer(const char *program, FILE *in, FILE *out);

#endif /* TOOLS_CTL_CLIENT_H */
