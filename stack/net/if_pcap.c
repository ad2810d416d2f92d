/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet capture of an interface to a file for tcpdump and wireshark
 * (pcap-savefile(5), with nanoseconds).  Received packets are captured before
 * the fault injector, sent packets as the device gets them.  A merged segment
 * is therefore one packet, and a checksum left to the device is still missing.
 *
 * "pcap start INTERFACE FILE [MEGABYTES]" and "pcap stop INTERFACE", or
 * if.<name>.pcap from the boot on.  Packets beyond the file's max size are
 * dropped and counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/epoch.h"
#include "net/if_driver.h"

#define	MAGIC_NSEC	0xa1b23c4d
#define	LINKTYPE_ETHERNET 1
#define	LINKTYPE_RAW	101	/* IPv4 or IPv6, by the version */
#define	SNAPLEN		262144
#define	BUFFER		65536	/* bytes buffered before a write */
#define	MEGABYTES	64	/* default */
#define	MEGABYTES_MAX	65536

struct file_header {
	uint32_t	 magic;
	uint16_t	 major, minor;
	uint32_t	 zone, sigfigs, snaplen, linktype;
};

struct packet_header {
	uint32_t	 sec, nsec, caplen, len;
};

/*
 * Locks used to protect struct if_pcap members:
 *	[I] immutable
 *	[p] pc_lock
 */
struct if_pcap {
	struct mtx	 pc_lock;
	char		 pc_path[PCAP_PATH_MAX];	/* [I] */
	/* [p] bytes left in the file */
	uint64_t	 pc_left GUARDED_BY(pc_lock);
	uint64_t	 pc_packets GUARDED_BY(pc_lock);	/* [p] */
	uint64_t	 pc_dropped GUARDED_BY(pc_lock);	/* [p] */
	/* [p] bytes in the buffer */
	size_t		 pc_used GUARDED_BY(pc_lock);
	char		 pc_buf[BUFFER] GUARDED_BY(pc_lock);	/* [p] */
};

static struct mtx pcap_lock;	/* serializes start and stop */

static void
pcap_flush(struct if_pcap *pc) REQUIRES(pc->pc_lock)
{
	int error = mach_appendfile(pc->pc_path, pc->pc_buf, pc->pc_used,
	    false);

	pc->pc_used = 0;
	if (error != 0) {
		console("pcap: %s: %s", pc->pc_path, strerror(error));
		pc->pc_left = 0;
	}
}

static void
pcap_put(struct if_pcap *pc, const void *data, size_t len)
    REQUIRES(pc->pc_lock)
{
	while (len > 0) {
		size_t n = BUFFER - pc->pc_used < len ?
		    BUFFER - pc->pc_used : len;

		memcpy(pc->pc_buf + pc->pc_used, data, n);
		pc->pc_used += n;
		data = (const char *)data + n;
		len -= n;
		if (pc->pc_used == BUFFER)
			pcap_flush(pc);
	}
}

__cold static void
pcap_packet(struct if_pcap *pc, const struct mbuf *m)
{
	struct packet_header ph = { .caplen = m->m_pkthdr.len,
	    .len = m->m_pkthdr.len };
	struct timespec ts;

	mach_walltime(&ts);
	ph.sec = (uint32_t)ts.tv_sec;
	ph.nsec = (uint32_t)ts.tv_nsec;
	mtx_lock(&pc->pc_lock);
	if (pc->pc_left < sizeof(ph) + ph.len)
		pc->pc_dropped++;
	else {
		pc->pc_left -= sizeof(ph) + ph.len;
		pc->pc_packets++;
		pcap_put(pc, &ph, sizeof(ph));
		for (; m != NULL; m = m->m_next)
			pcap_put(pc, m->m_data, m->m_len);
	}
	mtx_unlock(&pc->pc_lock);
}

void
if_pcap_tap(struct ifnet *ifp, const struct mbuf *m)
{
	struct if_pcap *pc;

	if (__predict_true(atomic_load_uptr(&ifp->if_pcap) == 0))
		return;
	epoch_enter();
	pc = (struct if_pcap *)atomic_load_acq_uptr(&ifp->if_pcap);
	if (pc != NULL)
		pcap_packet(pc, m);
	epoch_exit();
}

static int
pcap_create(struct if_pcap *pc, const struct ifnet *ifp)
{
	const struct file_header fh = { .magic = MAGIC_NSEC, .major = 2,
	    .minor = 4, .snaplen = SNAPLEN, .linktype = ifp->if_ether ?
	    LINKTYPE_ETHERNET : LINKTYPE_RAW };

	return (mach_appendfile(pc->pc_path, &fh, sizeof(fh), true));
}

int
if_pcap_start(struct ifnet *ifp, const char *path, uint64_t bytes, char *why,
    size_t len)
{
	struct if_pcap *pc;
	int error = 0;

	if (path[0] != '/' || strlen(path) >= sizeof(pc->pc_path)) {
		snprintf(why, len, "'%s' is not an absolute path of at most "
		    "%zu characters", path, sizeof(pc->pc_path) - 1);
		return (EINVAL);
	}
	pc = kmalloc(sizeof(*pc));
	mtx_init(&pc->pc_lock, LC_IFNET);
	mtx_private(&pc->pc_lock);
	snprintf(pc->pc_path, sizeof(pc->pc_path), "%s", path);
	pc->pc_left = bytes;
	mtx_lock(&pcap_lock);
	if (atomic_load_uptr(&ifp->if_pcap) != 0) {
		error = EBUSY;
		snprintf(why, len, "%s is being captured; use 'pcap stop %s' "
		    "first", ifp->if_xname, ifp->if_xname);
	} else if ((error = pcap_create(pc, ifp)) != 0)
		snprintf(why, len, "%s: %s", path, strerror(error));
	else
		atomic_store_rel_uptr(&ifp->if_pcap, (uintptr_t)pc);
	mtx_unlock(&pcap_lock);
	if (error != 0)
		kfree(pc);
	return (error);
}

/* packets and dropped may be NULL. */
static int
pcap_stop(struct ifnet *ifp, uint64_t *packets, uint64_t *dropped)
{
	struct if_pcap *pc;

	mtx_lock(&pcap_lock);
	pc = (struct if_pcap *)atomic_swap_uptr(&ifp->if_pcap, 0);
	mtx_unlock(&pcap_lock);
	if (pc == NULL)
		return (ENOENT);
	mtx_lock(&pc->pc_lock);
	pcap_flush(pc);
	pc->pc_left = 0; /* stops threads that already have the pointer */
	*packets = pc->pc_packets;
	*dropped = pc->pc_dropped;
	mtx_unlock(&pc->pc_lock);
	epoch_call(kfree, pc);
	return (0);
}

void
if_pcap_stop(struct ifnet *ifp)
{
	uint64_t packets, dropped;

	(void)pcap_stop(ifp, &packets, &dropped);
}

static struct ifnet *
find_interface(const char *name, char *why, size_t len)
{
	struct ifnet *ifp = if_byname(name);

	if (ifp == NULL)
		snprintf(why, len, "no interface '%s'; 'ifconfig' lists them",
		    name);
	return (ifp);
}

static int
cmd_start(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	unsigned long megabytes = MEGABYTES;
	struct ifnet *ifp;
	char *end;

	(void)command;
	(void)co;
	if (argc != 2 && argc != 3) {
		snprintf(why, len, "usage: pcap start INTERFACE FILE "
		    "[MEGABYTES]");
		return (EINVAL);
	}
	if (argc == 3) {
		megabytes = strtoul(argv[2], &end, 10);
		if (argv[2][0] < '0' || argv[2][0] > '9' || *end != '\0' ||
		    megabytes < 1 || megabytes > MEGABYTES_MAX) {
			snprintf(why, len, "'%s' is not a number of megabytes "
			    "from 1 to %d", argv[2], MEGABYTES_MAX);
			return (EINVAL);
		}
	}
	ifp = find_interface(argv[0], why, len);
	if (ifp == NULL)
		return (ENOENT);
	return (if_pcap_start(ifp, argv[1], (uint64_t)megabytes << 20, why,
	    len));
}

static int
cmd_stop(const char *command, struct ctl_out *co, int argc, char *argv[],
    char *why, size_t len)
{
	uint64_t packets, dropped;
	struct ifnet *ifp;

	(void)command;
	if (argc != 1) {
		snprintf(why, len, "usage: pcap stop INTERFACE");
		return (EINVAL);
	}
	ifp = find_interface(argv[0], why, len);
	if (ifp == NULL)
		return (ENOENT);
	if (pcap_stop(ifp, &packets, &dropped) != 0) {
		snprintf(why, len, "%s is not being captured", argv[0]);
		return (ENOENT);
	}
	ctl_printf(co, "%llu packets, %llu dropped\n",
	    (unsigned long long)packets, (unsigned long long)dropped);
	return (0);
}

int
if_pcap_config(const struct if_config *ic, char *why, size_t len)
{
	if (ic->pcap[0] == '\0')
		return (0);
	return (if_pcap_start(if_byname(ic->name), ic->pcap,
	    (uint64_t)MEGABYTES << 20, why, len));
}

void
if_pcap_init(void)
{
	mtx_init(&pcap_lock, LC_IFNET);
	ctl_command_register("pcap start", cmd_start);
	ctl_command_register("pcap stop", cmd_stop);
}
