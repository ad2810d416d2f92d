/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader.conf, read again after the boot.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "fuzz.h"
#include "kern/kern_private.h"
#include "kern/systm.h"

static void
setup(void)
{
	static bool done;

	if (!done && stack_boot(NULL) != 0)
		panic("the stack does not boot");
	done = true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	setup();
	if ((text = malloc(size + 1)) == NULL)
		return (0);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)loader_parse("fuzz", text);
	free(text);
	return (0);
}
