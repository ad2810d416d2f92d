/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request lines of the control socket.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "kern/ctl.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ctl_request req;
	const char *why;
	char *line;

	if (size >= CTL_LINEMAX || (line = malloc(size + 1)) == NULL)
		return (0);
	memcpy(line, data, size);
	line[size] = '\0';
	memset(&req, 0, sizeof(req));
	why = ctl_parse(line, &req);
	if (why != NULL && *why == '\0')
		panic("refused without a reason");
	if (why == NULL && req.cr_verb == CTL_SET &&
	    (req.cr_name == NULL || req.cr_value == NULL))
		panic("a set without name or value");
	free(line);
	return (0);
}
