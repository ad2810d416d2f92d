/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's own functions, found behind this library in the order in
 * which the dynamic linker looks names up.
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
 * Runs before main(), when there is one thread only: when this library is
 * loaded, or in the first call of one that was loaded before.
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
