/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack with a peer, in virtual time: apart from peer.c since other tests
 * have a peer in real time.
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
