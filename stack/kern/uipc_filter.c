/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters of sockets: SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_LOCK_FILTER and
 * SO_GET_FILTER of socket(7).
 */
#include <errno.h>
#include <string.h>

#include "kern/bpf_filter.h"
#include "kern/uipc_filter.h"

struct sofilter {
	unsigned	 sf_len;	/* [I] instructions */
	struct sock_filter sf_prog[];	/* [I] */
};

void
sofilter_free(struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_filter != NULL)
		kfree(so->so_filter);
	so->so_filter = NULL;
}

int
sofilter_attach(struct socket *so, const void *val, socklen_t len)
    REQUIRES(so->so_lock)
{
	struct sock_fprog fprog;
	struct sofilter *sf;

	if (len != sizeof(fprog))
		return (EINVAL);
	memcpy(&fprog, val, sizeof(fprog));
	if (so->so_options & SOO_LOCK_FILTER)
		return (EPERM);
	/* segments of TCP and bytes of a stream are not filtered */
	if (so->so_proto->pr_stream)
		return (EOPNOTSUPP);
	if (!bpf_valid(fprog.filter, fprog.len))
		return (EINVAL);
	sf = kmalloc(sizeof(*sf) + fprog.len * sizeof(sf->sf_prog[0]));
	sf->sf_len = fprog.len;
	memcpy(sf->sf_prog, fprog.filter,
	    fprog.len * sizeof(sf->sf_prog[0]));
	sofilter_free(so);
	so->so_filter = sf;
	return (0);
}

int
sofilter_detach(struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_options & SOO_LOCK_FILTER)
		return (EPERM);
	if (so->so_filter == NULL)
		return (ENOENT);
	sofilter_free(so);
	return (0);
}

int
sofilter_lock(struct socket *so, int on) REQUIRES(so->so_lock)
{
	if (on == 0 && (so->so_options & SOO_LOCK_FILTER) != 0)
		return (EPERM);
	if (on != 0)
		so->so_options |= SOO_LOCK_FILTER;
	return (0);
}

/* The length is a number of instructions; with 0 it is only returned. */
int
sofilter_get(const struct socket *so, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	const struct sofilter *sf = so->so_filter;
	const unsigned n = sf != NULL ? sf->sf_len : 0;

	if (*len != 0 && *len < n)
		return (EINVAL);
	if (*len != 0 && n > 0)
		memcpy(val, sf->sf_prog, n * sizeof(sf->sf_prog[0]));
	*len = n;
	return (0);
}

uint32_t
sofilter_run(const struct socket *so, const struct bpf_packet *bp,
    uint32_t min) REQUIRES(so->so_lock)
{
	const uint32_t keep = bpf_run(so->so_filter->sf_prog, bp);

	if (keep == 0)
		return (0);
	if (keep >= bp->bp_len)
		return (bp->bp_len);
	return (keep > min ? keep : min);
}
