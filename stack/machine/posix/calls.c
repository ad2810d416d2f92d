/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call stacks of other threads: a signal makes a thread record its own stack.
 */
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"
#include "machine/posix/host.h"
#include "machine/posix/symbols.h"

#define	ASK_SIGNAL	(SIGRTMAX - 2)
#define	CALLS_MAX	64
/* frames of the handler and of the host's signal delivery */
#define	SKIPPED		2
#define	PATIENCE_MS	500

/* Under LD_PRELOAD sigaction() is the stack's, for programs. */
extern int __sigaction(int, const struct sigaction *, struct sigaction *);

/*
 * The thread sanitizer cannot handle a thread interrupted within its runtime.
 */
#define	UNSEEN	__attribute__((no_sanitize("thread")))

enum { IDLE, ASKED, ANSWERED };
static struct {
	atomic_u32	 lock;		/* one request at a time */
	atomic_u32	 state;		/* [a] */
	atomic_u32	 who; /* [a] thread ID of the requested thread */
	/* written by the answering thread, then read by the requester */
	void		*calls[CALLS_MAX];
	int		 n;			/* like calls */
} question;
static _Thread_local bool disturbed;

bool
calls_disturbed(void)
{
	bool was = disturbed;

	disturbed = false;
	return (was);
}

void
calls_allow(sigset_t *blocked)
{
	sigdelset(blocked, ASK_SIGNAL);
}

UNSEEN static void
answer(int sig)
{
	const int saved = errno;
	uint32_t asked = ASKED;

	(void)sig;
	disturbed = true;
	if (atomic_load_u32(&question.who) == mach_thread_id() &&
	    atomic_load_acq_u32(&question.state) == ASKED) {
		question.n = backtrace(question.calls, CALLS_MAX);
		(void)atomic_cmpset_u32(&question.state, &asked, ANSWERED);
	}
	errno = saved;
}

/* False: the program uses the signal itself. */
static bool
prepare(void)
{
	static bool ready;
	struct sigaction sa = { .sa_handler = answer, .sa_flags = SA_RESTART };
	struct sigaction old;
	void *here[1];

	if (ready)
		return (true);
	if (__sigaction(ASK_SIGNAL, NULL, &old) != 0 ||
	    old.sa_handler != SIG_DFL)
		return (false);
	(void)backtrace(here, 1);	/* the first call loads a library */
	ready = __sigaction(ASK_SIGNAL, &sa, NULL) == 0;
	return (ready);
}

static bool
await_answer(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < PATIENCE_MS; i++) {
		if (atomic_load_acq_u32(&question.state) == ANSWERED)
			return (true);
		(void)host_call(SYS_nanosleep, &ms, NULL);
	}
	return (false);
}

UNSEEN int
mach_thread_calls(uint32_t id, void *calls[], int max)
{
	uint32_t unlocked = 0;
	int n = 0;

	if (!atomic_cmpset_u32(&question.lock, &unlocked, 1))
		return (0);
	atomic_store_u32(&question.who, id);
	atomic_store_rel_u32(&question.state, ASKED);
	if (id != 0 && prepare() && host_call(SYS_tgkill, getpid(), id,
	    ASK_SIGNAL) == 0 && await_answer()) {
		for (int i = SKIPPED; i < question.n && n < max; i++)
			calls[n++] = question.calls[i];
	}
	atomic_store_u32(&question.state, IDLE);
	atomic_store_rel_u32(&question.lock, 0);
	return (n);
}

void
mach_call_name(void *call, char *buf, size_t len)
{
	const char *file;
	Dl_info info;

	if (dladdr(call, &info) == 0 || info.dli_fname == NULL) {
		snprintf(buf, len, "%p", call);
		return;
	}
	/*
	 * The dynamic linker does not know the stack's functions, because they
	 * are hidden.  A return address may lie after the end of a
	 * function.
	 */
	if (symbol_name(info.dli_fname, STT_FUNC, (uintptr_t)call - 1 -
	    (uintptr_t)info.dli_fbase, buf, len))
		return;
	file = strrchr(info.dli_fname, '/');
	file = file != NULL ? file + 1 : info.dli_fname;
	snprintf(buf, len, "%s (%s+0x%zx)", info.dli_sname != NULL ?
	    info.dli_sname : "?", file,
	    (size_t)((uintptr_t)call - (uintptr_t)info.dli_fbase));
}
