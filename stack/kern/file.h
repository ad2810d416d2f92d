/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open files, as seen by sockets that pass descriptors.  The api layer owns
 * the descriptor table and registers these operations at boot.
 */
#ifndef KERN_FILE_H
#define KERN_FILE_H

#include <stdbool.h>

#define	RIGHTS_MAX	253	/* descriptors in a message, unix(7) */

struct socket;

struct fileops {
	/* Takes a reference that keeps a descriptor's file open; EBADF. */
	int		(*fo_get)(int fd, void **file);
	/* Installs the file at the lowest free descriptor; -1: EMFILE. */
	int		(*fo_install)(void *file, bool cloexec);
	void		(*fo_hold)(void *file); /* takes another reference */
	void		(*fo_close)(void *file);	/* may block */
	/* Number of references: descriptors, calls, fo_get and fo_hold. */
	unsigned	(*fo_refs)(void *file);
	/* NULL: not a socket of the stack */
	struct socket	*(*fo_socket)(void *file);
};
extern const struct fileops *fileops;	/* [I] after boot; NULL: none */

#endif /* KERN_FILE_H */
