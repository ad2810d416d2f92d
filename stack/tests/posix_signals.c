/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals and calls that wait: EINTR, SA_RESTART, masks, and handlers that
 * use sockets or do not return.
 */
#include <setjmp.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "posix.h"

/* Programs still call them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define	ROUNDS	300
#define	KERNEL_SIGSET	8	/* bytes */

static atomic_int caught;
static atomic_bool over;
static int handler_fd = -1;
static sigjmp_buf away;

static void
count(int sig)
{
	(void)sig;
	caught++;
}

static void
count_and_send(int sig)
{
	(void)sig;
	caught++;
	send_byte(handler_fd);
}

static void
leave(int sig)
{
	(void)sig;
	siglongjmp(away, 1);
}

static void
catch(int sig, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags };

	caught = 0;
	OK(sigaction(sig, &sa, NULL));
}

static pthread_t victim;

static void
kill_victim(int sig)
{
	pthread_kill(victim, sig);
}

static void
signal_me_later(struct later *l, int ms, int sig)
{
	victim = pthread_self();
	later(l, ms, kill_victim, sig);
}

/* The first signal may arrive before the call that it should interrupt. */
static void
signal_until_over(int sig)
{
	for (; !over; nap(20))
		pthread_kill(victim, sig);
}

static void
interrupt_later(struct later *l)
{
	caught = 0;
	over = false;
	victim = pthread_self();
	later(l, 20, signal_until_over, SIGUSR1);
}

static void
interrupted(struct later *l)
{
	over = true;
	later_join(l);
	CHECK(caught > 0);
}

TEST(sigaction_remembers)
{
	struct sigaction sa = { .sa_handler = count }, old;

	sigaddset(&sa.sa_mask, SIGUSR2);
	OK(sigaction(SIGUSR1, &sa, NULL));
	OK(sigaction(SIGUSR1, NULL, &old));
	CHECK(old.sa_handler == count);
	CHECK(sigismember(&old.sa_mask, SIGUSR2));
	CHECK(!sigismember(&old.sa_mask, SIGTERM));
	CHECK(signal(SIGUSR1, SIG_DFL) == count);
	CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	FAILS(sigaction(SIGKILL, &sa, NULL), EINVAL);
	FAILS(sigaction(1000, &sa, NULL), EINVAL);
	catch(SIGUSR1, count, (int)SA_RESETHAND);
	raise(SIGUSR1);
	CHECK_EQ(caught, 1);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_DFL);
}

TEST(calls_are_interrupted)
{
	struct sockaddr_in sin;
	struct later l;
	struct pollfd p;
	struct epoll_event ev = { .events = EPOLLIN };
	int s[2], lis = listener(), ep = OK(epoll_create1(0)), u;
	char c;

	catch(SIGUSR1, count, 0);
	tcp_pair(s);
	u = bound(SOCK_DGRAM);
	sin = own_address(u);
	(void)sin;
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[0], &ev));
	p = (struct pollfd){ .fd = s[0], .events = POLLIN };
#define	INTERRUPTED(call) do {						\
	interrupt_later(&l);						\
	FAILS(call, EINTR);						\
	interrupted(&l);						\
} while (0)
	INTERRUPTED(read(s[0], &c, 1));
	INTERRUPTED(recv(u, &c, 1, 0));
	INTERRUPTED(accept(lis, NULL, NULL));
	INTERRUPTED(poll(&p, 1, -1));
	INTERRUPTED(ppoll(&p, 1, NULL, NULL));
	INTERRUPTED(epoll_wait(ep, &ev, 1, -1));
	catch(SIGUSR1, count, SA_RESTART);
	INTERRUPTED(poll(&p, 1, -1));		/* never restarted */
	INTERRUPTED(epoll_wait(ep, &ev, 1, 10000));
	set_timeout(s[0], SO_RCVTIMEO, 10000);
	INTERRUPTED(read(s[0], &c, 1));		/* nor this, with timeout */
	close_pair(s);
	OK(close(lis));
	OK(close(u));
	OK(close(ep));
}

/* Fills the buffers until a write would block. */
TEST(a_write_is_interrupted)
{
	static char buf[1 << 16];
	struct later l;
	ssize_t n;
	int s[2];

	catch(SIGUSR1, count, 0);
	tcp_pair(s);
	while ((n = send(s[0], buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		nap(1);
	interrupt_later(&l);
	/* on a busy machine a late ACK may still free space */
	do
		n = write(s[0], buf, sizeof(buf));
	while (n > 0 && caught == 0);
	CHECK((n == -1 && errno == EINTR) || n > 0);
	interrupted(&l);
	close_pair(s);
}

/* The byte arrives after the signal was handled. */
static void
signal_and_send(int fd)
{
	pthread_kill(victim, SIGUSR1);
	while (caught == 0)
		nap(1);
	nap(20);
	send_byte(fd);
}

TEST(restarted_calls_go_on)
{
	struct later l;
	int s[2];
	char c;

	catch(SIGUSR1, count, SA_RESTART);
	tcp_pair(s);
	victim = pthread_self();
	later(&l, 20, signal_and_send, s[1]);
	CHECK_EQ(read(s[0], &c, 1), 1);
	CHECK_EQ(caught, 1);
	later_join(&l);
	close_pair(s);
}

TEST(ppoll_swaps_masks_in_one_step)
{
	struct timespec forever = { .tv_sec = 100 };
	struct pollfd p;
	sigset_t usr, none;
	int s[2];

	catch(SIGUSR1, count, 0);
	tcp_pair(s);
	p = (struct pollfd){ .fd = s[0], .events = POLLIN };
	sigemptyset(&none);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	CHECK_EQ(caught, 0);
	FAILS(ppoll(&p, 1, &forever, &none), EINTR);
	CHECK_EQ(caught, 1);
	pthread_sigmask(SIG_UNBLOCK, &usr, NULL);
	close_pair(s);
}

/* A handler may use the socket on which its thread waits. */
TEST(handlers_may_use_sockets)
{
	struct later l;
	int s[2];
	char c;

	catch(SIGUSR1, count_and_send, SA_RESTART);
	tcp_pair(s);
	handler_fd = s[1];
	signal_me_later(&l, 20, SIGUSR1);
	CHECK_EQ(read(s[0], &c, 1), 1);
	later_join(&l);
	close_pair(s);
}

TEST(handlers_may_jump_away)
{
	struct later l;
	volatile int round = 0;
	int s[2], pipes[2];
	char c;

	catch(SIGUSR1, leave, 0);
	tcp_pair(s);
	OK(pipe(pipes));
	if (sigsetjmp(away, 1) == 0 || ++round < 3) {
		struct pollfd p[2] = {
			{ .fd = s[0], .events = POLLIN },
			{ .fd = pipes[0], .events = POLLIN }
		};

		signal_me_later(&l, 20, SIGUSR1);
		if (round == 0)
			(void)!read(s[0], &c, 1);
		else
			(void)poll(p, (nfds_t)round, -1);
		CHECK(0);
	}
	/* no lock is held, and no thread is woken without an event */
	send_byte(s[1]);
	CHECK_EQ(read(s[0], &c, 1), 1);
	close_pair(s);
}

/*
 * Signals at every moment of a call: each ends the call that is under way,
 * and none is lost, or this test hangs until its alarm.
 */
static atomic_int rounds_done;

static void *
signal_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		while (rounds_done < i)
			;
		for (int spin = 0; spin < i * 37 % 5000; spin++)
			__asm__ volatile("");
		pthread_kill(victim, SIGUSR1);
	}
	return (NULL);
}

TEST(no_signal_is_lost)
{
	pthread_t t;
	int s[2];
	char c;

	alarm(100);
	catch(SIGUSR1, count, 0);
	tcp_pair(s);
	victim = pthread_self();
	/*
	 * A signal may come before the call begins, on any system; a short
	 * timeout covers that.
	 */
	set_timeout(s[0], SO_RCVTIMEO, 10);
	CHECK_EQ(pthread_create(&t, NULL, signal_often, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		while (caught <= i) {
			CHECK_EQ(read(s[0], &c, 1), -1);
			CHECK(errno == EINTR || errno == EAGAIN);
		}
		rounds_done = i + 1;
	}
	pthread_join(t, NULL);
	CHECK_EQ(caught, ROUNDS);
	close_pair(s);
	alarm(0);
}

/* What a handler was given; the signal comes while read() waits. */
static struct {
	siginfo_t	 info;
	uintptr_t	 pc, stack;
} given;

static void
remember(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	char here;

	(void)sig;
	given.info = *info;
	given.stack = (uintptr_t)&here;
#if defined(__x86_64__)
	given.pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#else
	given.pc = (uintptr_t)uc->uc_mcontext.pc;
#endif
	caught++;
}

static void
queue_until_over(int value)
{
	const union sigval v = { .sival_int = value };

	for (; !over; nap(20))
		pthread_sigqueue(victim, SIGUSR1, v);
}

TEST(handlers_get_context_information_and_stack)
{
	static char alternate[1 << 16];
	const stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	const stack_t off = { .ss_flags = SS_DISABLE };
	struct sigaction sa = { .sa_sigaction = remember,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct later l;
	int s[2];
	char c;

	caught = 0;
	OK(sigaltstack(&ss, NULL));
	OK(sigaction(SIGUSR1, &sa, NULL));
	tcp_pair(s);
	over = false;
	victim = pthread_self();
	later(&l, 20, queue_until_over, 7);
	FAILS(read(s[0], &c, 1), EINTR);
	interrupted(&l);
	CHECK_EQ(given.info.si_signo, SIGUSR1);
	CHECK_EQ(given.info.si_code, SI_QUEUE);
	CHECK_EQ(given.info.si_value.sival_int, 7);
	CHECK_EQ(given.info.si_pid, getpid());
	CHECK(given.pc != 0);
	CHECK(given.stack - (uintptr_t)alternate < sizeof(alternate));
	OK(signal(SIGUSR1, SIG_DFL) == SIG_ERR ? -1 : 0);
	OK(sigaltstack(&off, NULL));
	close_pair(s);
}

#define	QUEUED	1000

static atomic_int in_order;

static void
count_in_order(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	in_order += info->si_value.sival_int == caught;
	caught++;
}

static void
queue_many(int sig)
{
	for (int i = 0; i < QUEUED; i++) {
		const union sigval v = { .sival_int = i };

		while (pthread_sigqueue(victim, sig, v) == EAGAIN)
			nap(1);		/* RLIMIT_SIGPENDING */
	}
}

/* signal(7): real-time signals queue up, also during a call. */
static void
many_arrive(int flags)
{
	struct sigaction sa = { .sa_sigaction = count_in_order,
	    .sa_flags = SA_SIGINFO };
	struct later l;
	int s[2];
	char c;

	caught = in_order = 0;
	OK(sigaction(SIGRTMIN + 1, &sa, NULL));
	tcp_pair(s);
	victim = pthread_self();
	later(&l, 20, queue_many, SIGRTMIN + 1);
	while (caught < QUEUED)
		CHECK_EQ(recv(s[0], &c, 1, flags), -1);
	later_join(&l);
	CHECK_EQ(caught, QUEUED);
	CHECK_EQ(in_order, QUEUED);
	OK(signal(SIGRTMIN + 1, SIG_DFL) == SIG_ERR ? -1 : 0);
	close_pair(s);
}

TEST(real_time_signals_queue_up_in_a_busy_thread)
{
	many_arrive(MSG_DONTWAIT);
}

static void
queue_first(int sig)
{
	const union sigval v = { .sival_int = 0 };

	OK(pthread_sigqueue(victim, sig, v));
}

static atomic_int overtakes;

/* In place of the C library's: on request, a signal arrives behind its look. */
__attribute__((visibility("default"))) int
sigpending(sigset_t *set)
{
	const union sigval second = { .sival_int = 1 };

	sigemptyset(set);
	if (syscall(SYS_rt_sigpending, set, KERNEL_SIGSET) == -1)
		return (-1);
	if (atomic_exchange(&overtakes, 0))
		OK(pthread_sigqueue(victim, SIGRTMIN + 1, second));
	return (0);
}

TEST(real_time_signals_keep_their_order_at_the_end_of_a_call)
{
	struct sigaction sa = { .sa_sigaction = count_in_order,
	    .sa_flags = SA_SIGINFO };
	struct later l;
	int s[2];
	char c;

	caught = in_order = 0;
	OK(sigaction(SIGRTMIN + 1, &sa, NULL));
	tcp_pair(s);
	victim = pthread_self();
	overtakes = 1;
	later(&l, 20, queue_first, SIGRTMIN + 1);
	FAILS(recv(s[0], &c, 1, 0), EINTR);
	later_join(&l);
	overtakes = 0;
	CHECK_EQ(in_order, caught);
	OK(signal(SIGRTMIN + 1, SIG_DFL) == SIG_ERR ? -1 : 0);
	close_pair(s);
}

/* vfork(2): dispositions are the child's own, although memory is shared. */
TEST(a_vforked_child_leaves_handlers_alone)
{
	struct sigaction sa = { .sa_handler = SIG_DFL }, old;
	int status;
	pid_t pid;

	catch(SIGUSR1, count, 0);
	if ((pid = vfork()) == 0) {
		sigaction(SIGUSR1, &sa, NULL);
		_exit(sigaction(SIGUSR1, NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	raise(SIGUSR1);
	CHECK_EQ(caught, 1);
	OK(sigaction(SIGUSR1, NULL, &old));
	CHECK(old.sa_handler == count);
}

/* Handlers that older functions install may use sockets as well. */
TEST(older_functions_install_handlers)
{
	struct later l;
	sigset_t mask;
	int s[2];
	char c;

	tcp_pair(s);
	handler_fd = s[1];
	(void)signal(SIGUSR1, SIG_DFL);
	CHECK(sigset(SIGUSR1, count_and_send) == SIG_DFL);
	interrupt_later(&l);
	while (read(s[0], &c, 1) == 1)	/* of a signal before the call */
		continue;
	CHECK_EQ(errno, EINTR);
	interrupted(&l);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == count_and_send);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	CHECK(sigismember(&mask, SIGUSR1));
	CHECK(sigset(SIGUSR1, count_and_send) == SIG_HOLD);
	CHECK_EQ(read(s[0], &c, 1), 1);
	OK(sigignore(SIGUSR1));
	CHECK(signal(SIGUSR1, count_and_send) == SIG_IGN);
	interrupt_later(&l);
	while (read(s[0], &c, 1) == 1 && caught == 0)	/* restarted */
		continue;
	interrupted(&l);
	(void)signal(SIGUSR1, SIG_DFL);
	close_pair(s);
}

TEST(siginterrupt_chooses_whether_calls_restart)
{
	struct later l;
	int s[2];
	char c;

	tcp_pair(s);
	OK(siginterrupt(SIGUSR1, 1));
	(void)signal(SIGUSR1, count);
	interrupt_later(&l);
	FAILS(read(s[0], &c, 1), EINTR);
	interrupted(&l);
	OK(siginterrupt(SIGUSR1, 0));
	victim = pthread_self();
	caught = 0;
	later(&l, 20, signal_and_send, s[1]);
	CHECK_EQ(read(s[0], &c, 1), 1);
	CHECK(caught > 0);
	later_join(&l);
	FAILS(siginterrupt(1000, 1), EINVAL);
	(void)signal(SIGUSR1, SIG_DFL);
	close_pair(s);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
