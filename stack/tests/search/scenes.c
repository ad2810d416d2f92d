/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread functions shared by scenes.
 */
#include "tests/search/scenes.h"

#include "tests/net.h"

bool
scene_none_left(void *start)
{
	return (so_count() <= *(uint32_t *)start);
}

void
scene_close_one(void *so)
{
	(void)soclose(so);
}

void
scene_send_some(void *so)
{
	char buf[600] = "";
	size_t n;

	for (unsigned i = 0; i < 3; i++)
		if (t_trysend(so, buf, sizeof(buf), 0, &n) != 0)
			break;
	sorele(so);
}

void
scene_receive_all(void *so)
{
	char buf[600];
	size_t n;

	while (t_tryrecv(so, buf, sizeof(buf), 0, &n) == 0 && n > 0)
		continue;
	sorele(so);
}
