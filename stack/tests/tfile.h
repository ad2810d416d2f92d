/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A minimal descriptor table, for tests that pass descriptors: file n is a
 * socket with a count.
 */
#ifndef TESTS_TFILE_H
#define TESTS_TFILE_H

#include <errno.h>

#include "kern/file.h"
#include "kern/socketvar.h"

struct tfile {
	atomic_u32	 refs;
	struct socket	*so;
};
static struct tfile files[8];

static int
tfile_get(int fd, void **file)
{
	uint32_t n = atomic_load_acq_u32(&files[fd].refs);

	while (n != 0)
		if (atomic_cmpset_u32(&files[fd].refs, &n, n + 1)) {
			*file = &files[fd];
			return (0);
		}
	return (EBADF);
}

static void
tfile_hold(void *file)
{
	atomic_fetchadd_u32(&((struct tfile *)file)->refs, 1);
}

static void
tfile_close(void *file)
{
	struct tfile *f = file;
	struct socket *so = f->so;

	if (atomic_fetchadd_u32(&f->refs, UINT32_MAX) == 1)
		soclose(so);
}

static int
tfile_install(void *file, bool cloexec)
{
	(void)cloexec;
	tfile_hold(file);
	return ((int)((struct tfile *)file - files));
}

static unsigned
tfile_refs(void *file)
{
	return (atomic_load_acq_u32(&((struct tfile *)file)->refs));
}

static struct socket *
tfile_socket(void *file)
{
	return (((struct tfile *)file)->so);
}

static const struct fileops tfile_ops = {
	tfile_get, tfile_install, tfile_hold, tfile_close, tfile_refs,
	tfile_socket
};

#endif /* TESTS_TFILE_H */
