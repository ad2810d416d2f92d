# SPDX-License-Identifier: BSD-2-Clause
"""Settings of a Linux host: their names, their forms, and the errors for those that this machine does not have."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playbooks.module_utils import linux
from playbooks.module_utils.linux import Mtu, Offload, Qdisc, SettingError, Steering, Sysctl

CPUS = st.sets(st.integers(0, 300), max_size=40)
SHOWN = """\
Features for data0:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
tcp-segmentation-offload: off
	tx-tcp-segmentation: off [requested on]
generic-receive-offload: off
large-receive-offload: off [fixed]
"""


@given(CPUS)
def test_cpus_come_back_from_their_forms(cpus: set[int]) -> None:
    assert linux.parse_cpus(linux.cpu_list(cpus)) == cpus
    assert linux.mask_cpus(linux.cpu_mask(cpus)) == cpus


def test_forms_of_cpus() -> None:
    assert linux.cpu_list({3, 0, 1, 8}) == "0-1,3,8"
    assert linux.cpu_list(set()) == "none"
    assert linux.cpu_mask({0, 33}) == "00000002,00000001"
    assert linux.mask_cpus("00000002,00000001\n") == {0, 33}
    assert Steering("rx-0/rps_cpus", "data0").canonical("1,0") == "0-1"
    with pytest.raises(SettingError, match="is no list of CPUs: use one such as 0-3,8"):
        linux.parse_cpus("all")


def test_offloads_as_ethtool_shows_them() -> None:
    found = linux.parse_offloads(SHOWN)
    assert (found["rx-checksumming"].state, found["rx-checksumming"].fixed) == ("on", False)
    assert (found["large-receive-offload"].state, found["large-receive-offload"].fixed) == ("off", True)
    assert found["tcp-segmentation-offload"].state == "off"


def test_whose_a_knob_is() -> None:
    knobs = {"net.ipv4.tcp_sack": "0", "left.net.ipv4.tcp_sack": "1", "right.link.mtu": "1400", "link.mtu": "1500"}
    assert linux.own(knobs, ["dut"]) == {"net.ipv4.tcp_sack": "net.ipv4.tcp_sack", "link.mtu": "link.mtu"}
    assert linux.own(knobs, ["left"]) == {"left.net.ipv4.tcp_sack": "net.ipv4.tcp_sack"}
    assert set(linux.own(knobs, ["left", "right"])) == {"left.net.ipv4.tcp_sack", "right.link.mtu"}


def test_a_knob_of_links_is_of_each_of_them() -> None:
    assert linux.settings_of("link.mtu", ["data0", "data1"]) == [Mtu("mtu", "data0"), Mtu("mtu", "data1")]
    assert linux.settings_of("link.offload.gro", ["data0"]) == [Offload("gro", "data0")]
    assert linux.settings_of("net.ipv4.tcp_sack", ["data0", "data1"]) == [Sysctl("net.ipv4.tcp_sack")]
    assert str(Offload("gro", "data0")) == "gro of data0"


@pytest.mark.parametrize("knob", ["link.nonsense", "link.offload.nonsense", "vm.swappiness", "offload.gro"])
def test_a_name_that_is_none(knob: str) -> None:
    with pytest.raises(SettingError, match="is no knob of Linux"):
        linux.settings_of(knob, ["data0"])


def test_a_queueing_discipline_is_known_again_by_its_words() -> None:
    one, other = (Qdisc("qdisc", "data0").canonical(f"tbf rate {rate} burst 64kb") for rate in ("1gbit", "2gbit"))
    assert one != other
    assert one == Qdisc("qdisc", "data0").canonical("tbf rate 1gbit burst 64kb")
    assert 0 < int(one.split()[1].rstrip(":"), 16) < 0x8000
    assert Qdisc("qdisc", "data0").canonical("default") == "default"


def test_a_sysctl_of_this_machine() -> None:
    assert Sysctl("net.ipv4.tcp_sack").read() in {"0", "1"}
    assert len(Sysctl("net.ipv4.tcp_rmem").read().split(" ")) == 3
    assert "net.ipv4.tcp_sack" in linux.sysctls([])
    assert not any(name.startswith("net.ipv4.conf.lo.") for name in linux.sysctls([]))
    assert "net.ipv4.conf.lo.rp_filter" in linux.sysctls(["lo"])


def test_a_sysctl_that_is_none_is_reported_with_one_that_is() -> None:
    with pytest.raises(SettingError, match=r"no sysctl net.ipv4.tcp_sak \(did you mean net.ipv4.tcp_sack\?\)"):
        Sysctl("net.ipv4.tcp_sak").read()


def test_an_interface_that_is_not_there() -> None:
    for setting in (Mtu("mtu", "none"), Offload("gro", "none"), Qdisc("qdisc", "none")):
        with pytest.raises(SettingError):
            setting.read()


def test_no_secret_and_no_order_is_a_setting() -> None:
    found = linux.sysctls(os.listdir("/sys/class/net"))
    assert not [name for name in found if name.endswith(("_key", "_secret", ".flush"))]
