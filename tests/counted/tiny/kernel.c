/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A kernel that prints what a guest of the counted lane prints, and whose loads
 * are calls of one function, so that a test needs no build of Linux.
 */
#define UNITS	100
#define WINDOWS	4

#define mark(which)							\
	__asm__ volatile(".byte 0x0f,0x1f,0x80," #which ",'W','F','P'" ::: "memory")

static const char *const loads[] = {
	"tcp.rr/local", "tcp.rr/routed", "udp.rr/local", "udp.rr/routed",
	"tcp.stream/local", "tcp.stream/routed", "tcp.connect/local",
	"udp.forward/routed",
};
static volatile unsigned long received;

static void
print(const char *text)
{
	for (; *text != '\0'; text++)
		__asm__ volatile("outb %0, %1" :: "a"(*text),
		    "Nd"((unsigned short)0x3f8));
}

/* Ends QEMU, which does not boot again: an exception without a handler. */
static void
reset(void)
{
	static const struct { unsigned short limit; unsigned long base; }
	    __attribute__((packed)) none;

	__asm__ volatile("lidt %0; int3" :: "m"(none));
}

void
panic(const char *why)
{
	print("Kernel panic - not syncing: ");
	print(why);
	print("\n");
	reset();
}

__attribute__((noinline)) void
tcp_v4_rcv(void)
{
	received++;
}

void
kernel_main(void)
{
	unsigned load, window, unit;

	print("counted: up\n");
	for (load = 0; load < 2 * sizeof(loads) / sizeof(loads[0]); load++)
		for (window = 0; window < WINDOWS; window++) {
			mark(1);
			for (unit = 0; unit < UNITS; unit++)
				tcp_v4_rcv();
			mark(2);
			print("counted: window counted.");
			print(loads[load / 2]);
			print(load % 2 == 0 ? "/ipv4" : "/ipv6");
			print(" 100\n");
		}
	print("counted: done\n");
	reset();
}
