/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's own functions, found after this library in the dynamic
 * linker's search order.
 */
#include <dlfcn.h>

#include "api/api.h"

struct real_calls real_calls;

static const struct {
	const char	*name;
	size_t		 offset;
} names[] = {
#define	X(ret, name, args)	{ #name, offsetof(struct real_calls, name) },
	REAL_CALLS(X)
#undef X
};

/*
 * Runs before main(), while there is one thread: when this library is loaded,
 * or at the first call from a library loaded before it.
 */
EARLY void
real_resolve(void)
{
	for (size_t i = 0; i < nitems(names); i++) {
		void *fn = dlsym(RTLD_NEXT, names[i].name);

		if (fn == NULL)
			panic("libstack: the C library has no %s()",
			    names[i].name);
		*(void **)(void *)((char *)&real_calls + names[i].offset) = fn;
	}
}
