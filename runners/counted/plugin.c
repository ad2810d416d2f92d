/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A plugin of QEMU's emulator that counts the guest's instructions by address.
 *
 * A window is what the guest executes between the marks BEGIN and END.  A mark
 * is a long NOP with a magic number (guest/mark.h).  The file of the argument
 * out=FILE gets for each window a line
 *
 *     W INSTRUCTIONS-OF-USER-SPACE
 *
 * and for each address of the kernel that was executed in it
 *
 *     I ADDRESS COUNT MEMORY-ACCESSES LOCKED
 *
 * ADDRESS in hexadecimal, LOCKED 1 for an instruction with a lock prefix.  At
 * the end of QEMU a last window follows after a line X, with what was executed
 * since the last mark: there a guest that hangs spends its time.
 *
 * The functions of QEMU are declared here, because Debian packages no header
 * for plugins: API version 1, include/qemu/qemu-plugin.h of QEMU 7.2.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/mark.h"

#define EXPORT		__attribute__((visibility("default")))
#define LOCK_PREFIX	0xf0
#define BUCKETS		(1u << 18)

enum { INLINE_ADD_U64 };
enum { MEM_RW = 3 };
enum { CB_NO_REGS };

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void	 qemu_plugin_register_vcpu_tb_trans_cb(plugin_id,
	    void (*)(plugin_id, struct qemu_plugin_tb *));
void	 qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
	    void (*)(unsigned, void *), int, void *);
void	 qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *,
	    int, void *, uint64_t);
void	 qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *, int,
	    int, void *, uint64_t);
void	 qemu_plugin_register_atexit_cb(plugin_id,
	    void (*)(plugin_id, void *), void *);
size_t	 qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *
	 qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *
	 qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t	 qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(plugin_id, const void *, int, char **);

struct counter {
	struct counter	*next;
	uint64_t	 address;
	uint64_t	 count;
	uint64_t	 accesses;
	bool		 locked;
};

static struct counter	*buckets[BUCKETS];
static FILE		*out;

/*
 * An address can hold an instruction with a lock prefix at one time and one
 * without at another, because Linux patches its own code: two counters then.
 */
static struct counter *
counter(uint64_t address, bool locked)
{
	struct counter **head, *c;

	head = &buckets[(address ^ address >> 18) % BUCKETS];
	for (c = *head; c != NULL; c = c->next)
		if (c->address == address && c->locked == locked)
			return (c);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		abort();
	c->address = address;
	c->locked = locked;
	c->next = *head;
	*head = c;
	return (c);
}

static bool
in_kernel(const struct counter *c)
{
	return (c->address >> 63);
}

static void
clear(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct counter *c = buckets[i]; c != NULL; c = c->next)
			c->count = c->accesses = 0;
}

static void
print(void)
{
	uint64_t user = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct counter *c = buckets[i]; c != NULL; c = c->next)
			if (!in_kernel(c))
				user += c->count;
	fprintf(out, "W %" PRIu64 "\n", user);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct counter *c = buckets[i]; c != NULL; c = c->next)
			if (in_kernel(c) && c->count > 0)
				fprintf(out, "I %" PRIx64 " %" PRIu64 " %"
				    PRIu64 " %d\n", c->address, c->count,
				    c->accesses, c->locked);
}

static void
begin(unsigned vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	clear();
}

static void
end(unsigned vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	print();
	clear();
}

static void
finish(plugin_id id, void *data)
{
	(void)id;
	(void)data;
	fputs("X\n", out);
	print();
	fclose(out);
}

/* Prefixes come in any order before the opcode (Intel SDM, volume 2, 2.1.1). */
static bool
has_lock(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == LOCK_PREFIX)
			return (true);
		if (memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3",
		    bytes[i], 10) == NULL)
			return (false);
	}
	return (false);
}

static void
translate(plugin_id id, struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_insn *insn;
	struct counter *c;
	const unsigned char *bytes;
	size_t size;

	(void)id;
	for (size_t i = 0, n = qemu_plugin_tb_n_insns(tb); i < n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		bytes = qemu_plugin_insn_data(insn);
		size = qemu_plugin_insn_size(insn);
		if (size == MARK_SIZE && memcmp(bytes, MARK_BEGIN, size) == 0)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin,
			    CB_NO_REGS, NULL);
		else if (size == MARK_SIZE && memcmp(bytes, MARK_END, size) == 0)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end,
			    CB_NO_REGS, NULL);
		else {
			c = counter(qemu_plugin_insn_vaddr(insn),
			    has_lock(bytes, size));
			qemu_plugin_register_vcpu_insn_exec_inline(insn,
			    INLINE_ADD_U64, &c->count, 1);
			qemu_plugin_register_vcpu_mem_inline(insn, MEM_RW,
			    INLINE_ADD_U64, &c->accesses, 1);
		}
	}
}

EXPORT int
qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) != 0) {
		fputs("plugin: it needs the argument out=FILE\n", stderr);
		return (-1);
	}
	out = fopen(argv[0] + 4, "w");
	if (out == NULL) {
		perror(argv[0] + 4);
		return (-1);
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return (0);
}
