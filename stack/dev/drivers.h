/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drivers that the boot registers.
 */
#ifndef DEV_DRIVERS_H
#define DEV_DRIVERS_H

void	 tap_init(void);
void	 packet_init(void);
void	 xdp_init(void);
void	 mem_init(void);

#endif /* DEV_DRIVERS_H */
