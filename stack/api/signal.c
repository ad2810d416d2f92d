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
 * A deferred signal is queued again, to its thread, when the call has left the
 * stack.  The kernel then delivers it as it would have at once: with a
 * context, on the alternate stack, and with the information of its cause.  As
 * in a kernel, real-time signals queue up, and of any other number one waits
 * (signal(7)).  Without room for more, real-time signals are blocked until
 * then: the kernel keeps them.  A real-time signal is not queued again, because
 * its place is before those that have arrived since.
 *
 * A call that ended with EINTR is restarted if every handler that ran has
 * SA_RESTART (signal(7)), and fails with EINTR otherwise.
 */
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "api/api.h"
#include "kern/sigio.h"
#include "kern/thread.h"

#define	KERNEL_SIGSET	8	/* bytes of the mask in a ucontext */
#define	REALTIME	32	/* the kernel's first real-time signal */
#define	REALTIME_ROOM	32
#define	DEFERRED_MAX	(REALTIME - 1 + REALTIME_ROOM)

/*
 * Deferred signals of a thread, in their order.  The catcher runs with all
 * signals blocked, so it never interrupts itself.  What it changes is volatile:
 * it also runs inside pthread_sigmask(), of which the C library's headers
 * promise the compiler that it calls no function of this file (the attribute
 * leaf).
 */
struct api_thread {
	volatile unsigned depth;	/* calls entered */
	volatile unsigned count;	/* of those deferred */
	volatile uint64_t pending;	/* their numbers, bit sig - 1 */
	volatile uint64_t held;		/* numbers blocked without room */
	volatile bool	 restart;	/* the handlers that ran permit it */
	const void	*volatile handler; /* frame below which one runs */
	siginfo_t	 deferred[DEFERRED_MAX];
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
	const void *const outer = self.handler;
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
	self.handler = __builtin_frame_address(0);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (sa.sa_flags & SA_SIGINFO)
		sa.sa_sigaction(sig, info, context);
	else if (sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN)
		sa.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	self.handler = outer;
	return ((sa.sa_flags & SA_RESTART) != 0);
}

/*
 * A signal of a socket (kern/sigio.h).  A thread may not send another one the
 * codes of a kernel, so that these are restored here.
 */
static void
restore_code(siginfo_t *info)
{
	if (info->si_code != SI_SIGIO)
		return;
	info->si_code = SI_KERNEL;
	for (int code = POLL_IN; code <= POLL_HUP; code++)
		if (info->si_band != 0 && info->si_band == sosigio_bands[code])
			info->si_code = code;
}

static bool
realtime_room(void)
{
	return (self.count < REALTIME_ROOM);
}

/* Queues a signal's information in the kernel, for this thread. */
static bool
queue(int sig, siginfo_t *info)
{
	/* A process may queue itself the information of any cause. */
	return (real.syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig,
	    info) == 0);
}

/*
 * Blocks real-time signals, but those of the C library, in the code that the
 * signal has interrupted.
 */
static void
hold(ucontext_t *uc)
{
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
		if (sigismember(&uc->uc_sigmask, sig))
			continue;
		sigaddset(&uc->uc_sigmask, sig);
		self.held |= 1ULL << (sig - 1);
	}
}

static void
defer(int sig, siginfo_t *info, ucontext_t *uc)
{
	const uint64_t bit = 1ULL << (sig - 1);

	if (sig >= REALTIME && !realtime_room()) {
		/* The call has replaced the mask of hold(). */
		(void)queue(sig, info);
	} else if (sig >= REALTIME || (self.pending & bit) == 0) {
		self.deferred[self.count] = *info;
		self.count++;
		self.pending |= bit;
	}
	if (!realtime_room())
		hold(uc);
	thread_interrupt();
}

static void
catcher(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	sigset_t base;
	bool restart;
	int saved = errno;

	restore_code(info);
	if (self.depth > 0)
		defer(sig, info, uc);
	else {
		/* The kernel stored its own, shorter, mask there. */
		sigemptyset(&base);
		memcpy(&base, &uc->uc_sigmask, KERNEL_SIGSET);
		restart = self.restart;	/* the handler may use sockets */
		self.restart = run_handler(sig, info, context, &base) &&
		    restart;
	}
	errno = saved;
}

/*
 * Whether a deferred signal may be queued again.  Behind a real-time signal
 * that has arrived since the call it would come too late, so that its handler
 * runs at this place; one that needs the alternate stack is queued if none has
 * arrived so far.
 */
static bool
may_queue(int sig, const sigset_t *kept)
{
	sigset_t old;
	bool on_stack;

	if (sig < REALTIME)
		return (true);
	sig_lock_enter(&old);
	on_stack = (sig_actions[sig].sa_flags & SA_ONSTACK) != 0;
	sig_lock_leave(&old);
	return (on_stack && !sigismember(kept, sig));
}

/*
 * Queues a deferred signal again.  If that may not be, or if the kernel has no
 * room for it (RLIMIT_SIGPENDING), the handler runs with the context of this
 * place.
 */
static void
queue_again(siginfo_t *info, const sigset_t *base, const sigset_t *kept)
{
	const int sig = info->si_signo;
	ucontext_t here;

	if (may_queue(sig, kept) && queue(sig, info))
		return;
	getcontext(&here);
	self.restart = run_handler(sig, info, &here, base) && self.restart;
}

/* The oldest deferred signal, which is deferred no more; false: none is. */
static bool
take_deferred(siginfo_t *info)
{
	if (self.count == 0)
		return (false);
	*info = self.deferred[0];
	self.count--;
	memmove(&self.deferred[0], &self.deferred[1],
	    self.count * sizeof(self.deferred[0]));
	if (self.count == 0)
		self.pending = 0;
	else if (info->si_signo < REALTIME)
		self.pending &= ~(1ULL << (info->si_signo - 1));
	return (true);
}

/* Removes from a thread's mask the signals that hold() blocked. */
static void
release_held(sigset_t *mask)
{
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		if (self.held & 1ULL << (sig - 1))
			sigdelset(mask, sig);
	self.held = 0;
}

/*
 * Delivers pending signals, also those that were unblocked only while the call
 * slept (ppoll(2)); true if all handlers have SA_RESTART.
 */
NOINLINE static bool
deliver(void)
{
	sigset_t all, base, open, kept;
	siginfo_t info;
	int saved = errno;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &base);
	release_held(&base);
	sigpending(&kept);
	atomic_store_u32(&curthread->td_interrupt, 0);
	open = base;
	self.restart = true;
	while (take_deferred(&info)) {
		sigdelset(&open, info.si_signo);
		queue_again(&info, &base, &kept);
	}
	pthread_sigmask(SIG_SETMASK, &open, NULL);	/* handlers run here */
	pthread_sigmask(SIG_SETMASK, &base, NULL);
	errno = saved;
	return (self.restart);
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

bool
api_inside(void)
{
	return (self.depth > 0);
}

/* A handler that leaves by longjmp() leaves its frame behind. */
bool
signals_handling(void)
{
	return ((const char *)__builtin_frame_address(0) <
	    (const char *)self.handler);
}

void
signals_forked(void)
{
	self.count = 0;
	self.pending = 0;
}

void
signals_default(void)
{
	struct sigaction sa;

	for (int sig = 1; sig < NSIG; sig++)
		if (real.sigaction(sig, NULL, &sa) == 0 &&
		    sa.sa_handler != SIG_IGN && sa.sa_handler != SIG_DFL) {
			sa = (struct sigaction){ .sa_handler = SIG_DFL };
			(void)real.sigaction(sig, &sa, NULL);
		}
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
	const bool vforked = api_state() != API_PASSIVE && !api_own_process();
	struct sigaction caught, was;
	sigset_t mask;
	int error;

	if (sa != NULL && vforked)
		caught = *sa;
	else if (sa != NULL)
		caught_action(sa, &caught);
	sig_lock_enter(&mask);
	error = real.sigaction(sig, sa != NULL ? &caught : NULL, &was);
	if (error == 0 && (was.sa_flags & SA_SIGINFO) &&
	    was.sa_sigaction == catcher)
		was = sig_actions[sig];
	/* a vfork()ed child shares this table, but not its dispositions */
	if (error == 0 && sa != NULL && !vforked)
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

static atomic_u64 interrupting;	/* siginterrupt(): bit sig - 1 */

static bool
signal_valid(int sig)
{
	return (sig > 0 && sig < NSIG);
}

/* BSD semantics, as in the C library: the handler stays, calls restart. */
EXPORT sighandler_t
signal(int sig, sighandler_t handler)
{
	const bool interrupts = signal_valid(sig) &&
	    (atomic_load_u64(&interrupting) >> (sig - 1) & 1) != 0;

	return (set_handler(sig, handler, interrupts ? 0 : SA_RESTART));
}

EXPORT sighandler_t bsd_signal(int, sighandler_t);
EXPORT sighandler_t __sysv_signal(int, sighandler_t);

EXPORT sighandler_t
bsd_signal(int sig, sighandler_t handler)
{
	return (signal(sig, handler));
}

EXPORT sighandler_t
ssignal(int sig, sighandler_t handler)
{
	return (signal(sig, handler));
}

EXPORT sighandler_t
sysv_signal(int sig, sighandler_t handler)
{
	return (set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER));
}

EXPORT sighandler_t
__sysv_signal(int sig, sighandler_t handler)
{
	return (sysv_signal(sig, handler));
}

/* POSIX: whether calls that this signal interrupts fail with EINTR. */
EXPORT int
siginterrupt(int sig, int interrupts)
{
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa) != 0)
		return (-1);
	if (interrupts) {
		atomic_set_u64(&interrupting, 1ULL << (sig - 1));
		sa.sa_flags &= ~SA_RESTART;
	} else {
		atomic_clear_u64(&interrupting, 1ULL << (sig - 1));
		sa.sa_flags |= SA_RESTART;
	}
	return (sigaction(sig, &sa, NULL));
}

/* System V: installs a handler and unblocks the signal, or blocks it. */
EXPORT sighandler_t
sigset(int sig, sighandler_t handler)
{
	struct sigaction old;
	sigset_t set, mask;

	if (sigaction(sig, NULL, &old) != 0)
		return (SIG_ERR);
	if (handler != SIG_HOLD &&
	    set_handler(sig, handler, 0) == SIG_ERR)
		return (SIG_ERR);
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set,
	    &mask);
	return (sigismember(&mask, sig) ? SIG_HOLD : old.sa_handler);
}

EXPORT int
sigignore(int sig)
{
	return (set_handler(sig, SIG_IGN, 0) == SIG_ERR ? -1 : 0);
}

EXPORT int
sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *ts)
{
	const int sig = real.sigtimedwait(set, info, ts);

	if (sig != -1 && info != NULL)
		restore_code(info);
	return (sig);
}

EXPORT int
sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return (sigtimedwait(set, info, NULL));
}
