/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The entry by Xen's PVH protocol (docs/misc/pvh.pandoc in Xen), in 32 bits and
 * without paging: maps the first gigabyte at 0 and at VIRT, as Linux does, and
 * calls kernel_main() in 64 bits.
 */
#define VIRT	0xffffffff80000000
#define PHYS32_ENTRY	18

	.section .note.Xen, "a", @note
	.long	4, 4, PHYS32_ENTRY
	.asciz	"Xen"
	.long	start - VIRT

	.text
	.code32
	.globl	start
start:
	cld
	movl	$(directory - VIRT), %edi
	movl	$0x83, %eax		/* a page of 2 MB, writable, present */
	movl	$512, %ecx
1:	movl	%eax, (%edi)
	movl	$0, 4(%edi)
	addl	$0x200000, %eax
	addl	$8, %edi
	loop	1b
	movl	$(pointers - VIRT + 3), %eax
	movl	%eax, top - VIRT
	movl	%eax, top - VIRT + 511 * 8
	movl	$(directory - VIRT + 3), %eax
	movl	%eax, pointers - VIRT
	movl	%eax, pointers - VIRT + 510 * 8
	movl	$(top - VIRT), %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$0x20, %eax		/* PAE */
	movl	%eax, %cr4
	movl	$0xc0000080, %ecx	/* EFER.LME */
	rdmsr
	orl	$0x100, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000001, %eax	/* paging, protection */
	movl	%eax, %cr0
	lgdt	gdt_register - VIRT
	ljmp	$8, $(start64 - VIRT)

	.code64
start64:
	movabsq	$high, %rax
	jmp	*%rax
high:
	movq	$stack_end, %rsp
	xorl	%eax, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	call	kernel_main
	hlt

	.data
	.balign	8
gdt:	.quad	0, 0x00af9a000000ffff	/* code of 64 bits */
gdt_register:
	.word	15
	.long	gdt - VIRT

	.bss
	.balign	4096
top:	.skip	4096
pointers:
	.skip	4096
directory:
	.skip	4096
	.skip	16384
stack_end:
