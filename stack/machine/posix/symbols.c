/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol tables of ELF files (System V ABI, chapters 4 and 5).
 */
#include "machine/posix/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "machine/posix/host.h"

/*
 * Finds the symbol that contains an address in a file's symbol table; NULL if
 * there is none.
 */
static const char *
find_symbol(const char *file, size_t size, int type, uintptr_t at,
    uintptr_t *start)
{
	const ElfW(Ehdr) *eh = (const void *)file;
	const ElfW(Shdr) *sh = (const void *)(file + eh->e_shoff);
	const char *found = NULL;

	if (eh->e_shoff + eh->e_shnum * sizeof(*sh) > size)
		return (NULL);
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		const ElfW(Sym) *sym = (const void *)(file + sh[i].sh_offset);
		const size_t n = sh[i].sh_size / sizeof(*sym);

		if (sh[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < n; k++)
			if (ELF64_ST_TYPE(sym[k].st_info) == type &&
			    at - sym[k].st_value < sym[k].st_size) {
				*start = sym[k].st_value;
				found = file + sh[sh[i].sh_link].sh_offset +
				    sym[k].st_name;
			}
	}
	return (found);
}

bool
symbol_name(const char *path, int type, uintptr_t at, char *buf, size_t len)
{
	int fd = (int)host_call(SYS_openat, AT_FDCWD, path,
	    O_RDONLY | O_CLOEXEC, 0);
	const char *file, *name = NULL;
	uintptr_t start;
	struct stat st;

	if (fd < 0)
		return (false);
	file = fstat(fd, &st) != 0 ? MAP_FAILED : mmap(NULL,
	    (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file != MAP_FAILED) {
		name = find_symbol(file, (size_t)st.st_size, type, at, &start);
		if (name != NULL)
			snprintf(buf, len, "%s+0x%zx", name,
			    (size_t)(at - start));
		munmap((void *)(uintptr_t)file, (size_t)st.st_size);
	}
	host_close(fd);
	return (name != NULL);
}
