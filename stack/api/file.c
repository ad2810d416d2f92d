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
 * A lookup takes no lock unless fd.lock selects one (fdlock.c).  A slot holds
 * a pointer to a struct file, whose memory is never freed.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "api/api.h"

#define	FILE_SLAB	64	/* files allocated together */

atomic_uptr fdtable[API_MAXFD];

static struct mtx file_lock;
static struct file *file_freelist GUARDED_BY(file_lock);
static atomic_u32 fd_top;	/* max slot ever used + 1 */
static atomic_u64 fd_hidden_bits[API_MAXFD / 64];
static atomic_u64 fd_cloexec_bits[API_MAXFD / 64];
static int placeholder = -1;	/* the descriptor that is duplicated */

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
	f->f_so = NULL;
	f->f_ep = NULL;
	f->f_kernel = -1;
	atomic_store_u32(&f->f_fds, 0);
	atomic_store_u32(&f->f_nonblock, 0);
	atomic_store_u32(&f->f_timeo, 0);
	LIST_INIT(&f->f_items);
	atomic_store_rel_u32(&f->f_refs, 1);
	return (f);
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
	if (f->f_kernel != -1) {
		fd_unhide(f->f_kernel);
		real.close(f->f_kernel);
	}
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
	return (fd_ours(fd) ? fd_lockops->get(fd) : NULL);
}

__hot struct file *
fget_type(int fd, enum file_type type)
{
	struct file *f = fget(fd);

	if (f != NULL && f->f_type != type) {
		if (f->f_type == FT_LEFT)
			api_explain();
		frele(f);
		return (NULL);
	}
	return (f);
}

int
fd_reserve(void)
{
	int fd = real.fcntl(placeholder, F_DUPFD_CLOEXEC, 0);

	if (fd >= API_MAXFD) {
		real.close(fd);
		errno = EMFILE;
		return (-1);
	}
	return (fd);
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

void
fd_install(int fd, struct file *f, bool cloexec)
{
	uintptr_t was;

	KASSERT((unsigned)fd < API_MAXFD, ("fd_install: descriptor %d", fd));
	KASSERT(!fd_hidden(fd), ("fd_install: %d is the stack's own", fd));
	atomic_fetchadd_u32(&f->f_refs, 1);
	atomic_fetchadd_u32(&f->f_fds, 1);
	fd_raise_top(fd);
	fd_lockops->change();
	fd_set_cloexec(fd, cloexec);
	was = atomic_swap_uptr(&fdtable[fd], (uintptr_t)f);
	fd_lockops->changed();
	KASSERT(was == 0, ("fd_install: descriptor %d is in use", fd));
	(void)was;
}

struct file *
fd_take(int fd)
{
	uintptr_t f;

	KASSERT((unsigned)fd < API_MAXFD, ("fd_take: descriptor %d", fd));
	fd_lockops->change();
	f = atomic_swap_uptr(&fdtable[fd], 0);
	fd_lockops->changed();
	return ((struct file *)f);
}

void
file_close(struct file *f)
{
	uint32_t was = atomic_fetchadd_u32(&f->f_fds, (uint32_t)-1);

	KASSERT(was > 0, ("file_close: no descriptor"));
	if (was == 1 && f->f_type == FT_SOCKET) {
		epoll_forget(f);
		/* SO_LINGER may wait; a signal ends the wait, not the close. */
		(void)soclose(f->f_so);
	}
	frele(f);
}

void
fd_leave(int fd, struct file *f)
{
	static struct file left = { .f_refs = 1, .f_type = FT_LEFT };

	if (f->f_type == FT_SOCKET)
		atomic_swap_uptr(&fdtable[fd], (uintptr_t)&left);
}

void
fd_forget(int fd)
{
	if (api_state() == API_FORKED && fd_ours(fd))
		(void)fd_take(fd);
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
fd_cloexec(int fd)
{
	return (fd_bit(fd_cloexec_bits, fd));
}

void
fd_set_cloexec(int fd, bool on)
{
	fd_set_bit(fd_cloexec_bits, fd, on);
}

/* Moves a descriptor to a high number, because programs expect low ones. */
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
