# SPDX-License-Identifier: BSD-2-Clause
"""Measures one CPU of the host itself, without any network: a compiler and a compressor on a fixed text, similar to a
kernel build. If this differs between two runs, so does the host.

The compiler is Python's, because every host of playbooks has one.
"""

import re

from perfweb.measuring.tools.base import ToolError, Value, positive
from perfweb.runs.catalogue import Measure

_PROGRAM = """\
import sys, time, zlib
part = '''
def work_{0}(values, most={0}):
    found = {{}}
    for place, value in enumerate(values):
        if value % 7 == {0} % 7 and place < most:
            found[value] = [other for other in values[place:] if other != value]
    return sorted(found.items(), key=lambda pair: (len(pair[1]), pair[0]))
'''
text = ''.join(part.format(number) for number in range(40))
rounds, begun = 0, time.monotonic()
while (spent := time.monotonic() - begun) < float(sys.argv[1]):
    compile(text, 'text', 'exec')
    zlib.compress(text.encode(), 9)
    rounds += 1
print(f'rounds: {rounds} seconds: {spent:.6f}')
"""
_LINE = re.compile(r"^rounds: (?P<rounds>\d{1,12}) seconds: (?P<seconds>\S+)$", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    return ["python3", "-I", "-S", "-c", _PROGRAM, str(seconds)]


def parse(output: str) -> list[Value]:
    """Parse rounds per second from the line `rounds: N seconds: S`."""
    found = _LINE.search(output)
    if found is None:
        raise ToolError("the check of the CPU printed no rounds")
    rate = positive(found["rounds"], "number of rounds") / positive(found["seconds"], "time of the rounds")
    return [Value("rounds", positive(rate, "rounds/s"), "rounds/s", "higher")]
