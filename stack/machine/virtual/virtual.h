/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time for a program's own threads.  The stack's threads know
 * nothing of it.
 */
#ifndef MACHINE_VIRTUAL_VIRTUAL_H
#define MACHINE_VIRTUAL_VIRTUAL_H

#include <stdbool.h>

/*
 * Before a thread that the stack did not make does anything with it.  With
 * drive, the clock moves while this thread waits in the stack; while none
 * does, it stands still.
 */
void	 mach_virtual_enter(bool drive);
/*
 * When it has done.  Without hold, once all other threads wait for
 * something; with hold, at once, and the clock stands still until this
 * thread is back.
 */
void	 mach_virtual_leave(bool hold);

#endif /* MACHINE_VIRTUAL_VIRTUAL_H */
