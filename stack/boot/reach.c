/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that the dynamic linker does not preload libraries into, and those
 * that do not call the C library.
 */
#include "boot/reach.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "machine/machine.h"

#define	SCRIPTS_MAX	5	/* nested interpreters, as in Linux */
#define	HEAD_LEN	8192	/* bytes of a file that are read */
#define	GO_BUILDID	4	/* type of the note "Go" */

bool
reach_find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/') != NULL)
		return (snprintf(path, size, "%s", name) < (int)size);
	for (; dirs != NULL && *dirs != '\0'; dirs = *end != '\0' ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		snprintf(path, size, "%.*s/%s", (int)(end - dirs), dirs, name);
		if (access(path, X_OK) == 0)
			return (true);
	}
	return (false);
}

/* ld.so(8): a program that gains privileges ignores LD_PRELOAD. */
static const char *
privilege_refusal(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return (NULL);
	if ((st.st_mode & S_ISUID) != 0 && st.st_uid != getuid())
		return ("is a set-user-ID program");
	if ((st.st_mode & S_ISGID) != 0 && st.st_gid != getgid())
		return ("is a set-group-ID program");
	if (getuid() != 0 &&
	    getxattr(path, "security.capability", NULL, 0) > 0)
		return ("has file capabilities");
	return (NULL);
}

/* The start of a file, which has its program headers and notes. */
struct head {
	union {
		ElfW(Ehdr)	 eh;
		char		 text[HEAD_LEN + 1];
	};
	size_t		 len;
};

/* The Go linker notes its build ID. */
static bool
notes_go(const struct head *h, const ElfW(Phdr) *ph)
{
	size_t at = ph->p_offset, end = ph->p_offset + ph->p_filesz;
	ElfW(Nhdr) note;

	while (at < end && at + sizeof(note) + 4 <= h->len) {
		memcpy(&note, h->text + at, sizeof(note));
		if (note.n_type == GO_BUILDID && note.n_namesz == 4 &&
		    memcmp(h->text + at + sizeof(note), "Go\0", 4) == 0)
			return (true);
		at += sizeof(note) + ((size_t)note.n_namesz + 3) / 4 * 4 +
		    ((size_t)note.n_descsz + 3) / 4 * 4;
	}
	return (false);
}

static const char *
interpreter_refusal(const struct head *h, const ElfW(Phdr) *ph)
{
	return (ph->p_offset < h->len &&
	    strstr(h->text + ph->p_offset, "/ld-linux") == NULL ?
	    "uses another C library" : NULL);
}

static const char *
elf_refusal(const struct head *h)
{
	const char *refusal = "is statically linked";
	const ElfW(Ehdr) *eh = &h->eh;
	ElfW(Phdr) ph;

	if (eh->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 :
	    ELFCLASS32))
		return ("is for another word size");
	for (unsigned i = 0; i < eh->e_phnum; i++) {
		const size_t at = eh->e_phoff + i * (size_t)eh->e_phentsize;

		if (at > h->len || h->len - at < sizeof(ph))
			return (NULL);
		memcpy(&ph, h->text + at, sizeof(ph));
		if (ph.p_type == PT_NOTE && notes_go(h, &ph))
			return ("is a Go program, which makes system calls "
			    "itself");
		if (ph.p_type == PT_INTERP)
			refusal = interpreter_refusal(h, &ph);
	}
	return (refusal);
}

/* Stores the interpreter of a line "#!"; empty if it names none. */
static void
script_interpreter(const char *line, char *path, size_t size)
{
	line += 2 + strspn(line + 2, " \t");
	snprintf(path, size, "%.*s", (int)strcspn(line, " \t\n"), line);
}

static const char *
file_refusal(const struct head *h, char *interpreter, size_t size)
{
	*interpreter = '\0';
	if (h->len >= 2 && memcmp(h->text, "#!", 2) == 0)
		script_interpreter(h->text, interpreter, size);
	if (h->len < sizeof(h->eh) ||
	    memcmp(h->eh.e_ident, ELFMAG, SELFMAG) != 0)
		return (NULL);
	return (elf_refusal(h));
}

const char *
reach_refusal(const char *path)
{
	char file[PATH_MAX], interpreter[PATH_MAX];
	const char *refusal;
	struct head h;
	ssize_t n;

	snprintf(file, sizeof(file), "%s", path);
	for (unsigned i = 0; i < SCRIPTS_MAX; i++) {
		n = mach_readfile(file, h.text, HEAD_LEN);
		h.len = n > 0 ? (size_t)n : 0;
		h.text[h.len] = '\0';
		refusal = file_refusal(&h, interpreter, sizeof(interpreter));
		if (refusal == NULL && *interpreter == '\0')
			refusal = privilege_refusal(file);
		if (refusal != NULL || *interpreter == '\0')
			return (refusal);
		memcpy(file, interpreter, sizeof(file));
	}
	return (NULL);
}
