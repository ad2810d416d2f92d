# SPDX-License-Identifier: BSD-2-Clause
"""What a patch costs the Linux kernel, counted instead of measured (docs/explanation/counted.md).

- sources: a base and its patches become trees in a work tree of this lane.
- make: make(1) builds a kernel of a directory of sources; for the service, in a sandbox.
- build: a tree becomes a kernel, once for each content.
- programs: the compiler, the guest's program and QEMU's plugin, compiled once for each content.
- boot: a kernel boots in QEMU and runs all loads, while the plugin counts.
- lane: these programs as an archive, for hosts of the service; sample: a boot there.
- console: the line of a console that names why a kernel failed.
- loads: the names of loads and their units.
- counts: what the plugin counted, by function.
- comparison: the functions whose counts differ, and a verdict for each load.
- table: the comparison in words and numbers.
- page: the comparison as one HTML file.

Every result here is *counted*: exact numbers of instructions, and no time.
"""
