/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files in messages of the stack's UNIX-domain sockets (SCM_RIGHTS).  A file
 * of the stack gets another reference that counts as a descriptor; a kernel
 * descriptor is kept by a hidden duplicate.
 */
#include <fcntl.h>
#include <unistd.h>

#include "api/api.h"
#include "kern/file.h"

static void
passed_hold(void *file)
{
	struct file *f = file;

	atomic_fetchadd_u32(&f->f_refs, 1);
	atomic_fetchadd_u32(&f->f_fds, 1);
}

static void
passed_close(void *file)
{
	file_close(file);
}

static int
passed_get(int fd, void **file)
{
	struct file *f = fget(fd);
	int copy;

	if (f == NULL) {
		copy = fd_hidden(fd) ? -1 : real.fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (copy == -1)
			return (fd_hidden(fd) || errno != EMFILE ? EBADF :
			    EMFILE);
		f = file_new(FT_KERNEL);
		f->f_kernel = fd_hidden_copy(copy);
	}
	passed_hold(f);
	frele(f);
	*file = f;
	return (0);
}

static int
passed_install(void *file, bool cloexec)
{
	struct file *f = file;
	int fd;

	if (f->f_type == FT_KERNEL)
		return (real.fcntl(f->f_kernel, cloexec ? F_DUPFD_CLOEXEC :
		    F_DUPFD, 0));
	fd = fd_reserve();
	if (fd != -1)
		fd_install(fd, f, cloexec);
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
