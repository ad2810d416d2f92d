/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open files as sockets see them that pass them on.  The table of
 * descriptors is the api layer's; it registers these at boot.
 */
#ifndef KERN_FILE_H
#define KERN_FILE_H

#include <stdbool.h>

struct socket;

struct fileops {
	/* A reference to a descriptor's file, which keeps it open; EBADF. */
	int		(*fo_get)(int fd, void **file);
	/* The lowest free descriptor for it, or -1 (EMFILE). */
	int		(*fo_install)(void *file, bool cloexec);
	void		(*fo_hold)(void *file);		/* once more */
	void		(*fo_close)(void *file);	/* may block */
	/* All references: descriptors, calls, those of fo_get and fo_hold. */
	unsigned	(*fo_refs)(void *file);
	struct socket	*(*fo_socket)(void *file);	/* of ours, or NULL */
};
extern const struct fileops *fileops;	/* [I] after boot; NULL: none */

#endif /* KERN_FILE_H */
