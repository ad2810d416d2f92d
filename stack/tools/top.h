/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

/*
 * stackctl top for the stack at a control socket; argv[0] is "top".  Returns
 * an exit status.
 */
int	 top_main(const char *path, int argc, char **argv);

#endif /* TOOLS_TOP_H */
