/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface between the files of kern/ and the boot (boot/init.c).
 */
#ifndef KERN_KERN_PRIVATE_H
#define KERN_KERN_PRIVATE_H

#include "kern/systm.h"

void	 sysctl_init(void);
void	 machine_init(void);	/* CPUs and scheduling of threads */
int	 machine_start(void);
void	 lock_init(void);	/* contention strategies and lock tracking */
/* at boot: there is one CPU, spinning is useless */
void	 lock_spin_never(void);
void	 giant_init(void);
int	 giant_start(void);	/* fixes debug.mpsafenet */
void	 ddb_init(void);
void	 synch_init(void);
void	 sleep_prof_init(void);
/*
 * sleep_begins() returns the time if sleeps are profiled, else 0.
 * sleep_ended() takes that time and counts the sleep.
 */
nsec_t	 sleep_begins(void);
void	 sleep_ended(const char *wmesg, nsec_t since);
void	 callout_subsys_init(void);
int	 callout_start(void);
void	 callout_shutdown(void);
/* Sets the tunables of a loader.conf; prints errors with their line. */
int	 loader_read(const char *path);
/* Like loader_read(), from memory; name appears in messages. */
int	 loader_parse(const char *name, char *text);

/*
 * True once loader.conf was read: from then on only tunables marked CTL_RUN
 * can be set.
 */
extern bool	 booted;

#endif /* KERN_KERN_PRIVATE_H */
