/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console and files.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

void
mach_console(const char *text, size_t len)
{
	host_writev(STDERR_FILENO,
	    &(struct iovec){ .iov_base = (void *)(uintptr_t)text,
	    .iov_len = len }, 1);
}

ssize_t
mach_readfile(const char *path, char *buf, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path,
	    O_RDONLY | O_CLOEXEC, 0);
	ssize_t have = 0, n;

	if (fd < 0)
		return (-errno);
	do {
		n = host_readv(fd, &(struct iovec){ buf + have,
		    size - (size_t)have }, 1);
		have += n > 0 ? n : 0;
	} while (n > 0 && (size_t)have < size);
	host_close(fd);
	return (n < 0 ? n : have);
}
