/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether libstack.so gets between a program and the kernel.
 */
#ifndef BOOT_REACH_H
#define BOOT_REACH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Why a program's sockets would be the kernel's although libstack.so is
 * preloaded, as a clause about it ("is statically linked"); NULL if they would
 * be the stack's, or if the file cannot be read.  path is resolved already; of
 * a script its interpreter counts.
 */
const char *reach_refusal(const char *path);
/* Finds a program as execvp(3) does; false if there is none. */
bool	 reach_find(const char *name, char *path, size_t size);

#endif /* BOOT_REACH_H */
