/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket options of level SOL_SOCKET, with the names and meanings of Linux's
 * socket(7); the protocol handles other levels.
 */
#include <errno.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/time.h>

#include "kern/bpf_filter.h"
#include "kern/socopies.h"
#include "kern/uipc_filter.h"

/* Min and max buffer size that a program may set. */
#define	SOCKBUF_MIN	2048
#define	SOCKBUF_MAX	(16 * 1024 * 1024)

/* Options that are a bit of so_options. */
static const struct {
	int		 name;
	unsigned	 bit;
} so_flags[] = {
	{ SO_REUSEADDR,	SOO_REUSEADDR },
	{ SO_REUSEPORT,	SOO_REUSEPORT },
	{ SO_KEEPALIVE,	SOO_KEEPALIVE },
	{ SO_BROADCAST,	SOO_BROADCAST },
	{ SO_OOBINLINE,	SOO_OOBINLINE },
	{ SO_PASSCRED,	SOO_PASSCRED },
	{ SO_TIMESTAMP,	SOO_TIMESTAMP },
	{ SO_TIMESTAMPNS, SOO_TIMESTAMPNS },
	{ SO_ZEROCOPY,	SOO_ZEROCOPY },
	{ SO_NO_CHECK,	SOO_NO_CHECK },
	{ SO_LOCK_FILTER, SOO_LOCK_FILTER },
};

/* Options without effect, which are kept to be read back. */
static const struct {
	int	 name;
	int	 min;
	int	 initial;
	bool	 flag;		/* reads back as 0 or 1 */
} so_keeps[SO_KEPT] = {
	{ SO_PRIORITY,	INT_MIN, 0, false },
	{ SO_DONTROUTE,	INT_MIN, 0, true },
	{ SO_BUSY_POLL,	0, 0, false },
	{ SO_MARK,	INT_MIN, 0, false },
	{ SO_INCOMING_CPU, INT_MIN, -1, false },
};

void
so_keepinit(struct socket *so) REQUIRES(so->so_lock)
{
	for (size_t i = 0; i < SO_KEPT; i++)
		so->so_kept[i] = so_keeps[i].initial;
}

/* ENOPROTOOPT: another option. */
static int
so_keep(struct socket *so, int name, int val) REQUIRES(so->so_lock)
{
	for (size_t i = 0; i < SO_KEPT; i++) {
		if (so_keeps[i].name != name)
			continue;
		if (val < so_keeps[i].min)
			return (EINVAL);
		so->so_kept[i] = so_keeps[i].flag ? val != 0 : val;
		return (0);
	}
	return (ENOPROTOOPT);
}

static int
so_getkept(const struct socket *so, int name, int *val) REQUIRES(so->so_lock)
{
	for (size_t i = 0; i < SO_KEPT; i++) {
		if (so_keeps[i].name != name)
			continue;
		*val = so->so_kept[i];
		return (0);
	}
	return (ENOPROTOOPT);
}

static unsigned
so_flagbit(int name)
{
	for (size_t i = 0; i < nitems(so_flags); i++)
		if (so_flags[i].name == name)
			return (so_flags[i].bit);
	return (0);
}

static int
so_setbuffer(struct socket *so, int name, int size) REQUIRES(so->so_lock)
{
	const bool forced = name == SO_SNDBUFFORCE || name == SO_RCVBUFFORCE;
	uint32_t bytes = (uint32_t)size;

	if (size < 0)	/* as in Linux, a very large one unless forced */
		bytes = forced ? SOCKBUF_MIN : SOCKBUF_MAX;
	else if (size < SOCKBUF_MIN)
		bytes = SOCKBUF_MIN;
	else if (size > SOCKBUF_MAX)
		bytes = SOCKBUF_MAX;
	if (name == SO_SNDBUF || name == SO_SNDBUFFORCE) {
		sbreserve_snd(&so->so_snd, bytes);
		so->so_snd.sb_fixed = true;
		sowwakeup(so);
	} else {
		so->so_rcv.sb_hiwat = bytes;
		so->so_rcv.sb_fixed = true;
	}
	return (0);
}

/* As in Linux, calls do not wait if the time is negative. */
static int
so_settimeout(struct sockbuf *sb, const void *val, socklen_t len)
{
	struct timeval tv;

	if (len < sizeof(tv))
		return (EINVAL);
	memcpy(&tv, val, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return (EDOM);
	if (tv.tv_sec < 0)
		sb->sb_timeo = 0;
	else if ((tv.tv_sec == 0 && tv.tv_usec == 0) ||
	    (uint64_t)tv.tv_sec > NSEC_FOREVER / NSEC_PER_SEC / 2)
		sb->sb_timeo = NSEC_FOREVER;
	else
		sb->sb_timeo = (nsec_t)tv.tv_sec * NSEC_PER_SEC +
		    (nsec_t)tv.tv_usec * NSEC_PER_USEC;
	return (0);
}

static int
so_setlinger(struct socket *so, const void *val, socklen_t len)
    REQUIRES(so->so_lock)
{
	struct linger l;

	if (len < sizeof(l))
		return (EINVAL);
	memcpy(&l, val, sizeof(l));
	so->so_linger = l.l_onoff == 0 || l.l_linger < 0 ? NSEC_FOREVER :
	    (nsec_t)l.l_linger * NSEC_PER_SEC;
	return (0);
}

/* Options of the UNIX domain only, and of all others. */
static bool
wrong_domain(const struct socket *so, int name)
{
	return ((name == SO_ZEROCOPY && so->so_proto->pr_local) ||
	    ((name == SO_PASSCRED || name == SO_PASSSEC) &&
	    !so->so_proto->pr_local));
}

static int
so_setint(struct socket *so, int name, int val) REQUIRES(so->so_lock)
{
	unsigned bit = so_flagbit(name);

	if (name == SO_ZEROCOPY && (val < 0 || val > 1))
		return (so->so_proto->pr_local ? EOPNOTSUPP : EINVAL);
	if (wrong_domain(so, name))
		return (EOPNOTSUPP);
	if (name == SO_LOCK_FILTER)
		return (sofilter_lock(so, val));
	if (name == SO_DETACH_FILTER)
		return (sofilter_detach(so));
	if (bit != 0) {
		if (val != 0)
			so->so_options |= bit;
		else
			so->so_options &= ~bit;
		return (0);
	}
	switch (name) {
	case SO_SNDBUF:
	case SO_SNDBUFFORCE:
	case SO_RCVBUF:
	case SO_RCVBUFFORCE:
		return (so_setbuffer(so, name, val));
	case SO_RCVLOWAT:
		so->so_rcv.sb_lowat = val < 0 ? INT_MAX : val == 0 ? 1 :
		    (uint32_t)val;
		return (0);
	case SO_BSDCOMPAT:	/* Linux ignores it */
		return (0);
	default:
		return (so_keep(so, name, val));
	}
}

static int
so_setopt(struct socket *so, int name, const void *val, socklen_t len)
    REQUIRES(so->so_lock)
{
	int num, error;

	switch (name) {
	case SO_LINGER:
		return (so_setlinger(so, val, len));
	case SO_RCVTIMEO:
		return (so_settimeout(&so->so_rcv, val, len));
	case SO_SNDTIMEO:
		return (so_settimeout(&so->so_snd, val, len));
	case SO_ATTACH_FILTER:
		return (sofilter_attach(so, val, len));
	}
	if (len < sizeof(num))
		return (EINVAL);
	memcpy(&num, val, sizeof(num));
	error = so_setint(so, name, num);
	/* keep-alive starts or stops a timer */
	if (error == 0 && name == SO_KEEPALIVE && so->so_pcb != NULL)
		(void)so->so_proto->pr_setopt(so, SOL_SOCKET, name, val, len);
	return (error);
}

nsec_t
sotimeout(struct socket *so, bool receive)
{
	nsec_t timeout;

	so_enter(so);
	timeout = receive ? so->so_rcv.sb_timeo : so->so_snd.sb_timeo;
	so_leave(so);
	return (timeout);
}

/*
 * Whether the socket's family or protocol has options of a level.  As in Linux,
 * the level counts before the addresses.
 */
static bool
so_knows(const struct socket *so, int level)
{
	const int domain = so->so_proto->pr_domain;

	return (level == SOL_SOCKET || so->so_proto->pr_local ||
	    level == IPPROTO_IP || level == so->so_proto->pr_protocol ||
	    (level == IPPROTO_UDP && so->so_type == SOCK_DGRAM) ||
	    so->so_type == SOCK_RAW ||
	    (level == IPPROTO_IPV6 && domain == AF_INET6));
}

struct option {
	int		 level, name;
	const void	*val;
	socklen_t	 len;
};

static int
set_option(struct socket *so, const struct option *o) REQUIRES(so->so_lock)
{
	if (!so_knows(so, o->level))
		return (ENOPROTOOPT);
	if (o->val == NULL && o->len > 0 && (so->so_type == SOCK_RAW ||
	    (o->level != IPPROTO_IP && o->level != IPPROTO_IPV6)))
		return (EFAULT);
	if (o->level == SOL_SOCKET)
		return (so_setopt(so, o->name, o->val, o->len));
	if (so->so_pcb == NULL)
		return (EINVAL);
	return (so->so_proto->pr_setopt(so, o->level, o->name, o->val,
	    o->len));
}

/* What the listener accepted, its copies accept. */
static void
set_copy(struct socket *copy, void *option) REQUIRES(copy->so_lock)
{
	(void)set_option(copy, option);
}

int
sosetopt(struct socket *so, int level, int name, const void *val,
    socklen_t len)
{
	struct option o = { level, name, val, len };
	int error;

	so_enter(so);
	error = set_option(so, &o);
	so_leave(so);
	if (error == 0)
		socopies_foreach(so, set_copy, &o);
	return (error);
}

/* An option's value may be truncated, as in Linux. */
static int
so_putopt(void *val, socklen_t *len, const void *from, size_t size)
{
	if (*len > size)
		*len = (socklen_t)size;
	memcpy(val, from, *len);
	return (0);
}

static int
so_gettimeout(const struct sockbuf *sb, void *val, socklen_t *len)
{
	struct timeval tv = { 0, 0 };

	if (sb->sb_timeo != NSEC_FOREVER) {
		tv.tv_sec = (time_t)(sb->sb_timeo / NSEC_PER_SEC);
		tv.tv_usec = (suseconds_t)(sb->sb_timeo % NSEC_PER_SEC /
		    NSEC_PER_USEC);
	}
	return (so_putopt(val, len, &tv, sizeof(tv)));
}

static int
so_getlinger(const struct socket *so, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	struct linger l = { 0, 0 };

	if (so->so_linger != NSEC_FOREVER) {
		l.l_onoff = 1;
		l.l_linger = (int)(so->so_linger / NSEC_PER_SEC);
	}
	return (so_putopt(val, len, &l, sizeof(l)));
}

/* Linux's socket(7); values without a counterpart are zero. */
static int
so_getmeminfo(const struct socket *so, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	uint32_t info[SK_MEMINFO_VARS] = {
		[SK_MEMINFO_RMEM_ALLOC] = so->so_rcv.sb_cc,
		[SK_MEMINFO_RCVBUF] = so->so_rcv.sb_hiwat,
		[SK_MEMINFO_WMEM_ALLOC] = so->so_snd.sb_cc,
		[SK_MEMINFO_SNDBUF] = so->so_snd.sb_hiwat,
		[SK_MEMINFO_WMEM_QUEUED] = so->so_snd.sb_cc,
	};

	return (so_putopt(val, len, info, sizeof(info)));
}

/*
 * socket(7): the size of a buffer reads back doubled, to account for overhead.
 * Programs written for Linux halve it, or report an error if it is less than
 * requested.
 */
static int
so_getint(struct socket *so, int name, int *val) REQUIRES(so->so_lock)
{
	unsigned bit = so_flagbit(name);

	if (!so->so_proto->pr_local && wrong_domain(so, name))
		return (EOPNOTSUPP);
	if (bit != 0) {
		*val = (so->so_options & bit) != 0;
		return (0);
	}
	switch (name) {
	case SO_ERROR:
		*val = so->so_error;
		so->so_error = 0;
		break;
	case SO_SNDBUF:
		*val = (int)(2 * so->so_snd.sb_hiwat);
		break;
	case SO_RCVBUF:
		*val = (int)(2 * so->so_rcv.sb_hiwat);
		break;
	case SO_RCVLOWAT:
		*val = (int)so->so_rcv.sb_lowat;
		break;
	case SO_TYPE:
		*val = so->so_type;
		break;
	case SO_DOMAIN:
		*val = so->so_proto->pr_domain;
		break;
	case SO_PROTOCOL:
		*val = so->so_protocol;
		break;
	case SO_ACCEPTCONN:
		*val = (so->so_state & SS_LISTENING) != 0;
		break;
	case SO_SNDLOWAT:
		*val = 1;
		break;
	case SO_BSDCOMPAT:
		*val = 0;
		break;
	default:
		return (so_getkept(so, name, val));
	}
	return (0);
}

static int
so_getopt(struct socket *so, int name, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	int num, error;

	switch (name) {
	case SO_LINGER:
		return (so_getlinger(so, val, len));
	case SO_RCVTIMEO:
		return (so_gettimeout(&so->so_rcv, val, len));
	case SO_SNDTIMEO:
		return (so_gettimeout(&so->so_snd, val, len));
	case SO_MEMINFO:
		return (so_getmeminfo(so, val, len));
	case SO_GET_FILTER:
		return (sofilter_get(so, val, len));
	}
	error = so_getint(so, name, &num);
	if (error == ENOPROTOOPT && so->so_pcb != NULL)
		return (so->so_proto->pr_getopt(so, SOL_SOCKET, name, val,
		    len));
	return (error != 0 ? error : so_putopt(val, len, &num, sizeof(num)));
}

/* The longest value of all options: that of SO_GET_FILTER. */
#define	OPTION_MAX	(BPF_MAXINSNS * sizeof(struct sock_filter))

/* Linux's ipv6(7) takes a negative length for a large one. */
static int
so_getlen(const struct socket *so, int level, socklen_t *len)
{
	if (!so_knows(so, level))
		return (so->so_proto->pr_domain == AF_INET6 ? ENOPROTOOPT :
		    EOPNOTSUPP);
	if (len == NULL)
		return (EFAULT);
	if (*len <= INT_MAX)
		return (0);
	*len = INT_MAX;
	return (level == IPPROTO_IPV6 ? 0 : EINVAL);
}

static int
so_getvalue(struct socket *so, int level, int name, void *val, socklen_t *len)
{
	int error;

	so_enter(so);
	if (level == SOL_SOCKET)
		error = so_getopt(so, name, val, len);
	else if (so->so_pcb == NULL)
		error = EINVAL;
	else
		error = so->so_proto->pr_getopt(so, level, name, val, len);
	so_leave(so);
	return (error);
}

/* As in Linux, the errors of level and name come before a bad address. */
static int
so_getnowhere(struct socket *so, int level, int name, socklen_t *len)
{
	void *unused = kmalloc(OPTION_MAX);
	int error;

	if (*len > OPTION_MAX)
		*len = OPTION_MAX;
	error = so_getvalue(so, level, name, unused, len);
	kfree(unused);
	return (error == 0 && *len > 0 ? EFAULT : error);
}

int
sogetopt(struct socket *so, int level, int name, void *val, socklen_t *len)
{
	int error = so_getlen(so, level, len);

	if (error != 0)
		return (error);
	return (val == NULL ? so_getnowhere(so, level, name, len) :
	    so_getvalue(so, level, name, val, len));
}

/* The first call enables the recording of times, as in Linux. */
int
sogetstamp(struct socket *so, struct timespec *ts)
{
	int error = 0;

	if (so->so_proto->pr_local)
		return (ENOTTY);
	so_enter(so);
	so->so_options |= SOO_STAMP;
	if (so->so_stamp == NSEC_FOREVER)
		error = ENOENT;
	else if (so->so_stamp == 0) {
		mach_walltime(ts);
		so->so_stamp = timespec_nsec(ts);
	} else {
		ts->tv_sec = (time_t)(so->so_stamp / NSEC_PER_SEC);
		ts->tv_nsec = (long)(so->so_stamp % NSEC_PER_SEC);
	}
	so_leave(so);
	return (error);
}
