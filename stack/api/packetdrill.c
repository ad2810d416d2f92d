/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libstack_packetdrill.so: the stack in packetdrill, in virtual time, with an
 * interface whose other end is the script.
 *
 * The calls are those of libstack.so, but nothing is preloaded and signals are
 * not intercepted: this file replaces api/signal.c.  Time advances only while
 * packetdrill sleeps or waits for a packet.  packetdrill's second thread makes
 * blocking calls and reads the time after each; it stops the clock until then.
 */
#include "api/packetdrill.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "api/api.h"
#include "dev/mem.h"
#include "kern/kern_private.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "machine/virtual/virtual.h"
#include "net/route.h"
#include "netinet6/ip6_var.h"

#define	IFNAME		"pkt0"
#define	DEFAULT_INET	"192.168.0.1/16" /* address in packetdrill's examples */
#define	DEFAULT_PLEN	"/16"			/* its default netmask */
#define	EPOLL_STEP	NSEC_PER_MSEC

/* Packets sent by the stack that the script has not received. */
struct packet {
	TAILQ_ENTRY(packet) link;
	struct mbuf	*m;
	long long	 usecs;
};

static struct if_config config = { .name = IFNAME, .queues = 1 };
static struct ifnet *ifp;
static nsec_t packet_wait = 4 * 3600 * NSEC_PER_SEC; /* longer than all timers */
static struct mtx sent_lock;
static TAILQ_HEAD(, packet) sent = TAILQ_HEAD_INITIALIZER(sent);
					/* [sent_lock] */
static _Thread_local unsigned depth;	/* calls entered */
static _Thread_local bool is_script;	/* the thread that runs the script */

void
api_enter(void)
{
	if (depth++ == 0)
		mach_virtual_enter(is_script);
	(void)curthread;	/* attaches the thread to the stack */
}

bool
api_leave(int error)
{
	(void)error;
	if (--depth == 0)
		mach_virtual_leave(!is_script);
	return (false);
}

void
threads_boot(bool begins)
{
	(void)begins;
}

void
threads_alone(void)
{
}

void
signals_forked(void)
{
}

void
signals_default(void)
{
}

bool
api_signalled(void)
{
	return (false);
}

static long long
usecs_now(void)
{
	struct timespec ts;

	mach_walltime(&ts);
	return (ts.tv_sec * 1000000LL + ts.tv_nsec / 1000);
}

static void
packet_sent(void *arg, struct mbuf *m)
{
	struct packet *p = kmalloc(sizeof(*p));

	(void)arg;
	p->m = m;
	p->usecs = usecs_now();
	mtx_lock(&sent_lock);
	TAILQ_INSERT_TAIL(&sent, p, link);
	wakeup(&sent);
	mtx_unlock(&sent_lock);
}

static int
pd_netdev_send(void *arg, const void *buf, size_t len)
{
	struct mbuf *m;

	(void)arg;
	if (len == 0 || len > MMAXBYTES)
		return ((int)api_return(EMSGSIZE, 0));
	api_enter();
	m = m_getcl(len <= MCLBYTES ? MCLBYTES : MMAXBYTES);
	memcpy(m->m_data, buf, len);
	m->m_len = m->m_pkthdr.len = (uint32_t)len;
	mem_input_ip(ifp, m);
	api_leave(0);
	return (0);
}

static struct packet *
await_packet(nsec_t deadline)
{
	struct packet *p;
	nsec_t left;

	mtx_lock(&sent_lock);
	while ((p = TAILQ_FIRST(&sent)) == NULL &&
	    (left = time_left(deadline)) > 0)
		(void)msleep(&sent, &sent_lock, 0, "packet", left);
	if (p != NULL)
		TAILQ_REMOVE(&sent, p, link);
	mtx_unlock(&sent_lock);
	return (p);
}

static int
pd_netdev_receive(void *arg, void *buf, size_t *len, long long *usecs)
{
	struct packet *p;
	uint32_t n = 0;

	(void)arg;
	api_enter();
	p = await_packet(mach_uptime() + packet_wait);
	*usecs = p != NULL ? p->usecs : usecs_now();
	if (p != NULL) {
		n = p->m->m_pkthdr.len;
		if (n > *len)
			n = (uint32_t)*len;
		m_copydata(p->m, 0, n, buf);
		m_freem(p->m);
		kfree(p);
	}
	*len = n;
	api_leave(0);
	return (0);
}

/* Enters the stack, so that virtual time advances. */
static void
nap(nsec_t length)
{
	nsec_t deadline = mach_uptime() + length;
	atomic_u32 word = 0;

	while (mach_uptime() < deadline)
		(void)mach_park(&word, 0, deadline);
}

static int
pd_usleep(void *arg, useconds_t usec)
{
	(void)arg;
	mach_virtual_enter(true);
	nap(usec * NSEC_PER_USEC);
	mach_virtual_leave(false);
	return (0);
}

/* packetdrill spins on the clock before an event: reading it must take time. */
static int
pd_gettimeofday(void *arg, struct timeval *tv, struct timezone *tz)
{
	long long usecs;

	(void)arg;
	(void)tz;
	mach_virtual_enter(true);
	nap(NSEC_PER_USEC);
	usecs = usecs_now();
	mach_virtual_leave(false);
	tv->tv_sec = (time_t)(usecs / 1000000);
	tv->tv_usec = (suseconds_t)(usecs % 1000000);
	return (0);
}

/* epoll_wait() would sleep in the kernel, in real time. */
static int
pd_epoll_wait(void *arg, int epfd, struct epoll_event *events, int max,
    int ms)
{
	nsec_t deadline = deadline_ms(ms);
	int n;

	(void)arg;
	while ((n = epoll_wait(epfd, events, max, 0)) == 0 &&
	    time_left(deadline) > 0) {
		api_enter();
		nap(EPOLL_STEP);
		api_leave(0);
	}
	return (n);
}

/*
 * The kernel does not know the stack's sockets, so the bytes are copied.  Not
 * more is taken than a pipe holds, so that all of it can be written.
 */
static int
pd_splice(void *arg, int in, off_t *in_off, int out, off_t *out_off,
    size_t len, unsigned flags)
{
	char buf[PIPE_BUF];
	ssize_t n;

	(void)arg;
	if (!fd_ours(in) && !fd_ours(out))
		return ((int)splice(in, in_off, out, out_off, len, flags));
	/* packetdrill passes the address of a zero for NULL. */
	if ((in_off != NULL && *in_off != 0) ||
	    (out_off != NULL && *out_off != 0))
		return ((int)api_return(ESPIPE, 0));
	if (len > sizeof(buf))
		len = sizeof(buf);
	if (fd_ours(in) && sockatmark(in) == 1)
		return (0);
	n = fd_ours(in) ? recv(in, buf, len, (flags & SPLICE_F_NONBLOCK) != 0 ?
	    MSG_DONTWAIT : 0) : read(in, buf, len);
	return ((int)(n > 0 ? write(out, buf, (size_t)n) : n));
}

static int
pd_fcntl(void *arg, int fd, int cmd, ...)
{
	va_list ap;
	long value;

	(void)arg;
	va_start(ap, cmd);
	value = va_arg(ap, long);
	va_end(ap);
	return (fcntl(fd, cmd, value));
}

static int
pd_ioctl(void *arg, int fd, unsigned long request, ...)
{
	va_list ap;
	void *value;

	(void)arg;
	va_start(ap, request);
	value = va_arg(ap, void *);
	va_end(ap);
	return (ioctl(fd, request, value));
}

/* Calls that differ only by userdata. */
#define	PASS(ret, name, params, args)					\
static ret								\
pd_##name params							\
{									\
	(void)arg;							\
	return (name args);						\
}

PASS(int, socket, (void *arg, int d, int t, int p), (d, t, p))
PASS(int, bind, (void *arg, int s, const struct sockaddr *a, socklen_t n),
    (s, a, n))
PASS(int, listen, (void *arg, int s, int n), (s, n))
PASS(int, accept, (void *arg, int s, struct sockaddr *a, socklen_t *n),
    (s, a, n))
PASS(int, connect, (void *arg, int s, const struct sockaddr *a, socklen_t n),
    (s, a, n))
PASS(ssize_t, read, (void *arg, int s, void *b, size_t n), (s, b, n))
PASS(ssize_t, readv, (void *arg, int s, const struct iovec *v, int n),
    (s, v, n))
PASS(ssize_t, recv, (void *arg, int s, void *b, size_t n, int f),
    (s, b, n, f))
PASS(ssize_t, recvfrom, (void *arg, int s, void *b, size_t n, int f,
    struct sockaddr *a, socklen_t *l), (s, b, n, f, a, l))
PASS(ssize_t, recvmsg, (void *arg, int s, struct msghdr *m, int f),
    (s, m, f))
PASS(ssize_t, write, (void *arg, int s, const void *b, size_t n), (s, b, n))
PASS(ssize_t, writev, (void *arg, int s, const struct iovec *v, int n),
    (s, v, n))
PASS(ssize_t, send, (void *arg, int s, const void *b, size_t n, int f),
    (s, b, n, f))
PASS(ssize_t, sendto, (void *arg, int s, const void *b, size_t n, int f,
    const struct sockaddr *a, socklen_t l), (s, b, n, f, a, l))
PASS(ssize_t, sendmsg, (void *arg, int s, const struct msghdr *m, int f),
    (s, m, f))
PASS(int, close, (void *arg, int s), (s))
PASS(int, shutdown, (void *arg, int s, int how), (s, how))
PASS(int, getsockopt, (void *arg, int s, int l, int o, void *v,
    socklen_t *n), (s, l, o, v, n))
PASS(int, setsockopt, (void *arg, int s, int l, int o, const void *v,
    socklen_t n), (s, l, o, v, n))
PASS(int, poll, (void *arg, struct pollfd *p, nfds_t n, int ms), (p, n, ms))
PASS(int, epoll_create, (void *arg, int n), (n))
PASS(int, epoll_ctl, (void *arg, int e, int o, int s, struct epoll_event *v),
    (e, o, s, v))
PASS(int, pipe, (void *arg, int fds[2]), (fds))

static void
pd_free(void *arg)
{
	(void)arg;	/* the process ends */
}

static int
set_inet(const char *value)
{
	char prefix[64], why[128];

	snprintf(prefix, sizeof(prefix), "%s%s", value,
	    strchr(value, '/') == NULL ? DEFAULT_PLEN : "");
	if (inet_config_set(&config, prefix, why, sizeof(why)) == 0)
		return (0);
	console("so_flags: %s", why);
	return (EINVAL);
}

/* Processes one word of the flags: inet=, inet6=, conf=, mtu=, or a tunable. */
static int
set_flag(char *word)
{
	char why[256] = "", *value = strchr(word, '=');
	int error;

	if (value == NULL)
		return (set_inet(word));
	*value++ = '\0';
	if (strcmp(word, "inet") == 0)
		return (set_inet(value));
	if (strcmp(word, "conf") == 0)
		return (loader_read(value));
	if (strcmp(word, "mtu") == 0) {
		config.mtu = (uint32_t)strtoul(value, NULL, 10);
		return (0);
	}
	error = strcmp(word, "inet6") == 0 ?
	    in6_config_set(&config, value, why, sizeof(why)) :
	    sysctl_set(word, value, why, sizeof(why));
	if (error != 0)
		console("so_flags: %s", why);
	return (error);
}

static int
configure(const char *flags)
{
	char *copy = strdup(flags), *rest, *word;
	int error = set_inet(DEFAULT_INET);

	if (copy == NULL)
		return (ENOMEM);
	(void)sysctl_set("boot_mute", "1", (char[1]){ 0 }, 1);
	/* Scripts do not expect duplicate address detection. */
	(void)sysctl_set("net.inet6.ip6.dad_count", "0", (char[1]){ 0 }, 1);
	for (word = strtok_r(copy, " ,", &rest); word != NULL && error == 0;
	    word = strtok_r(NULL, " ,", &rest))
		error = set_flag(word);
	free(copy);
	return (error);
}

static const struct packetdrill_interface interface = {
#define	X(name)	.name = pd_##name
	X(free), X(socket), X(bind), X(listen), X(accept), X(connect),
	X(read), X(readv), X(recv), X(recvfrom), X(recvmsg),
	X(write), X(writev), X(send), X(sendto), X(sendmsg),
	X(fcntl), X(ioctl), X(close), X(shutdown), X(getsockopt),
	X(setsockopt), X(poll), X(netdev_send), X(netdev_receive),
	X(usleep), X(gettimeofday), X(epoll_create), X(epoll_ctl),
	X(epoll_wait), X(pipe), X(splice),
#undef X
};

/* Attaches the interface with its addresses as the default route. */
static void
attach_interface(void)
{
	const struct in_addr any = { INADDR_ANY };

	ifp = mem_attach_ip(&config, packet_sent, NULL);
	if (in6_config_attach(&config) != 0)
		_exit(EX_CONFIG);
	if (route_add(any, 0, any, ifp) != 0)
		console("so_flags: keeping the default route of conf");
	if (config.ninet6 > 0 && route6_add(&in6addr_any, 0, NULL, ifp,
	    0) != 0)
		console("so_flags: keeping the default IPv6 route of conf");
}

EXPORT void
packetdrill_interface_patience(long long usecs)
{
	packet_wait = usecs * NSEC_PER_USEC;
}

EXPORT void
packetdrill_interface_init(const char *flags,
    struct packetdrill_interface *table)
{
	is_script = true;
	api_enter();
	if (api_boot(configure, flags != NULL ? flags : "") != 0)
		_exit(EX_CONFIG);
	mtx_init(&sent_lock, LC_NETISR);
	attach_interface();
	api_leave(0);
	*table = interface;
}
