/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF program that redirects frames to AF_XDP sockets.
 */
#ifndef MACHINE_POSIX_XDP_PROGRAM_H
#define MACHINE_POSIX_XDP_PROGRAM_H

#include <stdint.h>

/* Return descriptors or a negative errno. */
int	 xdp_map_create(unsigned nqueues);
int	 xdp_program_attach(int map, int ifindex);
/* Returns an errno value. */
int	 xdp_map_set(int map, uint32_t queue, int socket);

#endif /* MACHINE_POSIX_XDP_PROGRAM_H */
