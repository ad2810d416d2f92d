/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.inet.tcp.personality: the values of tunables with which TCP behaves like
 * another system, so that an experiment can start from that system.  It only
 * sets tunables; those that are set later, or anywhere in loader.conf, override
 * it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/lock.h"
#include "kern/sysctl.h"
#include "netinet/tcp_sysctl.h"

#define	TCP		"net.inet.tcp."
#define	VALUE_LEN	24

enum personality { DEFAULT, LINUX, FREEBSD, OPENBSD, PERSONALITIES };

static const char *const names[] = {
	[DEFAULT] = "default", [LINUX] = "linux", [FREEBSD] = "freebsd",
	[OPENBSD] = "openbsd", [PERSONALITIES] = NULL
};

/*
 * The values of each system; NULL: the default of this stack.  The sources are
 * Linux's Documentation/networking/ip-sysctl.rst, net/ipv4 and
 * include/net/tcp.h, FreeBSD's tcp(4) and sys/netinet/tcp_timer.h, and
 * OpenBSD's sysctl(2) and sys/netinet/tcp_timer.h.
 */
static const struct preset {
	const char	*name;
	const char	*values[PERSONALITIES];
} presets[] = {
	/* Linux: tcp_rcv_established() drops it; BSD: dropafterack */
	{ TCP "answer_unsent", { [LINUX] = "0" } },
	/* FreeBSD: net.inet.tcp.abc_l_var */
	{ TCP "abc_l_var", { [FREEBSD] = "2" } },
	/* FreeBSD: net.inet.tcp.delacktime; OpenBSD: TCP_DELACK_MSECS */
	{ TCP "delacktime", { [FREEBSD] = "40", [OPENBSD] = "200" } },
	/* BSD: only after repeated timeouts (tcp_notify()) */
	{ TCP "icmp_drops_syn", { [FREEBSD] = "0", [OPENBSD] = "0" } },
	/* FreeBSD and OpenBSD: TCPTV_KEEPCNT */
	{ TCP "keepcnt", { [FREEBSD] = "8", [OPENBSD] = "8" } },
	/* Linux: tcp_rcv_fastopen_synack() */
	{ TCP "fastopen_exp", { [LINUX] = "1" } },
	/* ip-sysctl: tcp_fastopen_blackhole_timeout_sec */
	{ TCP "fastopen_hold", { [LINUX] = "0" } },
	/* Linux: the nonagle argument of tcp_push() is not kept */
	{ TCP "more_acked", { [LINUX] = "1" } },
	/* Linux: tcp_sendmsg_locked() appends to the last packet */
	{ TCP "notsent_fill", { [LINUX] = "1" } },
	/* Linux: ipv4_default_advmss() */
	{ TCP "mss_of_path", { [LINUX] = "1" } },
	/* ip-sysctl: tcp_min_tso_segs */
	{ TCP "min_tso_segs", { [LINUX] = "2" } },
	/* include/net/tcp.h: TCP_MAX_QUICKACKS */
	{ TCP "quickacks", { [LINUX] = "16" } },
	/* tcp_reno_ssthresh(), cubictcp_recalc_ssthresh(): snd_cwnd */
	{ TCP "reduce_cwnd", { [LINUX] = "1" } },
	/* FreeBSD: rexmit_min and rexmit_slop; OpenBSD: TCPTV_MIN */
	{ TCP "rexmit_min", { [FREEBSD] = "230", [OPENBSD] = "1000" } },
	/* FreeBSD: net.inet.tcp.recvspace; OpenBSD: tcp_recvspace */
	{ TCP "recvspace", { [FREEBSD] = "65536", [OPENBSD] = "16384" } },
	{ TCP "recvbuf_max", { [FREEBSD] = "2097152", [OPENBSD] = "2097152" } },
	/* FreeBSD: net.inet.tcp.sendspace; OpenBSD: tcp_sendspace */
	{ TCP "sendspace", { [FREEBSD] = "32768", [OPENBSD] = "16384" } },
	{ TCP "sendbuf_max", { [FREEBSD] = "2097152", [OPENBSD] = "2097152" } },
	/* FreeBSD: sendbuf_inc */
	{ TCP "sendbuf_inc", { [FREEBSD] = "8192" } },
	/* Linux: tcp_shutdown() ignores RCV_SHUTDOWN */
	{ TCP "shutrd_keeps", { [LINUX] = "1" } },
	/* ip-sysctl: tcp_synack_retries; OpenBSD: TCPTV_KEEP_INIT ends them */
	{ TCP "syncache.rexmtlimit", { [LINUX] = "5" } },
	/* OpenBSD has neither CUBIC nor SYN cookies; net.inet.tcp.ecn is 0 */
	{ TCP "cc.algorithm", { [OPENBSD] = "newreno" } },
	{ TCP "ecn.enable", { [OPENBSD] = "0" } },
	{ TCP "syncookies", { [OPENBSD] = "0" } },
	/* OpenBSD: net.inet.tcp.synbucketlimit and syncachelimit */
	{ TCP "syncache.bucketlimit", { [OPENBSD] = "105" } },
	{ TCP "syncache.cachelimit", { [OPENBSD] = "10255" } },
	/* tcp_schedule_loss_probe(): TCP_RTO_MIN, two jiffies */
	{ TCP "tlp_ackdelay", { [LINUX] = "200" } },
	{ TCP "tlp_min", { [LINUX] = "4" } },
	/* Linux: tcp_fast_parse_options() accepts it */
	{ TCP "tolerate_missing_ts", { [LINUX] = "1" } },
};

static char defaults[nitems(presets)][VALUE_LEN];	/* [I] after boot */
static struct mtx personality_lock;	/* excludes other changes */
static atomic_u32 current;	/* enum personality; all its values are set */

static int
set_all(enum personality to, char *why, size_t len)
{
	int error = 0;

	for (size_t i = 0; i < nitems(presets) && error == 0; i++)
		error = sysctl_set(presets[i].name,
		    presets[i].values[to] != NULL ? presets[i].values[to] :
		    defaults[i], why, len);
	return (error);
}

/* Of two at once, the last sets all tunables and is the current one. */
static int
change(enum personality to, char *why, size_t len)
{
	int error;

	mtx_lock(&personality_lock);
	error = set_all(to, why, len);
	if (error == 0)
		atomic_store_u32(&current, to);
	mtx_unlock(&personality_lock);
	return (error);
}

static int
personality(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	atomic_u32 to = DEFAULT;
	struct sysctl_oid choice = *oid;
	int error;

	if (value == NULL) {
		snprintf(buf, len, "%s", names[atomic_load_u32(&current)]);
		return (0);
	}
	choice.oid_ptr = &to;
	error = sysctl_set_enum(&choice, value, buf, len);
	return (error != 0 ? error : change(atomic_load_u32(&to), buf, len));
}

static const struct sysctl_oid oids[] = {
	{ .oid_name = TCP "personality", .oid_type = CTL_PROC,
	  .oid_flags = CTL_TUN | CTL_RUN | CTL_PRESET, .oid_names = names,
	  .oid_proc = personality,
	  .oid_descr = "sets some of the tunables in which systems differ: "
	  "default, linux, freebsd, openbsd" },
};

void
tcp_personality_init(void)
{
	for (size_t i = 0; i < nitems(presets); i++)
		if (sysctl_get(presets[i].name, defaults[i],
		    VALUE_LEN) != 0)
			panic("personality: %s is no tunable",
			    presets[i].name);
	mtx_init(&personality_lock, LC_CTL);
	sysctl_register(oids, nitems(oids));
}
