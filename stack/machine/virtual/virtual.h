/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time for a program's own threads.  Threads of the stack do not need
 * these calls.
 */
#ifndef MACHINE_VIRTUAL_VIRTUAL_H
#define MACHINE_VIRTUAL_VIRTUAL_H

#include <stdbool.h>

/*
 * A program's thread calls this before it uses the stack.  With drive, the
 * clock advances while this thread waits in the stack; without such a thread
 * the clock stands still.
 */
void	 mach_virtual_enter(bool drive);
/*
 * A program's thread calls this when it is done.  Without hold it returns once
 * all other threads wait.  With hold it returns at once, and the clock stands
 * still until this thread is back.
 */
void	 mach_virtual_leave(bool hold);

#endif /* MACHINE_VIRTUAL_VIRTUAL_H */
