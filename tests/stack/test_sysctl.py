# SPDX-License-Identifier: BSD-2-Clause
"""The sysctl that replaces the host's: Linux's names and the stack's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.topology import Installed

WAIT = 60


class Stack:
    """Boot a stack without a device, and run the program that queries it."""

    def __init__(self, installed: Installed, folder: Path) -> None:
        self.program = installed.prefix / "libexec" / "stack" / "sysctl"
        self.control = folder / "ctl"
        conf = folder / "loader.conf"
        conf.write_text(f'ctl.path="{self.control}"\n')
        bootstack = installed.prefix / "bin" / "bootstack"
        self.process = subprocess.Popen([bootstack, "-c", conf], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        while (line := self.process.stderr.readline()) != "stack: up\n":
            assert line, "the stack does not boot"

    def sysctl(self, *args: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "STACK_CTL": str(self.control)}
        return subprocess.run(
            [self.program, *args], env=environment, capture_output=True, text=True, timeout=WAIT, check=False
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=WAIT)


@pytest.fixture
def stack(installed: Installed, tmp_path: Path) -> Iterator[Stack]:
    booted = Stack(installed, tmp_path)
    yield booted
    booted.stop()


def test_linux_names_are_ours_in_other_units(stack: Stack) -> None:
    assert stack.sysctl("net.ipv4.tcp_keepalive_time").stdout == "net.ipv4.tcp_keepalive_time = 7200\n"
    assert stack.sysctl("-q", "-w", "net/ipv4/tcp_keepalive_time=100").stdout == ""
    assert stack.sysctl("-n", "net.inet.tcp.keepidle").stdout == "100000\n"
    stack.sysctl("net.ipv4.tcp_rto_min_us=5000")
    assert stack.sysctl("net.inet.tcp.rexmit_min").stdout == "net.inet.tcp.rexmit_min = 5\n"


def test_names_with_several_values(stack: Stack) -> None:
    assert stack.sysctl("net.ipv4.tcp_rmem=4096 540000 15728640").returncode == 0
    assert stack.sysctl("-n", "net.ipv4.tcp_rmem").stdout == "4096\t540000\t15728640\n"
    assert stack.sysctl("-n", "net.inet.tcp.recvspace", "net.inet.tcp.recvbuf_max").stdout == "540000\n15728640\n"


def test_words_and_truth(stack: Stack) -> None:
    assert stack.sysctl("net.ipv4.tcp_congestion_control=reno", "net.ipv4.tcp_timestamps=2").returncode == 0
    assert stack.sysctl("-n", "net.inet.tcp.cc.algorithm", "net.inet.tcp.timestamps").stdout == "newreno\n1\n"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("net.ipv4.tcp_frto=2", "unknown sysctl"),
        ("net.inet.tcp.nothing", "unknown name"),
        ("net.ipv4.tcp_keepalive_probes=1000", "is not a number from 1 to 127"),
        ("net.ipv4.tcp_sack=1 1", "has 1 values"),
    ],
)
def test_what_cannot_be_done_is_reported(stack: Stack, argument: str, message: str) -> None:
    done = stack.sysctl(argument)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stdout == ""


def test_unknown_names_may_be_passed_over(stack: Stack) -> None:
    done = stack.sysctl("-e", "net.ipv4.tcp_frto=2", "net.ipv4.tcp_sack")
    assert (done.returncode, done.stdout, done.stderr) == (0, "net.ipv4.tcp_sack = 1\n", "")


def test_knobs_of_what_the_stack_does_not_do_change_nothing(stack: Stack) -> None:
    done = stack.sysctl("net.ipv4.tcp_tso_win_divisor=4")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nor anything that it would change" in done.stderr
    assert stack.sysctl("net.ipv4.tcp_tso_win_divisor").returncode != 0


def test_nobody_there(stack: Stack) -> None:
    stack.control = stack.control.with_name("nowhere")
    done = stack.sysctl("net.ipv4.tcp_sack")
    assert done.returncode == 69
    assert "check that the stack runs" in done.stderr
