/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration of interfaces: what loader.conf sets, the families that take
 * part, and the order of the boot.
 */
#ifndef NET_IF_CONFIG_H
#define NET_IF_CONFIG_H

#include "net/if_var.h"

struct ctl_out;

/* Offloads permitted to a device. */
enum if_offload { OFFLOAD_NONE, OFFLOAD_CSUM, OFFLOAD_TSO };

/* Fault injection, in parts per million of packets. */
struct impair_config {
	uint32_t	 loss, dup, reorder, corrupt;
	uint32_t	 delay;		/* delay of every packet, us */
	uint32_t	 seed;
};

#define	PCAP_PATH_MAX	256
#define	IF_QUEUES_MAX	64

/* The tunables if.<name>.* of one interface. */
struct if_config {
	struct if_config *next;
	char		 name[IFNAMSIZ];
	struct if_inet	 inet[IF_INET_MAX];
	unsigned	 ninet;		/* number of addresses given */
	struct if_inet6 {
		struct in6_addr	 addr;
		unsigned	 plen;
	}		 inet6[8];
	unsigned	 ninet6;	/* number of addresses given */
	bool		 autoconf6;	/* also autoconfiguration by routers */
	uint32_t	 queues;
	uint32_t	 mtu;		/* 0: the driver's default */
	uint32_t	 offload;	/* enum if_offload */
	uint32_t	 lro;		/* large receive offload */
	uint32_t	 needsgiant;	/* 1: its driver is not MP-safe */
	struct impair_config impair;
	struct if_modes	 modes;
	/* driver name; empty: from the interface's name */
	char		 driver[16];
	char		 pcap[PCAP_PATH_MAX];	/* packet capture file */
	/* in memory */
	char		 wire[16];
	char		 source[256];
	/* tunnel */
	char		 tunnel[128];	/* outer addresses, local and remote */
	char		 key[16];
	uint32_t	 ttl;		/* TTL of outer packets */
	/* bridge */
	char		 members[256];	/* names of interfaces */
};

/* Tunables that only some interfaces have. */
#define	IFHAS_WIRE	0x1		/* in memory: far end and source */
#define	IFHAS_TUNNEL	0x2
#define	IFHAS_MEMBERS	0x4		/* a bridge */
#define	IFHAS_FRAMES	0x8		/* a device of the host */
/* Monitor and transmit modes. */
#define	IFHAS_MODES	(IFHAS_FRAMES | IFHAS_WIRE)

/*
 * Interface of a protocol family for network interfaces.  A family registers
 * itself at boot, before loader.conf is read, so that net/ calls no protocol
 * by name.
 */
struct if_family {
	const char	*fam_name;	/* "inet6": sets if.<name>.inet6 */
	/* Parses the tunable's value; EINVAL with the reason in why. */
	int		(*fam_set)(struct if_config *, const char *value,
			    char *why, size_t);
	/*
	 * Called after the driver has attached the interface; returns 0 or an
	 * errno value.
	 */
	int		(*fam_attach)(struct if_config *);
	/* Prints an interface's lines of "ifconfig". */
	void		(*fam_show)(const struct ifnet *, struct ctl_out *);
	/* Sets if_output or if_output6, which resolve link addresses. */
	void		(*fam_ether)(struct ifnet *);
	struct if_family *fam_next;
};
extern struct if_family *if_families;	/* [I] list, set at boot */
void	 if_family_register(struct if_family *);
struct if_family *if_family_find(const char *name);	/* or NULL */

/* Boot order: init (registers tunables), loader.conf, attach, stop. */
void	 if_init(void);
void	 if_config_init(void);
void	 if_config_show(const struct ifnet *, struct ctl_out *);
int	 if_config_attach(void);	/* attaches all; errno value, printed */
int	 if_config_start(void); /* after addresses and routes are complete */
void	 if_config_detach(void);
void	 loop_init(void);		/* makes lo0 */
void	 inet_init(void);		/* registers IPv4 as an if_family */

/*
 * Passes each word of a non-empty list to take().  take() returns EINVAL for a
 * wrong word, ENOSPC if there are too many, EEXIST for a duplicate.  The
 * result is then EINVAL with the reason in why; wrong describes a wrong word
 * ("not an address").
 */
int	 if_config_words(struct if_config *, const char *value,
	    int (*take)(struct if_config *, const char *word),
	    const char *wrong, char *why, size_t);
/* Parses the value of if.<name>.inet, a list. */
int	 inet_config_set(struct if_config *, const char *value, char *why,
	    size_t);
/* Called before if_byaddr() can find the interface's addresses. */
void	 if_hashaddrs(struct ifnet *);

/*
 * Parses "10.1.0.2/24" (AF_INET) or "2001:db8::1/64" (AF_INET6) into a struct
 * in_addr or in6_addr; false: invalid.
 */
bool	 in_parse_prefix(int domain, const char *, void *addr, unsigned *plen);
struct in_addr inet_mask(unsigned plen);
unsigned inet_masklen(struct in_addr mask);

#endif /* NET_IF_CONFIG_H */
