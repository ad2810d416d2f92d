/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysctl: replaces the host's program, so that scripts written for it set the
 * stack's tunables.
 *
 *	sysctl [-neqw] name | name=value ...
 *	sysctl -a
 *
 * Names are the stack's own, or those of Linux (docs/reference/tunables.md has
 * the table), with dots or with slashes. $STACK_CTL is the stack's control
 * socket.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/ctl_client.h"

#define	PROGRAM		"sysctl"
#define	FIELDS_MAX	3
#define	VALUE_MAX	512

/* Conversion of a Linux value to the stack's. */
enum convert {
	SAME,		/* but hexadecimal numbers are decimal */
	SECONDS,	/* to milliseconds */
	USECS,		/* to milliseconds */
	TRUTH,		/* nonzero is 1 */
	ALGORITHM,	/* "reno" is "newreno" */
};

/*
 * A Linux name, the values it consists of, and the stack's name of each.  A
 * name in parentheses is a constant; setting it has no effect.
 */
static const struct alias {
	const char	*name;
	const char	*ours[FIELDS_MAX];
	enum convert	 convert;
} aliases[] = {
#define	IPV4	"net.ipv4."
#define	TCP	"net.inet.tcp."
#define	IP	"net.inet.ip."
	{ IPV4 "ip_forward", { IP "forwarding" }, TRUTH },
	{ IPV4 "ip_local_port_range", { IP "portrange.first",
	    IP "portrange.last" }, SAME },
	{ IPV4 "tcp_congestion_control", { TCP "cc.algorithm" }, ALGORITHM },
	{ IPV4 "tcp_ecn", { TCP "ecn.enable" }, SAME },
	{ IPV4 "tcp_fastopen", { TCP "fastopen" }, SAME },
	{ IPV4 "tcp_fastopen_blackhole_timeout_sec",
	    { TCP "fastopen_hold" }, SAME },
	{ IPV4 "tcp_fastopen_key", { TCP "fastopen_key" }, SAME },
	{ IPV4 "tcp_fin_timeout", { TCP "finwait2_timeout" }, SECONDS },
	{ IPV4 "tcp_keepalive_intvl", { TCP "keepintvl" }, SECONDS },
	{ IPV4 "tcp_keepalive_probes", { TCP "keepcnt" }, SAME },
	{ IPV4 "tcp_keepalive_time", { TCP "keepidle" }, SECONDS },
	{ IPV4 "tcp_max_syn_backlog", { TCP "syncache.cachelimit" }, SAME },
	{ IPV4 "tcp_max_tw_buckets", { TCP "maxtimewait" }, SAME },
	{ IPV4 "tcp_min_tso_segs", { TCP "min_tso_segs" }, SAME },
	{ IPV4 "tcp_moderate_rcvbuf", { TCP "recvbuf_auto" }, TRUTH },
	{ IPV4 "tcp_mtu_probing", { TCP "mtu_probing" }, SAME },
	{ IPV4 "tcp_notsent_lowat", { TCP "notsent_lowat" }, SAME },
	{ IPV4 "tcp_rmem", { "(4096)", TCP "recvspace", TCP "recvbuf_max" },
	    SAME },
	{ IPV4 "tcp_rto_min_us", { TCP "rexmit_min" }, USECS },
	{ IPV4 "tcp_sack", { TCP "sack" }, TRUTH },
	{ IPV4 "tcp_synack_retries", { TCP "syncache.rexmtlimit" }, SAME },
	{ IPV4 "tcp_syncookies", { TCP "syncookies" }, SAME },
	{ IPV4 "tcp_timestamps", { TCP "timestamps" }, TRUTH },
	{ IPV4 "tcp_window_scaling", { TCP "wscale" }, TRUTH },
	{ IPV4 "tcp_wmem", { "(4096)", TCP "sendspace", TCP "sendbuf_max" },
	    SAME },
#undef IPV4
#undef TCP
#undef IP
};

/* Linux sysctls without a counterpart: setting them has no effect. */
static const char *const idle[] = {
	"net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio",
	"net.ipv4.tcp_tso_win_divisor",
};

static const char *stack;	/* its control socket */
static bool names_off, quiet, ignore;

static void
usage(FILE *out)
{
	fprintf(out,
	    "usage: " PROGRAM " [-neqw] name | name=value ...\n"
	    "       " PROGRAM " -a\n"
	    "-n: values only; -e: no word about unknown names; -q: what is "
	    "set is not printed.\n"
	    "$STACK_CTL is the stack's ctl.path.\n");
}

static const struct alias *
alias_find(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i].name, name) == 0)
			return (&aliases[i]);
	return (NULL);
}

/* Sends a request; stores the answer's text in buf.  Returns an exit status. */
static int
ask(const char *line, char *buf, size_t size)
{
	FILE *in = ctl_ask(PROGRAM, stack, line);
	FILE *out = fmemopen(buf, size, "w");
	int status = EX_UNAVAILABLE;

	memset(buf, 0, size);
	if (in != NULL && out != NULL)
		status = ctl_answer(PROGRAM, in, out);
	if (out != NULL)
		fclose(out);
	buf[strcspn(buf, "\n")] = '\0';
	return (status);
}

/* Converts a value of Linux to the stack's, or back; in place. */
static void
convert(enum convert how, bool back, char *value, size_t size)
{
	unsigned long long v = strtoull(value, NULL, 0);

	switch (how) {
	case SAME:
		if (!back && strncmp(value, "0x", 2) == 0)
			snprintf(value, size, "%llu", v);
		return;
	case SECONDS:
		snprintf(value, size, "%llu", back ? v / 1000 : v * 1000);
		return;
	case USECS:
		snprintf(value, size, "%llu", back ? v * 1000 : v / 1000);
		return;
	case TRUTH:
		snprintf(value, size, "%d", v != 0);
		return;
	case ALGORITHM:
		if (strcmp(value, back ? "newreno" : "reno") == 0)
			snprintf(value, size, "%s", back ? "reno" : "newreno");
		return;
	}
}

static int
get_ours(const char *name, char *value, size_t size)
{
	char line[CTL_REQUEST_MAX], answer[VALUE_MAX], *text;
	int status;

	if (name[0] == '(') {
		snprintf(value, size, "%.*s", (int)strcspn(name + 1, ")"),
		    name + 1);
		return (0);
	}
	snprintf(line, sizeof(line), "sysctl %s\n", name);
	status = ask(line, answer, sizeof(answer));
	text = strstr(answer, ": ");	/* "name: value" */
	snprintf(value, size, "%s", text != NULL ? text + 2 : "");
	return (status);
}

static int
set_ours(const char *name, const char *value)
{
	char line[CTL_REQUEST_MAX], answer[VALUE_MAX];

	if (name[0] == '(')
		return (0);
	if ((size_t)snprintf(line, sizeof(line), "sysctl %s=%s\n", name,
	    value) >= sizeof(line)) {
		fprintf(stderr, PROGRAM ": %s: value too long\n", name);
		return (EX_USAGE);
	}
	return (ask(line, answer, sizeof(answer)));
}

static int
get_alias(const struct alias *a, char *value, size_t size)
{
	char part[VALUE_MAX];
	size_t len = 0;
	int status = 0;

	for (int i = 0; i < FIELDS_MAX && a->ours[i] != NULL && status == 0;
	    i++) {
		status = get_ours(a->ours[i], part, sizeof(part));
		convert(a->convert, true, part, sizeof(part));
		if (len < size)
			len += (size_t)snprintf(value + len, size - len,
			    "%s%s", i > 0 ? "\t" : "", part);
	}
	return (status);
}

/* If there are fewer values, the others are not changed, as in Linux. */
static int
set_alias(const struct alias *a, char *value)
{
	char *rest, *word, part[VALUE_MAX];
	int i = 0, status = 0;

	for (word = strtok_r(value, " \t", &rest); word != NULL &&
	    status == 0; word = strtok_r(NULL, " \t", &rest)) {
		if (i == FIELDS_MAX || a->ours[i] == NULL) {
			fprintf(stderr, PROGRAM ": %s has %d values\n",
			    a->name, i);
			return (EX_USAGE);
		}
		snprintf(part, sizeof(part), "%s", word);
		convert(a->convert, false, part, sizeof(part));
		status = set_ours(a->ours[i++], part);
	}
	return (status);
}

static void
print(const char *name, const char *value)
{
	if (names_off)
		printf("%s\n", value);
	else
		printf("%s = %s\n", name, value);
}

static bool
is_idle(const char *name)
{
	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		if (strcmp(idle[i], name) == 0)
			return (true);
	return (false);
}

/* An unknown Linux name; returns an exit status. */
static int
do_unknown(const char *name, bool set)
{
	bool harmless = ignore || (set && is_idle(name));

	if (!ignore)
		fprintf(stderr, PROGRAM ": %s: unknown sysctl%s\n",
		    name, harmless ? ", nor anything that it would change" :
		    "");
	return (harmless ? 0 : 1);
}

/* Processes one argument; returns an exit status. */
static int
do_name(char *name)
{
	char *value = strchr(name, '='), answer[VALUE_MAX];
	const struct alias *a;
	int status;

	if (value != NULL)
		*value++ = '\0';
	for (char *s = name; *s != '\0'; s++)
		if (*s == '/')
			*s = '.';
	a = alias_find(name);
	if (a == NULL && strncmp(name, "net.ipv", 7) == 0)
		return (do_unknown(name, value != NULL));
	if (value != NULL) {
		snprintf(answer, sizeof(answer), "%s", value);
		status = a != NULL ? set_alias(a, value) :
		    set_ours(name, value);
	} else
		status = a != NULL ? get_alias(a, answer, sizeof(answer)) :
		    get_ours(name, answer, sizeof(answer));
	if (status == 0 && (value == NULL || !quiet))
		print(name, answer);
	return (status);
}

/* Prints the stack's own names. */
static int
do_all(void)
{
	FILE *in = ctl_ask(PROGRAM, stack, "sysctl -a\n");

	return (in != NULL ? ctl_answer(PROGRAM, in, stdout) :
	    EX_UNAVAILABLE);
}

int
main(int argc, char **argv)
{
	bool all = false;
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "aneqwh")) != -1) {
		switch (opt) {
		case 'a':
			all = true;
			break;
		case 'n':
			names_off = true;
			break;
		case 'e':
			ignore = true;
			break;
		case 'q':
			quiet = true;
			break;
		case 'w':
			break;	/* -w is the default */
		default:
			usage(opt == 'h' ? stdout : stderr);
			return (opt == 'h' ? 0 : EX_USAGE);
		}
	}
	stack = getenv("STACK_CTL");
	if (stack == NULL || (optind == argc) != all) {
		usage(stderr);
		return (EX_USAGE);
	}
	if (all)
		return (do_all());
	for (int i = optind; i < argc; i++) {
		int error = do_name(argv[i]);

		status = error != 0 ? error : status;
	}
	return (status);
}
