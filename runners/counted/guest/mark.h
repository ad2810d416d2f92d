/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The marks of a window, as the plugin finds them in the guest's code: NOPs of
 * seven bytes, nopl DISPLACEMENT(%rax), with a displacement that no compiler
 * generates (Intel SDM, volume 2, NOP).
 */
#define MARK_SIZE	7
#define MARK_BEGIN	"\x0f\x1f\x80\x01WFP"
#define MARK_END	"\x0f\x1f\x80\x02WFP"

#define mark_begin()							\
	__asm__ volatile(".byte 0x0f,0x1f,0x80,1,'W','F','P'" ::: "memory")
#define mark_end()							\
	__asm__ volatile(".byte 0x0f,0x1f,0x80,2,'W','F','P'" ::: "memory")
