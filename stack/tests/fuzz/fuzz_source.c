/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * if.<name>.source: the load that an interface in memory receives.
 */
#include <stdlib.h>
#include <string.h>

#include "dev/mem.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mem_source *ms;
	char why[256] = "", *spec;

	if (size > 255 || (spec = malloc(size + 1)) == NULL)
		return (0);
	memcpy(spec, data, size);
	spec[size] = '\0';
	ms = mem_source_create(spec, why, sizeof(why));
	if (ms == NULL && why[0] == '\0')
		panic("refused without a reason");
	kfree(ms);
	free(spec);
	return (0);
}
