/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of addresses from the symbol table of a program's file.
 */
#ifndef MACHINE_POSIX_SYMBOLS_H
#define MACHINE_POSIX_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Names an address, relative to the load address, by the symbol of this type
 * (STT_FUNC, STT_OBJECT) that contains it: "tcp_input+0x12".  False: the file
 * cannot be read, or no symbol contains it.
 */
bool	 symbol_name(const char *path, int type, uintptr_t at, char *buf,
	    size_t len);

#endif /* MACHINE_POSIX_SYMBOLS_H */
