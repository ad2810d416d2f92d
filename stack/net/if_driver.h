/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Definitions shared by drivers of interfaces: registration, and the steps
 * between stack and driver that capture, impair or queue packets.
 */
#ifndef NET_IF_DRIVER_H
#define NET_IF_DRIVER_H

#include "net/if_config.h"

/* A driver attaches the interfaces whose names start with its name. */
struct if_driver {
	const char	*name;		/* "tap" */
	unsigned	 has;		/* IFHAS_* */
	/* Returns 0 or an errno value with the reason in why. */
	int		(*attach)(const struct if_config *, char *why, size_t);
	/* Starts reception, or NULL; returns 0 or an errno value. */
	int		(*start)(struct ifnet *);
	void		(*detach)(struct ifnet *);
	/* Adds lines to an interface's "ifconfig", or NULL. */
	void		(*show)(const struct ifnet *, struct ctl_out *);
	struct if_driver *next;
};
void	 if_driver_register(struct if_driver *);

/* Fills the members common to all drivers from the configuration. */
void	 if_initname(struct ifnet *, const struct if_config *, uint32_t mtu);
unsigned if_offload_caps(const struct if_config *);	/* IFCAP_* */
/*
 * Packet capture, see if_pcap.c.  Returns an errno value with the reason in
 * why.
 */
void	 if_pcap_init(void);
int	 if_pcap_start(struct ifnet *, const char *path, uint64_t bytes,
	    char *why, size_t);
int	 if_pcap_config(const struct if_config *, char *why, size_t);
void	 if_pcap_stop(struct ifnet *);
void	 if_pcap_tap(struct ifnet *, const struct mbuf *);
struct if_impair *if_impair_create(const struct impair_config *);

/* A transmit thread before an interface's driver; see if_txq.c. */
#define	TXQ_ALWAYS	0x1	/* senders queue all frames to it */
#define	TXQ_GIANT	0x2	/* it takes Giant, unless the sender has it */
void	 if_txq_create(struct ifnet *, unsigned flags);
int	 if_txq_start(struct if_txq *);	/* returns an errno value */
/* Sends what is queued; frames queued later are not sent. */
void	 if_txq_stop(struct if_txq *);

#endif /* NET_IF_DRIVER_H */
