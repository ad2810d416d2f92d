/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock annotations.  clang-tidy checks them (python -m tests.stack.locking);
 * compilers ignore them, because clang takes the name of a sibling member in
 * GUARDED_BY() since version 22 only.  The letter in brackets beside a field
 * is for the reader; the attribute is for the checker.
 */
#ifndef KERN_ANNOTATE_H
#define KERN_ANNOTATE_H

#ifdef LOCK_ANALYSIS
#define	LOCK_ATTR(x)	__attribute__((x))
#else
#define	LOCK_ATTR(x)
#endif

#define	LOCKABLE(name)		LOCK_ATTR(capability(name))
#define	GUARDED_BY(...)		LOCK_ATTR(guarded_by(__VA_ARGS__))
#define	REENTRANT		LOCK_ATTR(reentrant_capability)
#define	ACQUIRES(...)		LOCK_ATTR(acquire_capability(__VA_ARGS__))
#define	ACQUIRES_SHARED(...)	LOCK_ATTR(acquire_shared_capability(__VA_ARGS__))
#define	TRY_ACQUIRES(...)	LOCK_ATTR(try_acquire_capability(__VA_ARGS__))
#define	RELEASES(...)		LOCK_ATTR(release_capability(__VA_ARGS__))
#define	RELEASES_SHARED(...)	LOCK_ATTR(release_shared_capability(__VA_ARGS__))
#define	REQUIRES(...)		LOCK_ATTR(requires_capability(__VA_ARGS__))
#define	REQUIRES_SHARED(...)	LOCK_ATTR(requires_shared_capability(__VA_ARGS__))
#define	EXCLUDES(...)		LOCK_ATTR(locks_excluded(__VA_ARGS__))
#define	ASSERTS_LOCK(...)	LOCK_ATTR(assert_capability(__VA_ARGS__))
#define	ASSERTS_SHARED(...)	LOCK_ATTR(assert_shared_capability(__VA_ARGS__))
/* Exempts a function from the analysis; a comment gives the reason. */
#define	NO_LOCK_ANALYSIS	LOCK_ATTR(no_thread_safety_analysis)

/*
 * A role represents a lock that a field or a function cannot name: that of
 * the bucket in which an entry hangs, or whichever lock a strategy chose at
 * boot.  It exists for the checker only, is declared and never defined.  The
 * functions that take the lock take its role.
 */
struct LOCKABLE("role") REENTRANT lock_role {
	char		 lr_unused;
};
#ifdef LOCK_ANALYSIS
void	 role_take(struct lock_role *r) ACQUIRES(*r);
void	 role_drop(struct lock_role *r) RELEASES(*r);
void	 role_take_shared(struct lock_role *r) ACQUIRES_SHARED(*r);
void	 role_drop_shared(struct lock_role *r) RELEASES_SHARED(*r);
void	 role_assert(struct lock_role *r) ASSERTS_LOCK(*r);
#else
#define	role_take(r)	((void)0)
#define	role_drop(r)	((void)0)
#define	role_take_shared(r) ((void)0)
#define	role_drop_shared(r) ((void)0)
#define	role_assert(r)	((void)0)
#endif

#define	PRINTFLIKE(f, a)	__attribute__((format(printf, f, a)))
#define	NORETURN		_Noreturn

/*
 * Branch hints for conditions with one usual outcome under any load (FreeBSD's
 * names).
 */
#define	__predict_true(c)	__builtin_expect((c) != 0, 1)
#define	__predict_false(c)	__builtin_expect((c) != 0, 0)

#endif /* KERN_ANNOTATE_H */
