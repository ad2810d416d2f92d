/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open: the cookies of servers, and the keys of the host.
 *
 * A cookie is SipHash-2-4 of the addresses of client and server, as in Linux:
 * servers of both systems that share a key accept each other's cookies (RFC
 * 7413 section 4.1.2).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/tcp_fastopen.h"

#define	COOKIE_LEN	8
#define	KEY_WORDS	(TCP_FASTOPEN_KEYLEN / sizeof(uint32_t))
#define	KEY_FORMAT	"%8x-%8x-%8x-%8x%n"
#define	RANDOM		"random"

static struct mtx host_lock;
/* [h] host_lock */
static struct tcp_fastopen_keys host_keys GUARDED_BY(host_lock);	/* [h] */
static bool host_random GUARDED_BY(host_lock);			/* [h] */

struct tcp_fastopen_keys
tcp_fastopen_hostkeys(void)
{
	struct tcp_fastopen_keys k;

	mtx_lock(&host_lock);
	k = host_keys;
	mtx_unlock(&host_lock);
	return (k);
}

static void
set_hostkeys(const struct tcp_fastopen_keys *k, bool random)
{
	mtx_lock(&host_lock);
	host_keys = *k;
	host_random = random;
	mtx_unlock(&host_lock);
}

static void
random_hostkeys(void)
{
	struct tcp_fastopen_keys k = { .n = 1 };

	mach_random(&k.key[0], sizeof(k.key[0]));
	set_hostkeys(&k, true);
}

struct tcp_cookie
tcp_fastopen_cookie(const struct siphash_key *key, const struct in_conninfo *c)
{
	struct tcp_cookie ck = {
		.optlen = TCP_FASTOPEN_REQUEST + COOKIE_LEN };
	uint64_t words[5], hash;
	size_t n = 4;

	if (IN6_IS_ADDR_V4MAPPED(&c->faddr)) {
		n = 1;
		memcpy(&words[0], &c->faddr.s6_addr32[3], 4);
		memcpy((char *)&words[0] + 4, &c->laddr.s6_addr32[3], 4);
	} else {
		memcpy(&words[0], &c->faddr, sizeof(c->faddr));
		memcpy(&words[2], &c->laddr, sizeof(c->laddr));
		if (c->zone != 0)	/* the address is not of one client */
			words[n++] = c->zone;
	}
	hash = siphash_words(key, words, n);
	memcpy(ck.bytes, &hash, COOKIE_LEN);
	return (ck);
}

unsigned
tcp_fastopen_findkey(const struct tcp_fastopen_keys *k, const struct tcpseg *sg)
{
	unsigned n;

	for (n = 0; n < k->n; n++) {
		const struct tcp_cookie ck =
		    tcp_fastopen_cookie(&k->key[n], &sg->sg_conn);

		if (sg->sg_opt.fastopen == ck.optlen &&
		    memcmp(sg->sg_opt.cookie, ck.bytes, COOKIE_LEN) == 0)
			break;
	}
	return (n);
}

/* Reads four words of hexadecimal digits; returns the end, or NULL. */
static const char *
read_key(const char *text, struct siphash_key *key)
{
	uint32_t w[KEY_WORDS];
	int used = 0;

	if (sscanf(text, KEY_FORMAT, &w[0], &w[1], &w[2], &w[3], &used) !=
	    (int)KEY_WORDS || used == 0)
		return (NULL);
	memcpy(key, w, sizeof(*key));
	return (text + used);
}

static bool
read_keys(const char *text, struct tcp_fastopen_keys *k)
{
	for (k->n = 0; k->n < TCP_FASTOPEN_KEYS;) {
		text = read_key(text, &k->key[k->n++]);
		if (text == NULL || *text == '\0')
			return (text != NULL);
		if (*text++ != ',')
			return (false);
	}
	return (false);
}

static void
print_keys(char *buf, size_t len)
{
	const struct tcp_fastopen_keys k = tcp_fastopen_hostkeys();
	size_t used = 0;

	for (unsigned i = 0; i < k.n && used < len; i++) {
		uint32_t w[KEY_WORDS];

		memcpy(w, &k.key[i], sizeof(w));
		used += (size_t)snprintf(buf + used, len - used,
		    "%s%08x-%08x-%08x-%08x", i > 0 ? "," : "", w[0], w[1],
		    w[2], w[3]);
	}
}

/* Keys made by the host are not printed: they differ from boot to boot. */
static int
proc_keys(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	struct tcp_fastopen_keys k;
	bool random;

	(void)oid;
	if (value == NULL) {
		mtx_lock(&host_lock);
		random = host_random;
		mtx_unlock(&host_lock);
		if (random)
			snprintf(buf, len, RANDOM);
		else
			print_keys(buf, len);
		return (0);
	}
	if (strcmp(value, RANDOM) == 0) {
		random_hostkeys();
		return (0);
	}
	if (!read_keys(value, &k)) {
		snprintf(buf, len, "'%s' is neither " RANDOM " nor one or two "
		    "keys like 00112233-44556677-8899aabb-ccddeeff", value);
		return (EINVAL);
	}
	set_hostkeys(&k, false);
	return (0);
}

static const struct sysctl_oid oids[] = {
	{ .oid_name = "net.inet.tcp.fastopen_key", .oid_type = CTL_PROC,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_proc = proc_keys,
	  .oid_descr = "keys of the cookies of TCP Fast Open: random, or the "
	  "current one and the previous, as in Linux" },
};

void
tcp_fastopen_cookie_init(void)
{
	mtx_init(&host_lock, LC_FOKEYS);
	random_hostkeys();
	sysctl_register(oids, nitems(oids));
}
