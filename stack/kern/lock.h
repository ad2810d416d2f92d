/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes, reader-writer locks and Giant.  Every lock belongs to a class of
 * the table below.  The table gives its name in profiles and reports and its
 * place in the lock order.  A thread may only acquire a class with a higher
 * rank than those it holds.  Two locks of the same class follow the last
 * column: NEVER, in ANY order, or by rising ADDRESS.
 */
#ifndef KERN_LOCK_H
#define KERN_LOCK_H

#include "kern/annotate.h"
#include "kern/systm.h"

/*	 id		name		rank	same class twice */
#define	LOCK_CLASSES(X)							\
	X(GIANT,	"Giant",	10,	ANY)				\
	X(FILEDESC,	"filedesc",	19,	NEVER)			\
	X(FD,		"fdtable",	20,	NEVER)			\
	X(CTL,		"control",	25,	NEVER)			\
	X(NET,		"net",		26,	NEVER)			\
	X(UNP,		"unp",		27,	NEVER)			\
	X(UNPGLOBAL,	"unp_global_mtx", 27,	NEVER)			\
	X(UNPLINK,	"unp_link_rwlock", 27,	NEVER)			\
	X(UNPCB,	"unp_mtx",	28,	ADDRESS)		\
	X(TCPINFO,	"tcpinfo",	29,	NEVER)			\
	X(SOCKET,	"socket",	30,	ADDRESS)		\
	X(UNPRIGHTS,	"unprights",	33,	NEVER)			\
	X(UNPNAME,	"unpname",	34,	NEVER)			\
	X(ACCEPT,	"accept",	35,	NEVER)			\
	X(SOLIST,	"solist",	36,	NEVER)			\
	X(RAW,		"raw",		39,	NEVER)			\
	X(PCBTABLE,	"pcbtable",	40,	NEVER)			\
	X(PCBGROUP,	"pcbgroup",	41,	NEVER)			\
	X(SYNCACHE,	"syncache",	42,	NEVER)			\
	X(FASTOPEN,	"fastopen",	43,	NEVER)			\
	X(EPOLL,	"epoll",	45,	NEVER)			\
	X(ROUTE,	"route",	50,	NEVER)			\
	X(RTABLE,	"rtable",	52,	NEVER)			\
	X(IN6,		"in6",		54,	NEVER)			\
	X(PMTU,		"pmtu",		54,	NEVER)			\
	X(GROUP,	"group",	54,	NEVER)			\
	X(ARP,		"arp",		55,	NEVER)			\
	X(ND6,		"nd6",		55,	NEVER)			\
	X(IPREASS,	"ipq",		56,	NEVER)			\
	X(BRIDGE,	"bridge",	58,	NEVER)			\
	X(IFNET,	"ifnet",	60,	NEVER)			\
	X(NETISR,	"netisr",	70,	NEVER)			\
	X(DEVQ,		"devq",		75,	NEVER)			\
	X(CALLOUT,	"callout",	80,	NEVER)			\
	X(SLEEPQ,	"sleepq",	85,	NEVER)			\
	X(EPOCH,	"epoch",	91,	NEVER)			\
	X(SYSCTL,	"sysctl",	92,	NEVER)			\
	X(FOKEYS,	"fokeys",	93,	NEVER)			\
	X(MBUF,		"mbuf",		93,	NEVER)			\
	X(COUNTER,	"counter",	94,	NEVER)			\
	X(PROFILE,	"profile",	95,	NEVER)			\
	X(TEST,		"test",		15,	ANY)

enum lock_class {
#define	X(id, name, rank, twice)	LC_##id,
	LOCK_CLASSES(X)
#undef X
	LC_COUNT
};

enum lock_twice { LOCK_NEVER, LOCK_ANY, LOCK_ADDRESS };

struct lock_class_info {
	const char	*lc_name;
	int		 lc_rank;
	enum lock_twice	 lc_twice;
};
extern const struct lock_class_info lock_classes[LC_COUNT];

/*
 * A place in the source that acquires a lock.  Builds without lock tracking
 * (LOCK_TRACKING: witness, lock_profiling) pass NULL.
 */
struct lock_site {
	const char	*ls_file;
	unsigned	 ls_line;
	bool		 ls_child;	/* mtx_lock_child() */
};
#ifdef LOCK_TRACKING
#define	LOCK_SITE_OF(child)	(__extension__({			\
	static const struct lock_site site_ =				\
	    { __FILE__, __LINE__, (child) };				\
	&site_;								\
}))
#else
#define	LOCK_SITE_OF(child)	((const struct lock_site *)NULL)
#endif
#define	LOCK_SITE	LOCK_SITE_OF(false)

#ifdef LOCK_PROFILING
/*
 * Per-mutex data of the mutex profile of 2006.
 *	[o] the mutex's owner
 *	[a] atomic
 */
struct mtx_prof {
	nsec_t		 mp_since;	/* [o] when it was acquired, or 0 */
	const struct lock_site *mp_site; /* [o] where it was acquired */
	atomic_u32	 mp_hold;	/* [a] attempts that found it held */
	uint32_t	 mp_lock;	/* [o] acquisitions that had to wait */
	/* [o] the profile reset that both counts belong to */
	uint32_t	 mp_generation;
};
#endif

/* Owner word: struct thread pointer; bit 0 is set while a thread waits. */
struct LOCKABLE("mutex") mtx {
	atomic_uptr	 mtx_owner;	/* [a] */
	atomic_u32	 mtx_seq;	/* [a] word that waiters park on */
	uint8_t		 mtx_class;	/* [I] enum lock_class */
#ifdef LOCK_PROFILING
	struct mtx_prof	 mtx_prof;
#endif
};

/* Writer preference: a reader waits while a writer holds or waits. */
struct LOCKABLE("rwlock") rwlock {
	atomic_uptr	 rw_owner;	/* [a] 0, readers << 1 | 1, or writer */
	atomic_u32	 rw_writers;	/* [a] writers waiting */
	atomic_u32	 rw_seq;	/* [a] word that waiters park on */
	atomic_u32	 rw_parked;	/* [a] threads that may be parked */
	atomic_u32	 rw_starving;	/* [a] parked writers, others passed */
	uint8_t		 rw_class;	/* [I] */
};

void	 mtx_init(struct mtx *, enum lock_class);
void	 mtx_destroy(struct mtx *);
#define	mtx_lock(m)	mtx_lock_at((m), LOCK_SITE)
void	 mtx_lock_at(struct mtx *m, const struct lock_site *) ACQUIRES(*m);
/*
 * Locks a child after its listener.  SOCKET locks are otherwise taken by
 * rising address; a listener comes before its children at any address.
 */
#define	mtx_lock_child(m) mtx_lock_at((m), LOCK_SITE_OF(true))
#define	mtx_trylock(m)	mtx_trylock_at((m), LOCK_SITE)
bool	 mtx_trylock_at(struct mtx *m, const struct lock_site *)
	    TRY_ACQUIRES(true, *m);
void	 mtx_unlock(struct mtx *m) RELEASES(*m);
/* Whether no thread has it now; a hint, because it is read without order. */
static inline bool
mtx_isfree(struct mtx *m)
{
	return (atomic_load_uptr(&m->mtx_owner) == 0);
}
bool	 mtx_owned(struct mtx *);
void	 mtx_assert_owned(struct mtx *m) ASSERTS_LOCK(*m);
/*
 * For the checker: no other thread can reach what the lock protects, because
 * it was just made, is about to be freed, or the stack boots.
 */
#ifdef LOCK_ANALYSIS
void	 mtx_private(struct mtx *m) ASSERTS_LOCK(*m);
void	 rw_private(struct rwlock *l) ASSERTS_LOCK(*l);
#else
#define	mtx_private(m)	((void)0)
#define	rw_private(l)	((void)0)
#endif
/*
 * For the checker: what is read cannot change although the lock is not held; a
 * comment gives the reason.
 */
#ifdef LOCK_ANALYSIS
void	 mtx_stable(const struct mtx *m) ASSERTS_SHARED(*m);
#else
#define	mtx_stable(m)	((void)0)
#endif

/* Acquires a lock together with the role that represents it. */
#define	mtx_lock_as(m, role)	do {					\
	mtx_lock(m);							\
	role_take(role);						\
} while (0)
#define	mtx_unlock_as(m, role)	do {					\
	role_drop(role);						\
	mtx_unlock(m);							\
} while (0)
#define	rw_rlock_as(l, role)	do {					\
	rw_rlock(l);							\
	role_take_shared(role);						\
} while (0)
#define	rw_runlock_as(l, role)	do {					\
	role_drop_shared(role);						\
	rw_runlock(l);							\
} while (0)
#define	rw_wlock_as(l, role)	do {					\
	rw_wlock(l);							\
	role_take(role);						\
} while (0)
#define	rw_wunlock_as(l, role)	do {					\
	role_drop(role);						\
	rw_wunlock(l);							\
} while (0)

void	 rw_init(struct rwlock *, enum lock_class);
void	 rw_destroy(struct rwlock *);
/* Both return whether the thread had to wait. */
#define	rw_rlock(l)	rw_rlock_at((l), LOCK_SITE)
bool	 rw_rlock_at(struct rwlock *l, const struct lock_site *)
	    ACQUIRES_SHARED(*l);
void	 rw_runlock(struct rwlock *l) RELEASES_SHARED(*l);
#define	rw_wlock(l)	rw_wlock_at((l), LOCK_SITE)
bool	 rw_wlock_at(struct rwlock *l, const struct lock_site *) ACQUIRES(*l);
void	 rw_wunlock(struct rwlock *l) RELEASES(*l);
/* The first cannot see which threads are the readers. */
void	 rw_assert_rlocked(struct rwlock *l) ASSERTS_SHARED(*l);
void	 rw_assert_wlocked(struct rwlock *l) ASSERTS_LOCK(*l);

/*
 * Giant (Watson 2004).  With debug.mpsafenet=0 every socket call, protocol
 * handler and callout holds it; with 1 these functions do nothing.  Giant is
 * recursive, is taken before any other lock, and is dropped while the thread
 * sleeps.
 */
extern bool	 mpsafenet;		/* [I] after boot */
/*
 * For components that are not MP-safe: sets debug.mpsafenet to 0 during boot.
 */
void	 net_needs_giant(const char *component);
/* At boot: debug.needsgiant may name it. */
void	 giant_component(const char *name);
#define	giant_enter()	giant_enter_at(LOCK_SITE)
void	 giant_enter_at(const struct lock_site *);
void	 giant_exit(void);
/* Independent of mpsafenet: for handlers and drivers that need Giant. */
#define	giant_lock()	giant_lock_at(LOCK_SITE)
void	 giant_lock_at(const struct lock_site *);
void	 giant_unlock(void);
bool	 giant_owned(void);		/* by the calling thread */
unsigned giant_drop(void);		/* before sleeping; returns the depth */
void	 giant_pickup(unsigned depth);	/* after sleeping */

#endif /* KERN_LOCK_H */
