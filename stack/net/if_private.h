/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of net/ and the device drivers tell each other: the
 * configuration of interfaces and the order of their start.
 */
#ifndef NET_IF_PRIVATE_H
#define NET_IF_PRIVATE_H

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

/* What loader.conf says of one interface: if.<name>.* */
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
	/* Of an interface in memory. */
	char		 wire[16];
	char		 source[256];
	/* Of a tunnel. */
	char		 tunnel[128];	/* outer addresses, ours and theirs */
	char		 key[16];
	uint32_t	 ttl;		/* of outer packets */
	/* Of a bridge. */
	char		 members[256];	/* names of interfaces */
};

/* What only some interfaces have. */
#define	IFHAS_WIRE	0x1		/* in memory: a wire and a source */
#define	IFHAS_TUNNEL	0x2
#define	IFHAS_MEMBERS	0x4		/* a bridge */
#define	IFHAS_FRAMES	0x8		/* a device of the host */
/* Monitor and transmit modes. */
#define	IFHAS_MODES	(IFHAS_FRAMES | IFHAS_WIRE)

/* A driver makes the interfaces whose names start with its own. */
struct if_driver {
	const char	*name;		/* "tap" */
	unsigned	 has;		/* IFHAS_* */
	/* Returns 0 or an errno value with the reason in why. */
	int		(*attach)(const struct if_config *, char *why, size_t);
	/* Receives from now on, or NULL; returns 0 or an errno value. */
	int		(*start)(struct ifnet *);
	void		(*detach)(struct ifnet *);
	/* What else "ifconfig" says of one, or NULL. */
	void		(*show)(const struct ifnet *, struct ctl_out *);
	struct if_driver *next;
};
void	 if_driver_register(struct if_driver *);

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
/* Before if_attach(): output over Ethernet for every family. */
void	 ether_ifattach(struct ifnet *);

/* Boot order: init (registers tunables), loader.conf, attach, stop. */
void	 if_init(void);
void	 if_config_init(void);
void	 if_config_show(const struct ifnet *, struct ctl_out *);
int	 if_config_attach(void);	/* all configured; errno, on console */
int	 if_config_start(void);		/* when the list and routes are final */
void	 if_config_detach(void);
void	 loop_init(void);		/* makes lo0 */
void	 ether_init(void);
void	 arp_init(void);
void	 tap_init(void);
void	 packet_init(void);
void	 xdp_init(void);
void	 mem_init(void);
void	 bridge_init(void);
/* Makes a bridge of interfaces that are there; errno, reason in why. */
int	 bridge_create(const struct if_config *, char *why, size_t);
/* A frame, its header contiguous, that a member received; consumes m. */
NOINLINE void  bridge_input(struct ifnet *member, struct mbuf *m);
void	 route_init(void);
void	 route_config_init(void);
int	 route_attach(void);		/* interfaces' subnets */
int	 route_config_attach(void);	/* routes of loader.conf */
void	 netisr_init(void);
int	 netisr_start(void);
void	 netisr_stop(void);

/* Fills what drivers have in common, from the configuration. */
void	 if_initname(struct ifnet *, const struct if_config *, uint32_t mtu);
unsigned if_offload_caps(const struct if_config *);	/* IFCAP_* */
/* Packets kept in a file; see if_pcap.c.  errno, with the reason in why. */
void	 if_pcap_init(void);
int	 if_pcap_start(struct ifnet *, const char *path, uint64_t bytes,
	    char *why, size_t);
int	 if_pcap_config(const struct if_config *, char *why, size_t);
void	 if_pcap_stop(struct ifnet *);
void	 if_pcap_tap(struct ifnet *, const struct mbuf *);
struct if_impair *if_impair_create(const struct impair_config *);
/*
 * Segments that are joined; see if_lro.c.  Between begin and end, the burst,
 * what the calling thread receives on interfaces with if_lro may be held.
 */
#define	LRO_FLOWS	8	/* connections at a time */
struct lro_segment {		/* offsets are from the frame's first byte */
	struct mbuf	*ls_m;
	uint32_t	 ls_tcp, ls_data;
	uint32_t	 ls_len;	/* bytes of data */
	bool		 ls_v6;
};
struct lro_flow {
	struct lro_segment lf_first;
	struct mbuf	*lf_last;	/* of what was joined, or NULL */
	uint32_t	 lf_next;	/* sequence number behind it */
};
struct if_lro {
	unsigned	 lro_n;
	struct lro_flow	 lro_flows[LRO_FLOWS];
};
void	 if_lro_begin(struct if_lro *);
void	 if_lro_end(struct if_lro *);
void	 if_pass(struct mbuf *);	/* a frame, its interface set */
/* A received frame, after if_lro_begin(): true if it was taken, false if it is
   to pass. */
bool	 if_lro_take(struct mbuf *);
/* A thread in front of an interface's driver; see if_txq.c. */
#define	TXQ_ALWAYS	0x1	/* whoever sends leaves its frames to it */
#define	TXQ_GIANT	0x2	/* it takes Giant, unless the sender has it */
void	 if_txq_create(struct ifnet *, unsigned flags);
int	 if_txq_start(struct if_txq *);	/* errno */
/* Sends what waits; what others send later stays where it is. */
void	 if_txq_stop(struct if_txq *);
/* Announces an address (RFC 5227 section 2.3). */
void	 arp_announce(struct ifnet *);
void	 arp_input(struct mbuf *);
void	 arp_ifattach(struct ifnet *);	/* fam_ether of IPv4 */
/* Link addresses of groups: RFC 1112 section 6.4, RFC 2464 section 7. */
void	 ether_group(struct in_addr, uint8_t ll[6]);
void	 ether_group6(const struct in6_addr *, uint8_t ll[6]);
/* A whole frame to the driver, by way of what keeps and harms packets. */
int	 ether_send(struct ifnet *, struct mbuf *);
int	 ether_frame(struct ifnet *, struct mbuf *, const uint8_t dst[6],
	    uint16_t type);

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
void	 inet_init(void);		/* IPv4, as an if_family */
void	 if_hashaddrs(const struct ifnet *);	/* before if_byaddr() finds them */
/* Routes to the subnets of an interface; errno. */
int	 route_subnets(struct ifnet *);

/*
 * "10.1.0.2/24" of AF_INET or "2001:db8::1/64" of AF_INET6, into a struct
 * in_addr or in6_addr; false: not that.
 */
bool	 in_parse_prefix(int domain, const char *, void *addr, unsigned *plen);
struct in_addr inet_mask(unsigned plen);
unsigned inet_masklen(struct in_addr mask);

#endif /* NET_IF_PRIVATE_H */
