/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files in messages of the stack's UNIX-domain sockets (SCM_RIGHTS).  A file
 * of the stack gets another reference that counts as a descriptor; a kernel
 * descriptor is kept by a hidden duplicate.
 */
#include <fcntl.h>
#include <unistd.h>

#include "api/server.h"

/* The caller has a hold, so this one succeeds. */
static void
passed_hold(void *file)
{
	(void)file_hold(file);
}

static void
passed_close(void *file)
{
	file_close(file);
}

/* A kernel descriptor: a hidden duplicate keeps it open. */
static int
kernel_get(int fd, void **file)
{
	struct file *f;
	int copy, error;

	if (fd_hidden(fd) || fd_ours(fd))
		return (EBADF);
	fd_lockops->change();
	copy = fd_hidden_copy(real.fcntl(fd, F_DUPFD_CLOEXEC, 0));
	error = errno;
	fd_lockops->changed();
	if (copy == -1)
		return (error == EMFILE ? EMFILE : EBADF);
	f = file_new(FT_KERNEL);
	f->f_kernel = copy;
	*file = f;
	return (0);
}

static int
passed_get(int fd, void **file)
{
	struct file *f;
	bool open;

	if (rights_remote())
		return (right_get(fd, file));
	f = fget(fd);
	if (f == NULL)
		return (kernel_get(fd, file));
	open = file_hold(f);
	frele(f);
	*file = f;
	return (open ? 0 : EBADF);
}

static int
passed_install(void *file, bool cloexec)
{
	struct file *f = file;
	int fd;

	if (rights_remote())
		return (right_put(file));
	if (f->f_type == FT_KERNEL)
		return (real.fcntl(f->f_kernel, cloexec ? F_DUPFD_CLOEXEC :
		    F_DUPFD, 0));
	fd = fd_reserve();
	if (fd != -1) {
		passed_hold(f);
		fd_install(fd, f, cloexec);
	}
	return (fd);
}

static unsigned
passed_refs(void *file)
{
	return (atomic_load_acq_u32(&((struct file *)file)->f_refs));
}

static struct socket *
passed_socket(void *file)
{
	const struct file *f = file;

	return (f->f_type == FT_SOCKET ? f->f_so : NULL);
}

const struct fileops api_fileops = {
	.fo_get = passed_get,
	.fo_install = passed_install,
	.fo_hold = passed_hold,
	.fo_close = passed_close,
	.fo_refs = passed_refs,
	.fo_socket = passed_socket,
};
