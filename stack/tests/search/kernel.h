/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of the kernel's descriptor table, for scenes of descriptors: numbers
 * that are placeholders of the stack, or files with an identity.  All calls of
 * one thread are points of a search.
 */
#ifndef TESTS_SEARCH_KERNEL_H
#define TESTS_SEARCH_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct file;

#define	KERNEL_FDS	32

void	 kernel_reset(void);	/* all numbers are free */
/* open(2): returns a number that refers to file id, above 0; or -1. */
int	 kernel_open(uint32_t id);
/* The file of a number: 0 if it is a placeholder or free. */
uint32_t kernel_file(int fd);
/* Whether a number is the stack's. */
bool	 kernel_placed(int fd);
/* Whether the process that was registered last has a file. */
bool	 kernel_program_has(uint32_t handle, const struct file *);
/* The process that was registered last ends: its files are closed. */
void	 kernel_program_ends(void);
/* How many numbers are in use. */
unsigned kernel_used(void);

#endif /* TESTS_SEARCH_KERNEL_H */
