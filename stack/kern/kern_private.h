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
void	 lock_init(void);	/* strategies, and what watches the locks */
void	 lock_spin_never(void);	/* at boot: there is one CPU */
void	 giant_init(void);
int	 giant_start(void);	/* debug.mpsafenet does not change any more */
void	 ddb_init(void);
void	 synch_init(void);
void	 sleep_prof_init(void);
/* The date if sleeps are counted, else 0; and what to do with it later. */
nsec_t	 sleep_begins(void);
void	 sleep_ended(const char *wmesg, nsec_t since);
void	 callout_subsys_init(void);
int	 callout_start(void);
void	 callout_shutdown(void);
/* Sets the tunables of a loader.conf; says what is wrong, with its line. */
int	 loader_read(const char *path);
/* The same from memory; name is for messages. */
int	 loader_parse(const char *name, char *text);

/* loader.conf was read: tunables cannot be set but those marked CTL_RUN. */
extern bool	 booted;

#endif /* KERN_KERN_PRIVATE_H */
