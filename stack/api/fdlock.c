/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locking strategies of the descriptor table (fd.lock).
 *
 *	mutex	  one mutex around every lookup and every change, as the file
 *		  descriptor lock of FreeBSD until 2006
 *	rw	  a reader-writer lock, as the sleepable one of 2007
 *	lockless  no lock: a lookup takes a reference, unless the count is
 *		  zero already, and then checks that the slot still holds the
 *		  same file; changes take the mutex
 *
 * Calls look descriptors up before they enter the stack.  A function that
 * locks here therefore enters it, so that no signal handler interrupts it and
 * looks up another descriptor.
 */
#include "api/api.h"
#include "kern/sysctl.h"

enum fd_locking { FD_MUTEX, FD_RW, FD_LOCKLESS };
static const char *const names[] = { "mutex", "rw", "lockless", NULL };

static atomic_u32 locking = FD_LOCKLESS;
static struct mtx table_mtx;
static struct rwlock table_rwlock;

static const struct sysctl_oid fd_oids[] = {
	{ .oid_name = "fd.lock", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &locking, .oid_names = names,
	  .oid_descr = "lock of a descriptor lookup: mutex, rw, lockless" },
};

/* Table locked: the slot references its file. */
static struct file *
get_locked(int fd)
{
	struct file *f = (struct file *)atomic_load_acq_uptr(&fdtable[fd]);

	if (f != NULL)
		atomic_fetchadd_u32(&f->f_refs, 1);
	return (f);
}

static struct file *
mutex_get(int fd)
{
	struct file *f;

	api_enter();
	mtx_lock(&table_mtx);
	f = get_locked(fd);
	mtx_unlock(&table_mtx);
	api_leave(0);
	return (f);
}

static void
mutex_change(void) ACQUIRES(table_mtx)
{
	api_enter();
	mtx_lock(&table_mtx);
}

static void
mutex_changed(void) RELEASES(table_mtx)
{
	mtx_unlock(&table_mtx);
	api_leave(0);
}

static struct file *
rw_get(int fd)
{
	struct file *f;

	api_enter();
	rw_rlock(&table_rwlock);
	f = get_locked(fd);
	rw_runlock(&table_rwlock);
	api_leave(0);
	return (f);
}

static void
rw_change(void) ACQUIRES(table_rwlock)
{
	api_enter();
	rw_wlock(&table_rwlock);
}

static void
rw_changed(void) RELEASES(table_rwlock)
{
	rw_wunlock(&table_rwlock);
	api_leave(0);
}

__hot static struct file *
lockless_get(int fd)
{
	struct file *f;
	uint32_t n;

	for (;;) {
		f = (struct file *)atomic_load_acq_uptr(&fdtable[fd]);
		if (f == NULL)
			return (NULL);
		n = atomic_load_acq_u32(&f->f_refs);
		while (n != 0 && !atomic_cmpset_u32(&f->f_refs, &n, n + 1))
			;
		if (n == 0)
			continue;	/* closed meanwhile: look up again */
		if (atomic_load_acq_uptr(&fdtable[fd]) == (uintptr_t)f)
			return (f);
		frele(f);
	}
}

static const struct fd_lockops strategies[] = {
	[FD_MUTEX] = { mutex_get, mutex_change, mutex_changed },
	[FD_RW] = { rw_get, rw_change, rw_changed },
	[FD_LOCKLESS] = { lockless_get, mutex_change, mutex_changed },
};
const struct fd_lockops *fd_lockops = &strategies[FD_LOCKLESS];

void
fd_lock_init(void)
{
	mtx_init(&table_mtx, LC_FILEDESC);
	rw_init(&table_rwlock, LC_FILEDESC);
	sysctl_register(fd_oids, nitems(fd_oids));
}

/* The child has a copy of the count of writers that wait in the parent. */
void
fd_lock_forked(void)
{
	mtx_init(&table_mtx, LC_FILEDESC);
	rw_init(&table_rwlock, LC_FILEDESC);
}

void
fd_lock_start(void)
{
	fd_lockops = &strategies[atomic_load_u32(&locking)];
}
