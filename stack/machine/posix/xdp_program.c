/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF program on an interface: redirects the frames of each queue to its
 * AF_XDP socket; other queues' frames go to the host.  Its six instructions
 * are written here (bpf(2),
 * Documentation/bpf/standardization/instruction-set.rst), so that the build
 * needs only the kernel's headers.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>

#include "machine/posix/host.h"
#include "machine/posix/xdp_program.h"

static int
bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long fd = host_call(SYS_bpf, cmd, attr, sizeof(*attr));

	return (fd >= 0 ? (int)fd : -errno);
}

int
xdp_map_create(unsigned nqueues)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = sizeof(uint32_t);
	attr.max_entries = nqueues;
	return (bpf(BPF_MAP_CREATE, &attr));
}

int
xdp_map_set(int map, uint32_t queue, int socket)
{
	uint32_t value = (uint32_t)socket;
	union bpf_attr attr;
	int error;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&queue;
	attr.value = (uintptr_t)&value;
	error = bpf(BPF_MAP_UPDATE_ELEM, &attr);
	return (error < 0 ? -error : 0);
}

/* return bpf_redirect_map(map, ctx->rx_queue_index, XDP_PASS); */
static int
program_load(int map)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2,
		    .src_reg = BPF_REG_1,
		    .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_1,
		    .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{ .code = 0 },	/* the upper half of the constant */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3,
		    .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = BPF_XDP;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uintptr_t)"BSD";
	strcpy(attr.prog_name, "stack");
	return (bpf(BPF_PROG_LOAD, &attr));
}

/* The link holds the program, and is removed with the process's descriptor. */
int
xdp_program_attach(int map, int ifindex)
{
	union bpf_attr attr;
	int program = program_load(map), link;

	if (program < 0)
		return (program);
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_ifindex = (uint32_t)ifindex;
	attr.link_create.attach_type = BPF_XDP;
	link = bpf(BPF_LINK_CREATE, &attr);
	host_close(program);
	return (link);
}
