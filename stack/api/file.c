/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table that maps descriptor numbers to the stack's files.
 *
 * Every descriptor of the stack is a real one: a duplicate of one O_PATH
 * descriptor, which costs only its number.  Numbers are therefore unique in
 * the process, and the kernel's limit applies.  A call that bypasses this
 * library (a direct system call, a child after fork()) fails with EBADF
 * instead of using another file.
 *
 * The discipline of descriptors under threads:
 *
 *  1. A slot is empty, reserved, or refers to a file.  A number of the stack
 *     and its slot change together while the table is locked for a change
 *     (fd_lockops).  A call on a number whose slot is empty goes to the kernel
 *     without that lock.  A slot is therefore emptied after its number was
 *     closed, and it is not empty before the number belongs to the stack.
 *  2. A reserved number belongs to a call that will install a file, such as a
 *     waiting accept().  For all other calls it is closed: EBADF, and EBUSY if
 *     dup2() would replace it.
 *  3. A reference (f_refs) keeps a file's memory and its socket.  fget() takes
 *     one for a call unless the count is 0, and needs no lock, because the
 *     memory of files is never freed.
 *  4. A hold (f_fds) keeps a file open: one for each descriptor and each
 *     message that passes the file.  Each hold includes a reference.
 *     file_new() returns the first hold.  file_hold() adds one unless the count
 *     is 0: a closed file is never opened again.  The last one closes the
 *     socket.
 *  5. A call with a reference may find the socket closed.  It locks the socket
 *     and tests SS_NOFDREF or so_pcb (uipc_socket.c).
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "api/remote.h"
#include "kern/planted.h"

#define	FILE_SLAB	64	/* files allocated together */

atomic_uptr fdtable[API_MAXFD];

struct mtx file_lock;
static struct file *file_freelist GUARDED_BY(file_lock);
static atomic_u32 fd_top;	/* max slot ever used + 1 */
static atomic_u64 fd_hidden_bits[API_MAXFD / 64];
static atomic_u64 fd_cloexec_bits[API_MAXFD / 64];
static int placeholder = -1;	/* the descriptor that is duplicated */

/* What slots refer to that have no file. */
static struct file file_reserved = { .f_refs = 1, .f_type = FT_RESERVED };

void
file_init(void)
{
	mtx_init(&file_lock, LC_FD);
	placeholder = fd_hidden_copy(open("/dev/null", O_PATH | O_CLOEXEC));
	if (placeholder == -1)
		panic("libstack: /dev/null: errno %d", errno);
}

struct file *
file_new(enum file_type type)
{
	struct file *f;

	mtx_lock(&file_lock);
	if (file_freelist == NULL) {
		f = kmalloc_aligned(FILE_SLAB * sizeof(*f), _Alignof(struct file));
		for (unsigned i = 0; i < FILE_SLAB; i++) {
			f[i].f_free = file_freelist;
			file_freelist = &f[i];
		}
	}
	f = file_freelist;
	file_freelist = f->f_free;
	mtx_unlock(&file_lock);

	KASSERT(atomic_load_u32(&f->f_refs) == 0,
	    ("file_new: %u references", atomic_load_u32(&f->f_refs)));
	f->f_type = type;
	f->f_handle = 0;
	f->f_inode = 0;
	f->f_so = NULL;
	f->f_ep = NULL;
	f->f_kernel = -1;
	atomic_store_u32(&f->f_fds, 1);
	atomic_store_u32(&f->f_nonblock, 0);
	atomic_store_u32(&f->f_async, 0);
	atomic_store_u32(&f->f_timeo, 0);
	role_assert(&epoll_filelock);	/* the file is new */
	LIST_INIT(&f->f_items);
	atomic_store_rel_u32(&f->f_refs, 1);
	return (f);
}

/* Each step of a holder leaves a usable list. */
void
file_forked(void)
{
	mtx_init(&file_lock, LC_FD);
}

static void
file_free(struct file *f)
{
	KASSERT(atomic_load_u32(&f->f_fds) == 0,
	    ("file_free: %u descriptors", atomic_load_u32(&f->f_fds)));
	if (f->f_so != NULL)
		sorele(f->f_so);
	if (f->f_ep != NULL)
		epset_free(f->f_ep);
	fd_hidden_close(f->f_kernel);
	mtx_lock(&file_lock);
	f->f_free = file_freelist;
	file_freelist = f;
	mtx_unlock(&file_lock);
}

__hot void
frele(struct file *f)
{
	uint32_t was = atomic_fetchadd_u32(&f->f_refs, (uint32_t)-1);

	KASSERT(was > 0, ("frele: file %p had no reference", (void *)f));
	if (was == 1)
		file_free(f);
}

struct file *
fget(int fd)
{
	struct file *f = fd_ours(fd) ? fd_lockops->get(fd) : NULL;

	if (__predict_false(f == &file_reserved)) {
		frele(f);
		return (NULL);
	}
	return (f);
}

__hot struct file *
fget_type(int fd, enum file_type type)
{
	struct file *f = fd_ours(fd) ? fd_lockops->get(fd) : NULL;

	if (f != NULL && f->f_type != type) {
		frele(f);
		return (NULL);
	}
	return (f);
}

bool
file_hold(struct file *f)
{
	uint32_t n = atomic_load_acq_u32(&f->f_fds);

	if (PLANTED(FD_HOLD))
		n = atomic_fetchadd_u32(&f->f_fds, 1) + 1;
	else
		do {
			if (n == 0)
				return (false);
		} while (!atomic_cmpset_u32(&f->f_fds, &n, n + 1));
	atomic_fetchadd_u32(&f->f_refs, 1);
	return (true);
}

static void
fd_set_bit(atomic_u64 *bits, int fd, bool on)
{
	const uint64_t mask = 1ULL << (fd % 64);

	if (on)
		atomic_set_u64(&bits[fd / 64], mask);
	else
		atomic_clear_u64(&bits[fd / 64], mask);
}

static bool
fd_bit(atomic_u64 *bits, int fd)
{
	return ((atomic_load_u64(&bits[fd / 64]) >> (fd % 64) & 1) != 0);
}

static void
fd_raise_top(int fd)
{
	uint32_t top = atomic_load_u32(&fd_top);

	while (top <= (uint32_t)fd &&
	    !atomic_cmpset_u32(&fd_top, &top, (uint32_t)fd + 1))
		;
}

static struct file *
slot_get(int fd)
{
	return ((struct file *)atomic_load_acq_uptr(&fdtable[fd]));
}

static void
slot_set(int fd, struct file *f)
{
	atomic_store_rel_uptr(&fdtable[fd], (uintptr_t)f);
}

/*
 * Table locked: stores f, which may be NULL, at a number that the kernel has
 * returned.  A file that is still there was closed behind the library's back,
 * for example by a system call that the program made itself; its hold is the
 * caller's.
 */
static struct file *
slot_claim(int fd, struct file *f)
{
	struct file *stale = slot_get(fd);

	KASSERT(!fd_hidden(fd), ("slot_claim: %d is the stack's own", fd));
	fd_raise_top(fd);
	slot_set(fd, f);
	return (stale != &file_reserved ? stale : NULL);
}

/* Table locked: a number above the table is refused like one over the limit. */
static int
number_check(int fd)
{
	if (fd < API_MAXFD)
		return (fd);
	real.close(fd);
	return ((int)api_return(EMFILE, 0));
}

int
fd_reserve(void)
{
	struct file *stale = NULL;
	int fd;

	fd_lockops->change();
	fd = number_check(real.fcntl(placeholder, F_DUPFD_CLOEXEC, 0));
	if (fd != -1)
		stale = slot_claim(fd, &file_reserved);
	fd_lockops->changed();
	if (stale != NULL)
		file_close(stale);
	return (fd);
}

void
fd_unreserve(int fd)
{
	fd_lockops->change();
	KASSERT(slot_get(fd) == &file_reserved,
	    ("fd_unreserve: descriptor %d", fd));
	real.close(fd);
	slot_set(fd, NULL);
	fd_lockops->changed();
}

void
fd_install(int fd, struct file *f, bool cloexec)
{
	KASSERT((unsigned)fd < API_MAXFD, ("fd_install: descriptor %d", fd));
	fd_lockops->change();
	KASSERT(slot_get(fd) == &file_reserved,
	    ("fd_install: descriptor %d is not reserved", fd));
	fd_set_cloexec(fd, cloexec);
	slot_set(fd, f);
	fd_lockops->changed();
}

void
fd_adopt(int fd, struct file *f, bool cloexec)
{
	struct file *stale;

	fd_lockops->change();
	stale = slot_claim(fd, f);
	fd_set_cloexec(fd, cloexec);
	fd_lockops->changed();
	if (stale != NULL)
		file_close(stale);
}

void
fd_convert(int fd, struct file *f, bool cloexec)
{
	struct file *stale = f;

	fd_lockops->change();
	if (real.dup3(placeholder, fd, O_CLOEXEC) != -1) {
		stale = slot_claim(fd, f);
		fd_set_cloexec(fd, cloexec);
	}
	fd_lockops->changed();
	if (stale != NULL)
		file_close(stale);
}

void
fd_hold_place(int fd)
{
	(void)real.dup3(placeholder, fd, O_CLOEXEC);
}

int
fd_close(int fd, struct file **fp)
{
	struct file *f;
	int r;

	KASSERT((unsigned)fd < API_MAXFD, ("fd_close: descriptor %d", fd));
	*fp = NULL;
	fd_lockops->change();
	f = slot_get(fd);
	if (f == &file_reserved && !PLANTED(FD_RESERVED)) {
		r = (int)api_return(EBADF, 0);
	} else {
		if (f != NULL)
			slot_set(fd, &file_reserved);
		r = real.close(fd);
		if (f != NULL)
			slot_set(fd, NULL);
		*fp = f != &file_reserved ? f : NULL;
	}
	fd_lockops->changed();
	return (r);
}

int
fd_duplicate(int fd, struct file *f, int low, bool cloexec)
{
	struct file *stale = NULL;
	int newfd;

	fd_lockops->change();
	if (slot_get(fd) != f)
		newfd = (int)api_return(EBADF, 0);	/* closed meanwhile */
	else
		newfd = number_check(real.fcntl(fd, cloexec ||
		    f->f_type == FT_SOCKET ? F_DUPFD_CLOEXEC : F_DUPFD, low));
	if (newfd != -1) {
		stale = slot_claim(newfd, f);
		fd_set_cloexec(newfd, cloexec);
	}
	fd_lockops->changed();
	if (stale != NULL)
		file_close(stale);
	return (newfd);
}

/* Table locked: dup3() and the slot of newfd; *victim is what it had. */
static int
replace_locked(int fd, struct file *f, int newfd, int flags,
    struct file **victim)
{
	struct file *was = slot_get(newfd);
	int r;

	if (was == &file_reserved)
		return ((int)api_return(EBUSY, 0));
	if (f != NULL && slot_get(fd) != f)
		return ((int)api_return(EBADF, 0));	/* closed meanwhile */
	if (was == NULL)
		slot_set(newfd, &file_reserved);
	r = real.dup3(fd, newfd, f != NULL && f->f_type == FT_SOCKET ?
	    O_CLOEXEC : flags);
	if (r != -1) {
		fd_raise_top(newfd);
		fd_set_cloexec(newfd, (flags & O_CLOEXEC) != 0);
		*victim = was;
	}
	slot_set(newfd, r != -1 ? f : was);
	return (r);
}

int
fd_replace(int fd, struct file *f, int newfd, int flags, struct file **victim)
{
	int r;

	*victim = NULL;
	if (PLANTED(FD_REPLACE))
		return (replace_locked(fd, f, newfd, flags, victim));
	fd_lockops->change();
	r = replace_locked(fd, f, newfd, flags, victim);
	fd_lockops->changed();
	return (r);
}

int
fd_close_kernel(unsigned first, unsigned last)
{
	const unsigned top = fd_limit();
	unsigned from = first;
	int r = 0;

	fd_lockops->change();
	for (unsigned fd = first; fd <= last && fd < top; fd++) {
		if (!fd_hidden((int)fd) && !fd_ours((int)fd))
			continue;
		if (from < fd)
			(void)real.close_range(from, fd - 1, 0);
		from = fd + 1;
	}
	if (from <= last)
		r = real.close_range(from, last, 0);
	fd_lockops->changed();
	return (r);
}

struct file *
fd_take(int fd)
{
	struct file *f;

	KASSERT((unsigned)fd < API_MAXFD, ("fd_take: descriptor %d", fd));
	fd_lockops->change();
	f = slot_get(fd);
	if (f == &file_reserved)
		f = NULL;
	else
		slot_set(fd, NULL);
	fd_lockops->changed();
	return (f);
}

void
file_close(struct file *f)
{
	uint32_t was = atomic_fetchadd_u32(&f->f_fds, (uint32_t)-1);

	KASSERT(was > 0, ("file_close: no descriptor"));
	if (was == 1 && api_state() == API_CLIENT)
		remote_close(f);
	else if (was == 1 && f->f_type == FT_SOCKET) {
		epoll_forget(f);
		/* SO_LINGER may wait; a signal ends the wait, not the close. */
		(void)soclose(f->f_so);
	}
	frele(f);
}

uint64_t
file_inode(const struct file *f)
{
	if (f->f_so != NULL)
		return ((uintptr_t)f->f_so / _Alignof(struct socket));
	return (f->f_ep != NULL ? (uintptr_t)f->f_ep : f->f_inode);
}

void
fd_drop_reserved(int fd)
{
	KASSERT(slot_get(fd) == &file_reserved,
	    ("fd_drop_reserved: descriptor %d", fd));
	real.close(fd);
	slot_set(fd, NULL);
}

void
fd_close_hidden(int kept)
{
	for (int fd = 0; fd < (int)fd_limit(); fd++)
		if (fd_hidden(fd) && fd != kept && fd != placeholder)
			fd_hidden_close(fd);
}

/*
 * A program that closes all descriptors must not close the stack's device.
 * The stack's own descriptors are marked, and appear closed to the program.
 */
void
fd_hide(int fd)
{
	if ((unsigned)fd >= API_MAXFD)
		return;
	fd_set_bit(fd_hidden_bits, fd, true);
	fd_raise_top(fd);
}

void
fd_unhide(int fd)
{
	if ((unsigned)fd < API_MAXFD)
		fd_set_bit(fd_hidden_bits, fd, false);
}

bool
fd_hidden(int fd)
{
	return ((unsigned)fd < API_MAXFD && fd_bit(fd_hidden_bits, fd));
}

bool
fd_known(int fd)
{
	return (fd_ours(fd) || fd_hidden(fd));
}

bool
fd_cloexec(int fd)
{
	return (fd_bit(fd_cloexec_bits, fd));
}

void
fd_set_cloexec(int fd, bool on)
{
	fd_set_bit(fd_cloexec_bits, fd, on);
}

/*
 * Moves a descriptor to a high number, because programs expect low ones.  The
 * table is locked for a change from the creation of fd on, if another thread
 * may exist: its close() or dup2() of that number must not take the descriptor.
 */
int
fd_hidden_copy(int fd)
{
	struct rlimit lim;
	int high = 512, copy;

	if (fd == -1)
		return (-1);
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur / 2 < 512)
		high = (int)(lim.rlim_cur / 2);
	copy = real.fcntl(fd, F_DUPFD_CLOEXEC, high);
	if (copy != -1) {
		real.close(fd);
		fd = copy;
	}
	fd_hide(fd);
	return (fd);
}

int
fd_hidden_event(void)
{
	int fd, error;

	fd_lockops->change();
	fd = fd_hidden_copy(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	error = errno;
	fd_lockops->changed();
	errno = error;
	return (fd);
}

void
fd_hidden_close(int fd)
{
	if (fd == -1)
		return;
	fd_unhide(fd);
	real.close(fd);
}

unsigned
fd_limit(void)
{
	return (atomic_load_acq_u32(&fd_top));
}

void
fd_foreach(void (*fn)(int fd, struct file *))
{
	for (unsigned fd = 0; fd < fd_limit(); fd++) {
		uintptr_t f = atomic_load_acq_uptr(&fdtable[fd]);

		if (f != 0)
			fn((int)fd, (struct file *)f);
	}
}
