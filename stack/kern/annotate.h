/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock annotations that clang checks (-Wthread-safety) and gcc ignores.  The
 * letter in brackets behind a field is for the reader; the attribute verifies
 * it.
 */
#ifndef KERN_ANNOTATE_H
#define KERN_ANNOTATE_H

#ifdef __clang__
#define	LOCK_ATTR(x)	__attribute__((x))
#else
#define	LOCK_ATTR(x)
#endif

#define	LOCKABLE(name)		LOCK_ATTR(capability(name))
#define	GUARDED_BY(l)		LOCK_ATTR(guarded_by(l))
#define	ACQUIRES(...)		LOCK_ATTR(acquire_capability(__VA_ARGS__))
#define	ACQUIRES_SHARED(...)	LOCK_ATTR(acquire_shared_capability(__VA_ARGS__))
#define	TRY_ACQUIRES(...)	LOCK_ATTR(try_acquire_capability(__VA_ARGS__))
#define	RELEASES(...)		LOCK_ATTR(release_capability(__VA_ARGS__))
#define	RELEASES_SHARED(...)	LOCK_ATTR(release_shared_capability(__VA_ARGS__))
#define	REQUIRES(...)		LOCK_ATTR(requires_capability(__VA_ARGS__))
#define	REQUIRES_SHARED(...)	LOCK_ATTR(requires_shared_capability(__VA_ARGS__))
#define	EXCLUDES(...)		LOCK_ATTR(locks_excluded(__VA_ARGS__))
#define	ASSERTS_LOCK(...)	LOCK_ATTR(assert_capability(__VA_ARGS__))
/* Exempts a function from the analysis; a comment gives the reason. */
#define	NO_LOCK_ANALYSIS	LOCK_ATTR(no_thread_safety_analysis)

#define	PRINTFLIKE(f, a)	__attribute__((format(printf, f, a)))
#define	NORETURN		_Noreturn

/*
 * Branch hints for conditions with one usual outcome under any load (FreeBSD's
 * names).
 */
#define	__predict_true(c)	__builtin_expect((c) != 0, 1)
#define	__predict_false(c)	__builtin_expect((c) != 0, 0)

#endif /* KERN_ANNOTATE_H */
