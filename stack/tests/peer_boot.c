/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Boots the stack with a peer in virtual time.  A separate file, because other
 * tests use peer.c in real time.
 */
#include "kern/systm.h"
#include "machine/virtual/virtual.h"
#include "tests/check.h"
#include "tests/peer.h"

void
peer_boot(void)
{
	mach_virtual_enter(true);
	t_boot();
	peer_attach();
}
