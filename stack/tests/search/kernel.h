/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of the kernel's descriptor table, for scenes of descriptors: numbers
 * that are placeholders of the stack, or files with an identity.  All calls of
 * one thread are points of a search.
 */
#ifndef TESTS_SEARCH_KERNEL_H
#define TESTS_SEARCH_KERNEL_H

#include <stdint.h>

#define	KERNEL_FDS	32

void	 kernel_reset(void);	/* all numbers are free */
/* open(2): returns a number that refers to file id, above 0; or -1. */
int	 kernel_open(uint32_t id);
/* The file of a number: 0 if it is a placeholder or free. */
uint32_t kernel_file(int fd);
/* The program of the last inherit_prepare() ends: its files are closed. */
void	 kernel_program_ends(void);
/* How many numbers are in use. */
unsigned kernel_used(void);

#endif /* TESTS_SEARCH_KERNEL_H */
