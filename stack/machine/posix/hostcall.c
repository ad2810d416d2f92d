/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instruction that calls the host's kernel.
 */
#include "machine/posix/host.h"

#include <errno.h>

#define	ERRNO_MAX	4095

#if defined(__x86_64__)
static inline long
trap(long number, const long a[6])
{
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a[0]),
	    "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11",
	    "memory");
	return (r);
}
#elif defined(__aarch64__)
static inline long
trap(long number, const long a[6])
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2),
	    "r"(x3), "r"(x4), "r"(x5) : "memory");
	return (x0);
}
#else
#error "the system call instruction of this machine is missing"
#endif

long
host_call6(long number, long a, long b, long c, long d, long e, long f)
{
	const long args[6] = { a, b, c, d, e, f };
	long r = trap(number, args);

	if (r >= -ERRNO_MAX && r < 0) {
		errno = (int)-r;
		return (-1);
	}
	return (r);
}
