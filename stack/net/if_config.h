/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration of interfaces: what loader.conf sets, the families that take
 * part, and the order of the boot.
 */
#ifndef NET_IF_CONFIG_H
#define NET_IF_CONFIG_H

#include "net/if_var.h"

struct ctl_out;

/* What a device does for the stack, at most. */
enum if_offload { OFFLOAD_NONE, OFFLOAD_CSUM, OFFLOAD_TSO };

/* Fault injection, in parts per million of packets. */
struct impair_config {
	uint32_t	 loss, dup, reorder, corrupt;
	uint32_t	 delay;		/* us, of every packet */
	uint32_t	 seed;
};

#define	PCAP_PATH_MAX	256
#define	IF_QUEUES_MAX	64

/* The tunables if.<name>.* of one interface. */
struct if_config {
	struct if_config *next;
	char		 name[IFNAMSIZ];
	struct if_inet	 inet[IF_INET_MAX];
	unsigned	 ninet;		/* of them are given */
	struct if_inet6 {
		struct in6_addr	 addr;
		unsigned	 plen;
	}		 inet6[8];
	unsigned	 ninet6;	/* of them are given */
	bool		 autoconf6;	/* routers are asked for others */
	uint32_t	 queues;
	uint32_t	 mtu;		/* 0: the driver's default */
	uint32_t	 offload;	/* enum if_offload */
	uint32_t	 lro;		/* received segments are joined */
	uint32_t	 needsgiant;	/* 1: its driver is not MP-safe */
	struct impair_config impair;
	struct if_modes	 modes;
	char		 driver[16];	/* name; empty: as the interface's */
	char		 pcap[PCAP_PATH_MAX];	/* file for packets */
	/* in memory */
	char		 wire[16];
	char		 source[256];
	/* tunnel */
	char		 tunnel[128];	/* outer addresses, ours and theirs */
	char		 key[16];
	uint32_t	 ttl;		/* of outer packets */
	/* bridge */
	char		 members[256];	/* names of interfaces */
};

/* Tunables that only some interfaces have. */
#define	IFHAS_WIRE	0x1		/* in memory: a wire and a source */
#define	IFHAS_TUNNEL	0x2
#define	IFHAS_MEMBERS	0x4		/* a bridge */
#define	IFHAS_FRAMES	0x8		/* a device of the host */
/* Monitor and transmit modes. */
#define	IFHAS_MODES	(IFHAS_FRAMES | IFHAS_WIRE)

/*
 * A protocol family as interfaces see it.  The family registers itself at
 * boot, before loader.conf is read; net/ calls no protocol by name.
 */
struct if_family {
	const char	*fam_name;	/* "inet6": sets if.<name>.inet6 */
	/* Parses the tunable's value; EINVAL with the reason in why. */
	int		(*fam_set)(struct if_config *, const char *value,
			    char *why, size_t);
	/* The driver has attached the interface: 0 or an errno value. */
	int		(*fam_attach)(struct if_config *);
	/* Lines of "ifconfig" about one. */
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
int	 if_config_attach(void);	/* all configured; errno, on console */
int	 if_config_start(void);		/* when the list and routes are final */
void	 if_config_detach(void);
void	 loop_init(void);		/* makes lo0 */
void	 inet_init(void);		/* IPv4, as an if_family */

/*
 * Gives the words of a list, at least one, to take(), which returns EINVAL for
 * what is wrong (in words: "not an address"), ENOSPC for one too many, EEXIST
 * for one that was there; then EINVAL, with the reason in why.
 */
int	 if_config_words(struct if_config *, const char *value,
	    int (*take)(struct if_config *, const char *word),
	    const char *wrong, char *why, size_t);
/* Parses the value of if.<name>.inet, a list. */
int	 inet_config_set(struct if_config *, const char *value, char *why,
	    size_t);
/* Before if_byaddr() finds its addresses. */
void	 if_hashaddrs(const struct ifnet *);

/*
 * "10.1.0.2/24" of AF_INET or "2001:db8::1/64" of AF_INET6, into a struct
 * in_addr or in6_addr; false: not that.
 */
bool	 in_parse_prefix(int domain, const char *, void *addr, unsigned *plen);
struct in_addr inet_mask(unsigned plen);
unsigned inet_masklen(struct in_addr mask);

#endif /* NET_IF_CONFIG_H */
