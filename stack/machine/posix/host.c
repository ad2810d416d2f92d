/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console and files.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
	int fd = (int)host_call(SYS_openat, AT_FDCWD, path,
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

int
mach_appendfile(const char *path, const void *buf, size_t len, bool create)
{
	int fd = (int)host_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND |
	    O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_TRUNC : 0), 0600);
	const char *p = buf;
	ssize_t n = 0;

	if (fd < 0)
		return (errno);
	for (; len > 0; p += n, len -= (size_t)n) {
		n = host_writev(fd, &(struct iovec){ (void *)(uintptr_t)p,
		    len }, 1);
		if (n < 0)
			break;
	}
	host_close(fd);
	return (n < 0 ? (int)-n : 0);
}

static long
send_signal(const struct mach_target *to, int sig, int fd, long band)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_SIGIO };

	info.si_fd = fd;
	info.si_band = band;
	switch (to->kind) {
	case MACH_THREAD:
		return (host_call(SYS_rt_tgsigqueueinfo, to->process, to->id,
		    sig, &info));
	case MACH_PROCESS:
		return (host_call(SYS_rt_sigqueueinfo, to->id, sig, &info));
	case MACH_GROUP:
		break;
	}
	return (host_call(SYS_kill, -to->id, sig));
}

void
mach_signal(const struct mach_target *to, int sig, int fd, long band)
{
	if (to->id != 0 && send_signal(to, sig, fd, band) == -1 &&
	    errno == EAGAIN)
		(void)send_signal(to, SIGIO, 0, 0);
}
