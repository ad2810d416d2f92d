/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket's flags and its owner, who gets signals (fcntl(2), kern/sigio.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "api/remote.h"
#include "kern/sigio.h"

static int64_t
get_flags(struct file *f)
{
	return (O_RDWR | (atomic_load_u32(&f->f_nonblock) ? O_NONBLOCK : 0) |
	    (atomic_load_u32(&f->f_async) ? O_ASYNC : 0));
}

static void
set_flags(struct file *f, int mask, int flags, int fd)
{
	const bool async = (flags & O_ASYNC) != 0;

	if (mask & O_NONBLOCK)
		atomic_store_u32(&f->f_nonblock, (flags & O_NONBLOCK) != 0);
	if ((mask & O_ASYNC) == 0 || atomic_load_u32(&f->f_async) == async)
		return;
	atomic_store_u32(&f->f_async, async);
	sosetasync(f->f_so, async ? fd : -1);
}

/* The kind above, the identifier below. */
static int64_t
owner_value(struct socket *so)
{
	const struct mach_target owner = sogetowner(so);

	return ((int64_t)owner.kind << 32 | (uint32_t)owner.id);
}

static void
take_owner(struct socket *so, const int32_t arg[FCNTL_ARGS])
{
	sosetowner(so, &(struct mach_target){ (enum mach_kind)arg[0], arg[1],
	    arg[2] });
}

/*
 * Arguments of F_SETFL: mask, flags, descriptor.  Arguments of F_SETOWN_EX:
 * the members of a struct mach_target.  Value of F_GETOWN_EX: owner_value().
 */
int
file_fcntl(struct file *f, int cmd, const int32_t arg[FCNTL_ARGS],
    int64_t *value)
{
	switch (cmd) {
	case F_GETFL:
		*value = get_flags(f);
		return (0);
	case F_SETFL:
		set_flags(f, arg[0], arg[1], arg[2]);
		return (0);
	case F_GETOWN_EX:
		*value = owner_value(f->f_so);
		return (0);
	case F_SETOWN_EX:
		take_owner(f->f_so, arg);
		return (0);
	case F_GETSIG:
		*value = sogetsignal(f->f_so);
		return (0);
	case F_SETSIG:
		sosetsignal(f->f_so, arg[0]);
		return (0);
	default:
		return (EINVAL);
	}
}

static int
request(struct file *f, int cmd, int a, int b, int d, int64_t *value)
{
	const int32_t arg[FCNTL_ARGS] = { a, b, d };
	int error;

	*value = 0;
	api_enter();
	error = f->f_so == NULL ? remote_fcntl(f, cmd, arg, value) :
	    file_fcntl(f, cmd, arg, value);
	api_leave(0);
	return (error);
}

void
file_setflags(int fd, struct file *f, int mask, int flags)
{
	int64_t none;

	(void)request(f, F_SETFL, mask, flags, fd, &none);
}

/* Whether a process, group or thread of this number exists. */
static bool
exists(enum mach_kind kind, pid_t id)
{
	return (id > 0 && (kill(kind == MACH_GROUP ? -id : id, 0) == 0 ||
	    errno != ESRCH));
}

/*
 * A thread of another process is signalled only if it is its first, whose
 * number is the process's.
 */
static int
set_owner(struct file *f, int kind, pid_t id)
{
	const pid_t self = getpid();
	int64_t none;

	if (kind < MACH_THREAD || kind > MACH_GROUP)
		return (EINVAL);
	if (id != 0 && !exists((enum mach_kind)kind, id))
		return (ESRCH);
	return (request(f, F_SETOWN_EX, kind, id, kind == MACH_THREAD &&
	    tgkill(self, id, 0) == 0 ? self : id, &none));
}

static struct f_owner_ex
get_owner(struct file *f)
{
	struct f_owner_ex owner;
	int64_t value;

	(void)request(f, F_GETOWN_EX, 0, 0, 0, &value);
	owner.type = (enum __pid_type)(value >> 32);
	owner.pid = (pid_t)value;
	if (!exists((enum mach_kind)owner.type, owner.pid))
		owner.pid = 0;
	return (owner);
}

static int
set_signal(struct file *f, long sig)
{
	int64_t none;

	if (sig < 0 || sig >= _NSIG)
		return (EINVAL);
	return (request(f, F_SETSIG, (int)sig, 0, 0, &none));
}

/* F_SETOWN: a negative number is a group's. */
static int
set_process(struct file *f, int id)
{
	if (id == INT_MIN)
		return (EINVAL);
	return (id < 0 ? set_owner(f, MACH_GROUP, -id) :
	    set_owner(f, MACH_PROCESS, id));
}

static int
get_process(struct file *f)
{
	const struct f_owner_ex owner = get_owner(f);

	return (owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid);
}

static int
get_value(struct file *f, int cmd)
{
	int64_t value;

	(void)request(f, cmd, 0, 0, 0, &value);
	return ((int)value);
}

int
owner_fcntl(struct file *f, int cmd, long arg)
{
	struct f_owner_ex *ex = (struct f_owner_ex *)arg;

	if ((cmd == F_SETOWN_EX || cmd == F_GETOWN_EX) && address_bad(ex))
		return ((int)api_return(EFAULT, 0));
	switch (cmd) {
	case F_SETOWN:
		return ((int)api_return(set_process(f, (int)arg), 0));
	case F_GETOWN:
		return (get_process(f));
	case F_SETOWN_EX:
		return ((int)api_return(set_owner(f, (int)ex->type, ex->pid),
		    0));
	case F_GETOWN_EX:
		*ex = get_owner(f);
		return (0);
	case F_SETSIG:
		return ((int)api_return(set_signal(f, arg), 0));
	default:
		return (get_value(f, cmd));
	}
}
