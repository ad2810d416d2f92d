/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a thread (thread_hints()) that this layer uses.
 */
#ifndef NETINET6_IN6_HINTS_H
#define	NETINET6_IN6_HINTS_H

#include "netinet/in_hints.h"

enum in6_hint {
	IN6_ROUTES = IN_HINTS, /* route6.c */
	IN6_LINKS,	/* link addresses (nd6.c) */
	IN6_HINTS
};
_Static_assert((int)IN6_HINTS == TD_HINTS, "each slot has a user");


#endif /* NETINET6_IN6_HINTS_H */
