/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/bpf_filter.h"

#include <arpa/inet.h>

/* Instructions that Linux accepts, by their code. */
static bool
code_known(uint16_t code)
{
	switch (BPF_CLASS(code)) {
	case BPF_LD:
		switch (code & ~(uint16_t)(BPF_SIZE(BPF_H | BPF_B))) {
		case BPF_LD | BPF_ABS:
		case BPF_LD | BPF_IND:
			return (BPF_SIZE(code) != 0x18);
		default:
			return (code == (BPF_LD | BPF_IMM) ||
			    code == (BPF_LD | BPF_MEM) ||
			    code == (BPF_LD | BPF_W | BPF_LEN));
		}
	case BPF_LDX:
		return (code == (BPF_LDX | BPF_IMM) ||
		    code == (BPF_LDX | BPF_MEM) ||
		    code == (BPF_LDX | BPF_W | BPF_LEN) ||
		    code == (BPF_LDX | BPF_B | BPF_MSH));
	case BPF_ST:
	case BPF_STX:
		return (code == BPF_CLASS(code));
	case BPF_ALU:
		return (code == (BPF_ALU | BPF_NEG) || (code <= 0xff &&
		    BPF_OP(code) <= BPF_XOR && BPF_OP(code) != BPF_NEG));
	case BPF_JMP:
		return (code == (BPF_JMP | BPF_JA) || (code <= 0xff &&
		    BPF_OP(code) >= BPF_JEQ && BPF_OP(code) <= BPF_JSET));
	case BPF_RET:
		return (code == (BPF_RET | BPF_K) ||
		    code == (BPF_RET | BPF_A));
	default:
		return (code == (BPF_MISC | BPF_TAX) ||
		    code == (BPF_MISC | BPF_TXA));
	}
}

/* Ancillary data that a load from SKF_AD_OFF can name. */
static bool
ancillary_known(uint32_t k)
{
	switch (k - (uint32_t)SKF_AD_OFF) {
	case SKF_AD_PROTOCOL:
	case SKF_AD_PKTTYPE:
	case SKF_AD_IFINDEX:
	case SKF_AD_MARK:
	case SKF_AD_QUEUE:
	case SKF_AD_HATYPE:
	case SKF_AD_RXHASH:
	case SKF_AD_CPU:
	case SKF_AD_ALU_XOR_X:
	case SKF_AD_VLAN_TAG:
	case SKF_AD_VLAN_TAG_PRESENT:
	case SKF_AD_PAY_OFFSET:
	case SKF_AD_RANDOM:
	case SKF_AD_VLAN_TPID:
		return (true);
	default:
		return (false);
	}
}

/* One instruction by itself; left is the number of those that follow. */
static bool
insn_valid(const struct sock_filter *in, unsigned left)
{
	if (!code_known(in->code))
		return (false);
	switch (BPF_CLASS(in->code)) {
	case BPF_LD:
		if (BPF_MODE(in->code) == BPF_ABS &&
		    in->k >= (uint32_t)SKF_AD_OFF)
			return (ancillary_known(in->k));
		return (BPF_MODE(in->code) != BPF_MEM || in->k < BPF_MEMWORDS);
	case BPF_LDX:
		return (BPF_MODE(in->code) != BPF_MEM || in->k < BPF_MEMWORDS);
	case BPF_ST:
	case BPF_STX:
		return (in->k < BPF_MEMWORDS);
	case BPF_ALU:
		if (BPF_SRC(in->code) == BPF_X)
			return (true);
		if (BPF_OP(in->code) == BPF_DIV || BPF_OP(in->code) == BPF_MOD)
			return (in->k != 0);
		return ((BPF_OP(in->code) != BPF_LSH &&
		    BPF_OP(in->code) != BPF_RSH) || in->k < 32);
	case BPF_JMP:
		if (in->code == (BPF_JMP | BPF_JA))
			return (in->k < left);
		return (in->jt < left && in->jf < left);
	default:
		return (true);
	}
}

/*
 * Whether each word of scratch memory that is read was written on every way
 * that leads there.  Jumps go forward, so one pass is enough: words[i] is what
 * is written on all ways to i.
 */
static bool
memory_valid(const struct sock_filter *prog, unsigned len, uint16_t *words)
{
	const struct sock_filter *in;

	memset(words, 0xff, len * sizeof(*words));
	words[0] = 0;
	for (unsigned i = 0; i < len; i++) {
		uint16_t written = words[i];

		in = &prog[i];
		if ((in->code == (BPF_LD | BPF_MEM) ||
		    in->code == (BPF_LDX | BPF_MEM)) &&
		    (written & 1U << in->k) == 0)
			return (false);
		if (in->code == BPF_ST || in->code == BPF_STX)
			written |= (uint16_t)(1U << in->k);
		if (in->code == (BPF_JMP | BPF_JA)) {
			words[i + 1 + in->k] &= written;
		} else if (BPF_CLASS(in->code) == BPF_JMP) {
			words[i + 1 + in->jt] &= written;
			words[i + 1 + in->jf] &= written;
		} else if (BPF_CLASS(in->code) != BPF_RET && i + 1 < len) {
			words[i + 1] &= written;
		}
	}
	return (true);
}

bool
bpf_valid(const struct sock_filter *prog, unsigned len)
{
	uint16_t words[BPF_MAXINSNS];

	if (prog == NULL || len == 0 || len > BPF_MAXINSNS)
		return (false);
	for (unsigned i = 0; i < len; i++)
		if (!insn_valid(&prog[i], len - 1 - i))
			return (false);
	return (BPF_CLASS(prog[len - 1].code) == BPF_RET &&
	    memory_valid(prog, len, words));
}

static bool
ancillary(const struct bpf_packet *bp, uint32_t k, uint32_t x, uint32_t *a)
{
	uint32_t random;

	switch (k - (uint32_t)SKF_AD_OFF) {
	case SKF_AD_PROTOCOL:
		*a = bp->bp_protocol;
		return (true);
	case SKF_AD_IFINDEX:
		*a = bp->bp_ifindex;
		return (bp->bp_ifindex != 0);
	case SKF_AD_HATYPE:
		*a = 1;		/* ARPHRD_ETHER */
		return (bp->bp_ifindex != 0);
	case SKF_AD_RXHASH:
		*a = bp->bp_flow;
		return (true);
	case SKF_AD_ALU_XOR_X:
		*a ^= x;
		return (true);
	case SKF_AD_RANDOM:
		mach_random(&random, sizeof(random));
		*a = random;
		return (true);
	default:
		/* to this host, without mark, queue or VLAN */
		*a = 0;
		return (ancillary_known(k));
	}
}

/* Loads size bytes; false: they lie outside the packet. */
static bool
load(const struct bpf_packet *bp, uint32_t k, uint32_t size, uint32_t *value)
{
	const int64_t off = (int32_t)k;
	int64_t at = off + bp->bp_off;
	unsigned char bytes[4];

	if (off >= SKF_NET_OFF && off < 0 && bp->bp_protocol != 0)
		at = off - SKF_NET_OFF;		/* from the IP header on */
	else if (off < 0)
		return (false);
	if (at + size > (int64_t)bp->bp_off + bp->bp_len)
		return (false);
	m_copydata(bp->bp_m, (uint32_t)at, size, bytes);
	*value = 0;
	for (uint32_t i = 0; i < size; i++)
		*value = *value << 8 | bytes[i];
	return (true);
}

static uint32_t
size_of(uint16_t code)
{
	return (BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1);
}

/* False: division by zero. */
static bool
alu(uint16_t op, uint32_t *a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		*a += b;
		break;
	case BPF_SUB:
		*a -= b;
		break;
	case BPF_MUL:
		*a *= b;
		break;
	case BPF_DIV:
		if (b == 0)
			return (false);
		*a /= b;
		break;
	case BPF_MOD:
		if (b == 0)
			return (false);
		*a %= b;
		break;
	case BPF_OR:
		*a |= b;
		break;
	case BPF_AND:
		*a &= b;
		break;
	case BPF_XOR:
		*a ^= b;
		break;
	case BPF_LSH:
		*a <<= b & 31;
		break;
	case BPF_RSH:
		*a >>= b & 31;
		break;
	case BPF_NEG:
		*a = -*a;
		break;
	}
	return (true);
}

static bool
jumps(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_JEQ:
		return (a == b);
	case BPF_JGT:
		return (a > b);
	case BPF_JGE:
		return (a >= b);
	default:
		return ((a & b) != 0);		/* BPF_JSET */
	}
}

/* Registers and scratch memory of a program that runs. */
struct bpf_state {
	uint32_t	 a, x;
	uint32_t	 mem[BPF_MEMWORDS];
};

/* BPF_LD and BPF_LDX; false: outside the packet. */
static bool
run_load(const struct sock_filter *in, const struct bpf_packet *bp,
    struct bpf_state *s)
{
	uint32_t *to = BPF_CLASS(in->code) == BPF_LD ? &s->a : &s->x;

	switch (BPF_MODE(in->code)) {
	case BPF_IMM:
		*to = in->k;
		return (true);
	case BPF_MEM:
		*to = s->mem[in->k];
		return (true);
	case BPF_LEN:
		*to = bp->bp_len;
		return (true);
	case BPF_MSH:
		if (!load(bp, in->k, 1, to))
			return (false);
		*to = (*to & 0xf) << 2;
		return (true);
	case BPF_ABS:
		if (in->k >= (uint32_t)SKF_AD_OFF)
			return (ancillary(bp, in->k, s->x, to));
		return (load(bp, in->k, size_of(in->code), to));
	default:
		return (load(bp, in->k + s->x, size_of(in->code), to));
	}
}

uint32_t
bpf_run(const struct sock_filter *in, const struct bpf_packet *bp)
{
	struct bpf_state s = { .a = 0 };
	uint32_t b;

	for (;; in++) {
		b = BPF_SRC(in->code) == BPF_X ? s.x : in->k;
		switch (BPF_CLASS(in->code)) {
		case BPF_LD:
		case BPF_LDX:
			if (!run_load(in, bp, &s))
				return (0);
			break;
		case BPF_ST:
			s.mem[in->k] = s.a;
			break;
		case BPF_STX:
			s.mem[in->k] = s.x;
			break;
		case BPF_ALU:
			if (!alu(BPF_OP(in->code), &s.a, b))
				return (0);
			break;
		case BPF_JMP:
			if (BPF_OP(in->code) == BPF_JA)
				in += in->k;
			else
				in += jumps(BPF_OP(in->code), s.a, b) ?
				    in->jt : in->jf;
			break;
		case BPF_RET:
			return (BPF_RVAL(in->code) == BPF_A ? s.a : in->k);
		default:
			if (BPF_MISCOP(in->code) == BPF_TAX)
				s.x = s.a;
			else
				s.a = s.x;
			break;
		}
	}
}
