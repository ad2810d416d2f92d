/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration of interfaces: if.<name>.<what>="value" is collected while
 * loader.conf is read; the interfaces are created afterwards.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/sysctl.h"
#include "net/if_driver.h"

#define	PREFIX		"if."
#define	PPM_MAX		1000000
#define	DELAY_MAX	10000000
#define	TUNNEL_TTL	64
#define	MTU_MIN		576	/* RFC 1122 section 3.3.3 */
#define	MTU_MAX		65521

static struct if_config *if_configs;
static struct if_driver *if_drivers;

void
if_driver_register(struct if_driver *drv)
{
	drv->next = if_drivers;
	if_drivers = drv;
}

static bool
parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end != '\0' || errno != 0 || v < min ||
	    v > max)
		return (false);
	*value = (uint32_t)v;
	return (true);
}

bool
in_parse_prefix(int domain, const char *s, void *addr, unsigned *plen)
{
	char text[INET6_ADDRSTRLEN];
	const char *slash = strchr(s, '/');

	if (slash == NULL || (size_t)(slash - s) >= sizeof(text))
		return (false);
	memcpy(text, s, (size_t)(slash - s));
	text[slash - s] = '\0';
	return (inet_pton(domain, text, addr) == 1 &&
	    parse_u32(slash + 1, 0, domain == AF_INET ? 32 : 128, plen));
}

int
if_config_words(struct if_config *ic, const char *value,
    int (*take)(struct if_config *, const char *), const char *wrong,
    char *why, size_t len)
{
	char text[512], *word, *rest;
	int error;

	if (snprintf(text, sizeof(text), "%s", value) >= (int)sizeof(text)) {
		snprintf(why, len, "longer than %zu characters",
		    sizeof(text) - 1);
		return (EINVAL);
	}
	word = strtok_r(text, " ,", &rest);
	if (word == NULL) {
		snprintf(why, len, "'%s' is %s", value, wrong);
		return (EINVAL);
	}
	for (; word != NULL; word = strtok_r(NULL, " ,", &rest)) {
		error = take(ic, word);
		if (error != 0) {
			snprintf(why, len, "'%s' is %s", word,
			    error == ENOSPC ? "one address too many" :
			    error == EEXIST ? "a duplicate" : wrong);
			return (EINVAL);
		}
	}
	return (0);
}

static struct if_driver *
driver_named(const char *name)
{
	struct if_driver *drv;

	for (drv = if_drivers; drv != NULL; drv = drv->next)
		if (strcmp(name, drv->name) == 0)
			break;
	return (drv);
}

/*
 * The driver of if.<name>.driver, or the one whose name the interface's name
 * begins with.
 */
static struct if_driver *
driver_find(const char *name)
{
	const struct if_config *ic;
	struct if_driver *drv;

	for (ic = if_configs; ic != NULL; ic = ic->next)
		if (strcmp(ic->name, name) == 0 && ic->driver[0] != '\0')
			return (driver_named(ic->driver));
	for (drv = if_drivers; drv != NULL; drv = drv->next)
		if (strncmp(name, drv->name, strlen(drv->name)) == 0)
			break;
	return (drv);
}

static struct if_config *
config_find(const char *name)
{
	struct if_config **p;

	for (p = &if_configs; *p != NULL; p = &(*p)->next)
		if (strcmp((*p)->name, name) == 0)
			return (*p);
	*p = kmalloc(sizeof(**p));
	snprintf((*p)->name, sizeof((*p)->name), "%s", name);
	(*p)->queues = 1;
	(*p)->offload = OFFLOAD_TSO;
	(*p)->lro = 1;
	(*p)->impair.seed = 1;
	(*p)->ttl = TUNNEL_TTL;
	return (*p);
}

/* Numeric settings, with their offsets in if_config. */
static const struct {
	const char	*what;
	size_t		 offset;
	uint32_t	 min, max;
	unsigned	 has;		/* IFHAS_* required, or 0 */
	const char	*descr;
} numbers[] = {
#define	NUMBER_OF(what, field, min, max, has, descr)			\
	{ what, offsetof(struct if_config, field), min, max, has, descr }
#define	NUMBER(what, field, min, max, descr)				\
	NUMBER_OF(what, field, min, max, 0, descr)
	NUMBER("queues", queues, 1, IF_QUEUES_MAX, "queues, each with a thread"),
	NUMBER("mtu", mtu, MTU_MIN, MTU_MAX, "max IP packet, bytes"),
	NUMBER("offload", offload, OFFLOAD_NONE, OFFLOAD_TSO,
	    "device offloads: 0 none, 1 checksums, 2 also segmentation"),
	NUMBER("lro", lro, 0, 1, "1: large receive offload"),
	NUMBER("needsgiant", needsgiant, 0, 1,
	    "1: the driver is not MP-safe, it sends under Giant"),
	NUMBER("impair.loss", impair.loss, 0, PPM_MAX,
	    "packets to drop, per million"),
	NUMBER("impair.dup", impair.dup, 0, PPM_MAX,
	    "packets to duplicate, per million"),
	NUMBER("impair.reorder", impair.reorder, 0, PPM_MAX,
	    "packets to reorder, per million"),
	NUMBER("impair.corrupt", impair.corrupt, 0, PPM_MAX,
	    "packets to corrupt, per million"),
	NUMBER("impair.delay", impair.delay, 0, DELAY_MAX,
	    "delay of every packet, us"),
	NUMBER("impair.seed", impair.seed, 0, UINT32_MAX,
	    "seed of the fault injector"),
	NUMBER_OF("ttl", ttl, 1, 255, IFHAS_TUNNEL,
	    "TTL of outer packets"),
#undef NUMBER
#undef NUMBER_OF
};

/* Mode settings by name, with their offsets in struct if_modes. */
static const struct {
	const char	*what;
	size_t		 offset;
	const char	*names[6];	/* in the order of the enum */
	unsigned	 flags;		/* CTL_RUN: may change while running */
	const char	*descr;
} modes[] = {
	{ "monitor", offsetof(struct if_modes, monitor),
	    { "off", "header", "top", "queue" }, CTL_RUN,
	    "monitor mode, where received frames are dropped: off, header "
	    "(after reading it), top (before), queue" },
	{ "transmit", offsetof(struct if_modes, transmit),
	    { "inline", "deferred" }, 0,
	    "transmission: inline (by the sender), deferred (by a thread)" },
};

/* String settings. */
static const struct {
	const char	*what;
	size_t		 offset, size;
	unsigned	 has;		/* IFHAS_* required, or 0 */
	const char	*descr;
} texts[] = {
#define	TEXT(what, field, has, descr)					\
	{ what, offsetof(struct if_config, field),			\
	    sizeof(((struct if_config *)NULL)->field), has, descr }
	TEXT("driver", driver, 0,
	    "tap, packet, xdp or mem; empty: by its name"),
	TEXT("pcap", pcap, 0, "packet capture file"),
	TEXT("wire", wire, IFHAS_WIRE, "far end: sink, mirror or chargen"),
	TEXT("source", source, IFHAS_WIRE, "source of UDP packets"),
	TEXT("tunnel", tunnel, IFHAS_TUNNEL, "outer addresses, local and "
	    "remote"),
	TEXT("key", key, IFHAS_TUNNEL, "GRE key; empty: none"),
	TEXT("members", members, IFHAS_MEMBERS, "members of the bridge"),
#undef TEXT
};

/* Whether the interface's driver supports an optional setting. */
static bool
config_has(const struct if_config *ic, unsigned has)
{
	return (has == 0 || (driver_find(ic->name)->has & has) != 0);
}

static int
refuse(const char *what, unsigned has, char *why, size_t len)
{
	static const char *const kinds[] = { [IFHAS_WIRE] =
	    "interfaces in memory (mem0)", [IFHAS_TUNNEL] =
	    "tunnels (gif0, gre0)", [IFHAS_MEMBERS] = "bridges (bridge0)",
	    [IFHAS_FRAMES] = "devices (tap0, mem0)" };

	snprintf(why, len, "only %s have a %s", kinds[has], what);
	return (EINVAL);
}

static char *
text_of(struct if_config *ic, size_t i)
{
	return ((char *)ic + texts[i].offset);
}

static int
set_text(struct if_config *ic, size_t i, const char *value, char *why,
    size_t len)
{
	if (!config_has(ic, texts[i].has))
		return (refuse(texts[i].what, texts[i].has, why, len));
	if (strcmp(texts[i].what, "driver") == 0 &&
	    driver_named(value) == NULL) {
		snprintf(why, len, "unknown driver '%s'; use tap, packet, "
		    "xdp or mem", value);
		return (ENOENT);
	}
	if (strlen(value) >= texts[i].size) {
		snprintf(why, len, "longer than %zu characters",
		    texts[i].size - 1);
		return (ENAMETOOLONG);
	}
	strcpy(text_of(ic, i), value);
	return (0);
}

static uint32_t *
number_of(struct if_config *ic, size_t i)
{
	return ((uint32_t *)(void *)((char *)ic + numbers[i].offset));
}

static int
set_number(struct if_config *ic, const char *what, const char *value, char *why,
    size_t len)
{
	for (size_t i = 0; i < nitems(numbers); i++) {
		if (strcmp(what, numbers[i].what) != 0)
			continue;
		if (!config_has(ic, numbers[i].has))
			return (refuse(what, numbers[i].has, why, len));
		if (parse_u32(value, numbers[i].min, numbers[i].max,
		    number_of(ic, i)))
			return (0);
		snprintf(why, len, "'%s' is not a number from %u to %u", value,
		    numbers[i].min, numbers[i].max);
		return (EINVAL);
	}
	snprintf(why, len, "unknown setting '%s'; use inet, inet6, driver, "
	    "queues, mtu, offload, lro, needsgiant, monitor, transmit, pcap, "
	    "tunnel, key, ttl, members, "
	    "impair.{loss,dup,reorder,corrupt,delay,seed}", what);
	return (ENOENT);
}

/* A sysctl node for the mode of a configuration or an interface. */
static struct sysctl_oid
mode_oid(struct if_modes *im, size_t i)
{
	return ((struct sysctl_oid){ .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN | modes[i].flags,
	    .oid_ptr = (char *)im + modes[i].offset,
	    .oid_names = modes[i].names, .oid_descr = modes[i].descr });
}

static int
set_mode(struct if_config *ic, size_t i, const char *value, char *why,
    size_t len)
{
	const struct sysctl_oid oid = mode_oid(&ic->modes, i);

	if (!config_has(ic, IFHAS_MODES))
		return (refuse(modes[i].what, IFHAS_FRAMES, why, len));
	return (sysctl_set_enum(&oid, value, why, len));
}

/* Sets if.<name>.<what>; name is the full one. */
static int
if_config_set(const char *name, const char *value, char *why, size_t len)
{
	const char *what = strchr(name + strlen(PREFIX), '.');
	const struct if_family *fam;
	char ifname[IFNAMSIZ];
	struct if_config *ic;
	size_t n;

	name += strlen(PREFIX);
	n = what != NULL ? (size_t)(what - name) : 0;
	if (n == 0 || n >= sizeof(ifname)) {
		snprintf(why, len, "an interface name must have 1 to %d "
		    "characters",
		    IFNAMSIZ - 1);
		return (EINVAL);
	}
	memcpy(ifname, name, n);
	ifname[n] = '\0';
	if (strcmp(what + 1, "driver") != 0 && driver_find(ifname) == NULL) {
		snprintf(why, len, "no driver for interface '%s'; put "
		    "if.%s.driver=\"packet\" before this line to use the "
		    "host's interface", ifname, ifname);
		return (EINVAL);
	}
	ic = config_find(ifname);
	fam = if_family_find(what + 1);
	if (fam != NULL)
		return (fam->fam_set(ic, value, why, len));
	for (size_t i = 0; i < nitems(texts); i++)
		if (strcmp(what + 1, texts[i].what) == 0)
			return (set_text(ic, i, value, why, len));
	for (size_t i = 0; i < nitems(modes); i++)
		if (strcmp(what + 1, modes[i].what) == 0)
			return (set_mode(ic, i, value, why, len));
	return (set_number(ic, what + 1, value, why, len));
}

static int
show_number(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)value;
	snprintf(buf, len, "%u", *(const uint32_t *)oid->oid_ptr);
	return (0);
}

static void
offload_forced(const struct if_config *ic, uint32_t wanted)
{
	char name[SYSCTL_NAME_LEN], asked[12], now[12];

	snprintf(name, sizeof(name), PREFIX "%s.offload", ic->name);
	snprintf(asked, sizeof(asked), "%u", wanted);
	snprintf(now, sizeof(now), "%u", ic->offload);
	sysctl_forced(name, asked, now, "not supported by its device");
}

/*
 * Publishes the effective settings as sysctls, so that users can verify them.
 */
static void
config_publish(struct if_config *ic)
{
	struct ifnet *ifp = if_byname(ic->name);

	const uint32_t asked = ic->offload;

	ic->mtu = ifp->if_mtu;
	ic->offload = (ifp->if_caps & IFCAP_TSO4) != 0 ? OFFLOAD_TSO :
	    (ifp->if_caps & IFCAP_TXCSUM) != 0 ? OFFLOAD_CSUM : OFFLOAD_NONE;
	if (ic->offload != asked && config_has(ic, IFHAS_MODES))
		offload_forced(ic, asked);
	for (size_t i = 0; i < nitems(numbers); i++)
		if (config_has(ic, numbers[i].has))
			sysctl_add(&(struct sysctl_oid){
			    .oid_type = CTL_PROC, .oid_flags = CTL_TUN,
			    .oid_ptr = number_of(ic, i),
			    .oid_min = numbers[i].min,
			    .oid_max = numbers[i].max,
			    .oid_proc = show_number,
			    .oid_descr = numbers[i].descr }, PREFIX "%s.%s",
			    ic->name, numbers[i].what);
	for (size_t i = 0; i < nitems(modes); i++)
		if (config_has(ic, IFHAS_MODES)) {
			const struct sysctl_oid oid = mode_oid(&ifp->if_modes,
			    i);

			sysctl_add(&oid, PREFIX "%s.%s", ic->name,
			    modes[i].what);
		}
	for (size_t i = 0; i < nitems(texts); i++)
		if (config_has(ic, texts[i].has))
			sysctl_add(&(struct sysctl_oid){
			    .oid_type = CTL_STRING, .oid_flags = CTL_TUN,
			    .oid_ptr = text_of(ic, i),
			    .oid_max = texts[i].size,
			    .oid_descr = texts[i].descr }, PREFIX "%s.%s",
			    ic->name, texts[i].what);
}

void
if_config_show(const struct ifnet *ifp, struct ctl_out *co)
{
	const struct if_driver *drv = driver_find(ifp->if_xname);

	if (drv != NULL && drv->show != NULL)
		drv->show(ifp, co);
}

/* Bridges and tunnels send through other interfaces, loopback has no device. */
static int
config_txq(const struct if_config *ic, char *why, size_t len)
{
	struct ifnet *ifp = if_byname(ic->name);
	unsigned flags = 0;

	if (ic->needsgiant && (ifp->if_transmit == NULL ||
	    (driver_find(ic->name)->has & (IFHAS_MEMBERS | IFHAS_TUNNEL)))) {
		snprintf(why, len, "it has no driver that needs Giant");
		return (EINVAL);
	}
	if (ic->needsgiant)
		flags |= TXQ_GIANT;
	if (atomic_load_u32(&ifp->if_modes.transmit) == TRANSMIT_DEFERRED)
		flags |= TXQ_ALWAYS;
	if (flags != 0)
		if_txq_create(ifp, flags);
	return (0);
}

static int
config_families(struct if_config *ic)
{
	const struct if_family *fam;
	int error = 0;

	for (fam = if_families; fam != NULL && error == 0; fam = fam->fam_next)
		error = fam->fam_attach(ic);
	return (error);
}

int
if_config_attach(void)
{
	struct if_config *ic;
	char why[256];
	int error;

	for (ic = if_configs; ic != NULL; ic = ic->next) {
		why[0] = '\0';
		error = driver_find(ic->name)->attach(ic, why, sizeof(why));
		if (error == 0)
			error = config_txq(ic, why, sizeof(why));
		if (error == 0)
			error = if_pcap_config(ic, why, sizeof(why));
		if (error != 0) {
			console("%s: %s", ic->name,
			    why[0] != '\0' ? why : strerror(error));
			return (error);
		}
		config_publish(ic);
		error = config_families(ic);
		if (error != 0)
			return (error);
	}
	return (0);
}

int
if_config_start(void)
{
	struct ifnet *ifp;
	int error = 0;

	for (ifp = ifnet_list; ifp != NULL && error == 0; ifp = ifp->if_next) {
		struct if_driver *drv = driver_find(ifp->if_xname);

		if (ifp->if_txq != NULL)
			error = if_txq_start(ifp->if_txq);
		if (error == 0 && drv != NULL && drv->start != NULL)
			error = drv->start(ifp);
		if (error != 0)
			console("%s: %s", ifp->if_xname, strerror(error));
	}
	return (error);
}

void
if_config_detach(void)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next) {
		struct if_driver *drv = driver_find(ifp->if_xname);

		if (ifp->if_txq != NULL)
			if_txq_stop(ifp->if_txq);
		if (drv != NULL && drv->detach != NULL)
			drv->detach(ifp);
		if_pcap_stop(ifp);
	}
}

void
if_config_init(void)
{
	sysctl_register_prefix(PREFIX, if_config_set);
}
