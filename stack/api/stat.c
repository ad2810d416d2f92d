/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The status of a socket: programs test S_ISSOCK(), and compare devices and
 * inodes.  The placeholder would be a character device.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

#define	SOCKET_MODE	(S_IFSOCK | 0777)
#define	SOCKET_BLOCK	4096

enum who { KERNEL, STACK, CLOSED };	/* CLOSED: also hidden */

/*
 * The owner of a descriptor's file.  Inodes of open sockets differ; duplicates have
 * the same one.
 */
static enum who
socket_inode(int fd, ino_t *ino)
{
	struct file *f;
	enum file_type type;

	if (!fd_known(fd) || !api_own_process())
		return (KERNEL);
	if ((f = fget(fd)) == NULL)
		return (CLOSED);
	type = f->f_type;
	*ino = file_inode(f);
	frele(f);
	return (type == FT_SOCKET ? STACK : KERNEL);
}

EXPORT int
fstat(int fd, struct stat *st)
{
	ino_t ino;

	switch (socket_inode(fd, &ino)) {
	case CLOSED:
		return ((int)api_return(EBADF, 0));
	case STACK:
		memset(st, 0, sizeof(*st));
		st->st_ino = ino;
		st->st_mode = SOCKET_MODE;
		st->st_nlink = 1;
		st->st_uid = geteuid();
		st->st_gid = getegid();
		st->st_blksize = SOCKET_BLOCK;
		return (0);
	default:
		return (real.fstat(fd, st));
	}
}

static bool
names_descriptor(const char *path, int flags)
{
	return ((flags & AT_EMPTY_PATH) != 0 &&
	    (path == NULL || *path == '\0'));
}

EXPORT int
fstatat(int fd, const char *restrict path, struct stat *restrict st, int flags)
{
	return (names_descriptor(path, flags) && fd_known(fd) ? fstat(fd, st) :
	    real.fstatat(fd_kernel(fd), path, st, flags));
}

EXPORT int
statx(int fd, const char *restrict path, int flags, unsigned mask,
    struct statx *restrict stx)
{
	struct stat st;

	if (!names_descriptor(path, flags) || !fd_known(fd))
		return (real.statx(fd_kernel(fd), path, flags, mask, stx));
	if (fstat(fd, &st) != 0)
		return (-1);
	memset(stx, 0, sizeof(*stx));
	stx->stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID |
	    STATX_GID | STATX_INO | STATX_SIZE | STATX_BLOCKS;
	stx->stx_ino = st.st_ino;
	stx->stx_mode = (uint16_t)st.st_mode;
	stx->stx_nlink = (uint32_t)st.st_nlink;
	stx->stx_uid = st.st_uid;
	stx->stx_gid = st.st_gid;
	stx->stx_blksize = (uint32_t)st.st_blksize;
	return (0);
}

/* The names for 64-bit offsets, and those of the C library before 2.33. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat");

EXPORT int
fstat64(int fd, struct stat64 *st)
{
	return (fstat(fd, (struct stat *)(void *)st));
}

EXPORT int
fstatat64(int fd, const char *restrict path, struct stat64 *restrict st,
    int flags)
{
	return (fstatat(fd, path, (struct stat *)(void *)st, flags));
}

EXPORT int __fxstat(int, int, struct stat *);
EXPORT int __fxstat64(int, int, struct stat64 *);
EXPORT int __fxstatat(int, int, const char *, struct stat *, int);
EXPORT int __fxstatat64(int, int, const char *, struct stat64 *, int);

EXPORT int
__fxstat(int version, int fd, struct stat *st)
{
	(void)version;
	return (fstat(fd, st));
}

EXPORT int
__fxstat64(int version, int fd, struct stat64 *st)
{
	(void)version;
	return (fstat64(fd, st));
}

EXPORT int
__fxstatat(int version, int fd, const char *path, struct stat *st, int flags)
{
	(void)version;
	return (fstatat(fd, path, st, flags));
}

EXPORT int
__fxstatat64(int version, int fd, const char *path, struct stat64 *st,
    int flags)
{
	(void)version;
	return (fstatat64(fd, path, st, flags));
}
