/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that represent sockets, and the identity of the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/posix/host.h"

/* The birth time distinguishes files that reuse an inode number. */
static int
identify(const char *path, struct mach_node *node, mode_t *mode)
{
	struct statx st;

	if (host_call(SYS_statx, AT_FDCWD, path, 0L, STATX_BASIC_STATS |
	    STATX_BTIME, &st) != 0)
		return (errno);
	node->mn_dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	node->mn_ino = st.stx_ino;
	node->mn_born = (uint64_t)st.stx_btime.tv_sec * NSEC_PER_SEC +
	    st.stx_btime.tv_nsec;
	*mode = st.stx_mode;
	return (0);
}

/* mknod() applies the umask, as the kernel's bind() does. */
int
mach_node_make(const char *path, struct mach_node *node)
{
	mode_t mode;

	if (mknod(path, S_IFSOCK | 0777, 0) != 0)
		return (errno);
	return (identify(path, node, &mode));
}

int
mach_node_find(const char *path, struct mach_node *node)
{
	mode_t mode;
	int error = identify(path, node, &mode);

	if (error != 0)
		return (error);
	if (!S_ISSOCK(mode))
		return (ECONNREFUSED);
	return (eaccess(path, W_OK) != 0 ? errno : 0);
}

void
mach_credentials(pid_t *pid, uid_t *uid, gid_t *gid)
{
	*pid = getpid();
	*uid = geteuid();
	*gid = getegid();
}
