/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Boot and shutdown of the stack.
 */
#ifndef BOOT_BOOT_H
#define BOOT_BOOT_H

/*
 * Boots from a loader.conf (docs/reference/tunables.md); a NULL path boots
 * with the default values.  The order: subsystems register their tunables, the
 * file is read, and the subsystems start in the order of the tables in
 * boot/init.c. Errors are printed to the console with file and line.  Returns
 * 0 or an errno value; EALREADY means that the stack has booted before.
 */
int	 stack_boot(const char *path);
/*
 * Like stack_boot(), but configure(arg) sets the tunables.  configure()
 * returns 0 or an errno value.
 */
int	 stack_boot_config(int (*configure)(const char *), const char *arg);
/*
 * For a process that makes its calls on another one's stack: locks, memory and
 * threads, with the default values, but no network.  Prints nothing.
 */
int	 stack_boot_client(void);
/* Stops the stack's threads.  A process boots once. */
void	 stack_shutdown(void);

#endif /* BOOT_BOOT_H */
