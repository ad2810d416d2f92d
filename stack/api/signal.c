/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals.  A handler of the program may do whatever it could do with a
 * kernel's sockets: call send(), or leave by longjmp().  It must therefore
 * never run while its thread is inside the stack, perhaps with locks held.
 * Like a kernel, which delivers signals at the return to user mode, this file
 * defers a signal that arrives inside the stack.  If the call sleeps, it ends
 * with EINTR.  The handler runs when the call has left the stack.
 *
 * sigaction() and signal() install catcher() for the program's handlers and
 * store these in the table below.  Signals that report faults of the program
 * are not intercepted.
 *
 * A call that ended with EINTR is restarted if every handler that ran has
 * SA_RESTART (signal(7)), and fails with EINTR otherwise.
 */
#include <pthread.h>
#include <string.h>
#include <ucontext.h>

#include "api/api.h"
#include "kern/thread.h"

#define	KERNEL_SIGSET	8	/* bytes of the mask in a ucontext */

/*
 * Pending signals of a thread.  The catcher runs with all signals blocked, so
 * it never interrupts itself.
 */
struct api_thread {
	volatile unsigned depth;	/* calls entered */
	volatile uint64_t pending;	/* signal numbers, bit sig - 1 */
	siginfo_t	 info[NSIG];	/* of pending signals */
};
static _Thread_local struct api_thread self
    __attribute__((tls_model("initial-exec")));

/*
 * The program's dispositions.  The lock is a spin lock with all signals
 * blocked, because sigaction() may be called in a handler.
 */
static atomic_u32 sig_lock;
static struct sigaction sig_actions[NSIG];	/* sig_lock */

static void
sig_lock_enter(sigset_t *old)
{
	sigset_t all;
	uint32_t unlocked = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, old);
	while (!atomic_cmpset_u32(&sig_lock, &unlocked, 1)) {
		unlocked = 0;
		mach_cpu_relax();
	}
}

static void
sig_lock_leave(const sigset_t *old)
{
	atomic_store_rel_u32(&sig_lock, 0);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/*
 * Runs the program's handler, as if the signal had arrived with the mask base
 * in force.  All signals are blocked on entry and on return.  Returns true if
 * interrupted calls are to be restarted.
 */
static bool
run_handler(int sig, siginfo_t *info, void *context, const sigset_t *base)
{
	struct sigaction sa;
	sigset_t mask, all;

	KASSERT(self.depth == 0, ("run_handler: signal %d in the stack", sig));
	sig_lock_enter(&all);
	sa = sig_actions[sig];
	sig_lock_leave(&all);
	if (sa.sa_flags & SA_RESETHAND) {
		struct sigaction dfl = { .sa_handler = SIG_DFL };

		real.sigaction(sig, &dfl, NULL);
	}
	sigorset(&mask, base, &sa.sa_mask);
	if (!(sa.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (sa.sa_flags & SA_SIGINFO)
		sa.sa_sigaction(sig, info, context);
	else if (sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN)
		sa.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return ((sa.sa_flags & SA_RESTART) != 0);
}

static void
catcher(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	sigset_t base;
	int saved = errno;

	if (self.depth > 0) {
		self.info[sig] = *info;
		self.pending |= 1ULL << (sig - 1);
		thread_interrupt();
	} else {
		/* The kernel stored its own, shorter, mask there. */
		sigemptyset(&base);
		memcpy(&base, &uc->uc_sigmask, KERNEL_SIGSET);
		(void)run_handler(sig, info, context, &base);
	}
	errno = saved;
}

/* Delivers pending signals; true if all handlers have SA_RESTART. */
static bool
deliver(void)
{
	sigset_t all, base;
	siginfo_t info;
	bool restart = true;
	int sig, saved = errno;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &base);
	atomic_store_u32(&curthread->td_interrupt, 0);
	while (self.pending != 0) {
		sig = __builtin_ctzll(self.pending) + 1;
		self.pending &= ~(1ULL << (sig - 1));
		info = self.info[sig];
		restart &= run_handler(sig, &info, NULL, &base);
	}
	pthread_sigmask(SIG_SETMASK, &base, NULL);
	errno = saved;
	return (restart);
}

void
api_enter(void)
{
	self.depth++;
	atomic_signal_fence(memory_order_seq_cst);
	(void)curthread;	/* attaches the thread to the stack */
	if (__predict_false(self.pending != 0))
		thread_interrupt();
}

bool
api_leave(int error)
{
	bool restart;

	KASSERT(self.depth > 0, ("api_leave: not in the stack"));
	atomic_signal_fence(memory_order_seq_cst);
	self.depth--;
	atomic_signal_fence(memory_order_seq_cst);
	if (__predict_true(self.pending == 0) || self.depth > 0)
		return (false);
	restart = deliver();
	return (restart && error == EINTR);
}

bool
api_signalled(void)
{
	return (self.pending != 0);
}

/* Signals whose handlers run at once, even inside the stack. */
EARLY static bool
is_fault(int sig)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
	case SIGABRT:
		return (true);
	default:
		return (false);
	}
}

/* The kernel's action for the program's action sa. */
static void
caught_action(const struct sigaction *sa, struct sigaction *caught)
{
	*caught = *sa;
	if (sa->sa_handler == SIG_DFL || sa->sa_handler == SIG_IGN)
		return;
	caught->sa_sigaction = catcher;
	caught->sa_flags |= SA_SIGINFO;
	caught->sa_flags &= ~(int)(SA_RESETHAND | SA_NODEFER);
	sigfillset(&caught->sa_mask);
}

static int
catch_signal(int sig, const struct sigaction *sa, struct sigaction *old)
{
	struct sigaction caught, was;
	sigset_t mask;
	int error;

	if (sa != NULL)
		caught_action(sa, &caught);
	sig_lock_enter(&mask);
	error = real.sigaction(sig, sa != NULL ? &caught : NULL, &was);
	if (error == 0 && (was.sa_flags & SA_SIGINFO) &&
	    was.sa_sigaction == catcher)
		was = sig_actions[sig];
	if (error == 0 && sa != NULL)
		sig_actions[sig] = *sa;
	sig_lock_leave(&mask);
	if (error == 0 && old != NULL)
		*old = was;
	return (error);
}

EXPORT EARLY int
sigaction(int sig, const struct sigaction *sa, struct sigaction *old)
{
	if (is_fault(sig) || sig <= 0 || sig >= NSIG ||
	    api_state() == API_PASSIVE)
		return (real.sigaction(sig, sa, old));
	return (catch_signal(sig, sa, old));
}

static sighandler_t
set_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags }, old;

	if (sigaction(sig, &sa, &old) != 0)
		return (SIG_ERR);
	return (old.sa_handler);
}

/* BSD semantics, as in the C library: the handler stays, calls restart. */
EXPORT sighandler_t
signal(int sig, sighandler_t handler)
{
	return (set_handler(sig, handler, SA_RESTART));
}

EXPORT sighandler_t
sysv_signal(int sig, sighandler_t handler)
{
	return (set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER));
}

EXPORT sighandler_t __sysv_signal(int, sighandler_t);

EXPORT sighandler_t
__sysv_signal(int sig, sighandler_t handler)
{
	return (sysv_signal(sig, handler));
}
