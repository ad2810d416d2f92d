/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunnels: interfaces gif and gre.
 */
#ifndef NETINET_IP_TUNNEL_H
#define NETINET_IP_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct if_config;

void	 tunnel_init(void);		/* at boot */
/* Makes a gif or gre interface; an errno value with the reason in why. */
int	 tunnel_create(const struct if_config *, bool gre, char *why, size_t);
/*
 * RFC 6040 section 4.2: the traffic class of a packet that leaves a tunnel, of
 * both headers' classes; -1: it must be dropped.
 */
int	 tunnel_ecn(uint8_t outer, uint8_t inner);

#endif /* NETINET_IP_TUNNEL_H */
