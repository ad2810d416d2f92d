# SPDX-License-Identifier: BSD-2-Clause
"""Reading testbeds out of Ansible inventories, with Ansible."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from perfweb.lab import services
from perfweb.lab.inventory import InventoryError, read_inventory
from perfweb.lab.models import Host, Testbed
from perfweb.lab.origins import Origin

GOOD = """\
all:
  vars: {cpus: [0]}
  children:
    left: {hosts: {l: {ansible_host: 192.0.2.1, data_links: [{interface: a, address: 198.51.100.1/24}]}}}
    dut:
      hosts:
        d:
          cpus: [1, 2]
          data_links: [{interface: a, address: 198.51.100.2/24}, {interface: b, address: 203.0.113.2/24}]
    right: {hosts: {r: {data_links: [{interface: a, address: 203.0.113.3/24}]}}}
"""

SIMULATOR = "dut: {hosts: {d: {data_links: []}}}"


def written(folder: Path, text: str) -> Path:
    path = folder / "inventory.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_hosts_with_their_own_and_common_variables(tmp_path: Path) -> None:
    hosts = read_inventory(written(tmp_path, GOOD))
    assert hosts["left"].address == "192.0.2.1"
    assert hosts["left"].cpus == "0"
    assert (hosts["dut"].cpus, hosts["dut"].cpus_alone) == ("1,2", "1,2")
    alone = read_inventory(written(tmp_path, GOOD.replace("[1, 2]", "[1, 2]\n          cpus_alone: [0, 1, 2]")))
    assert (alone["dut"].cpus, alone["dut"].cpus_alone) == ("1,2", "0,1,2")
    assert hosts["dut"].data_addresses == ("198.51.100.2", "203.0.113.2")
    assert (hosts["right"].name, hosts["right"].address) == ("r", "r")


def test_addresses_of_both_families(tmp_path: Path) -> None:
    hosts = read_inventory(written(tmp_path, GOOD.replace("/24}", "/24, address6: 'fd00::7/64'}")))
    assert hosts["dut"].data_addresses6 == ("fd00::7", "fd00::7")
    assert (hosts["left"].data_address("ipv4"), hosts["left"].data_address("ipv6")) == ("198.51.100.1", "fd00::7")


def test_the_error_for_a_testbed_without_ipv6_states_it(tmp_path: Path) -> None:
    host = read_inventory(written(tmp_path, GOOD))["right"]
    with pytest.raises(InventoryError, match="host r has no ipv6: give each of its data_links an address6"):
        host.data_address("ipv6")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "group 'left' has 0 hosts"),
        (GOOD.replace("left: {", "lft: {"), "group 'left' has 0 hosts"),
        (GOOD.replace("l: {", "x: {}, l: {"), "group 'left' has 2 hosts"),
        (GOOD.replace(", {interface: b, address: 203.0.113.2/24}", ""), "host d needs data_links with 2 entries"),
        (GOOD.replace("198.51.100.1/24", "elsewhere"), "host l has a bad address"),
        (GOOD.replace("address: 198.51.100.1/24", "adress: 1"), "host l has a bad address"),
        (GOOD.replace("address: 198.51.100.1/24", "address: 'fd00::1/64'"), "host l has a bad address"),
        (GOOD.replace("203.0.113.2/24", "203.0.113.2/24, address6: 'fd00::1/64'"), "host d has an address6 on some"),
    ],
)
def test_what_is_missing_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InventoryError, match=problem):
        read_inventory(written(tmp_path, text))


def test_words_for_the_command_line_are_the_testbeds(tmp_path: Path) -> None:
    assert read_inventory(written(tmp_path, GOOD))["dut"].command_line_words is None
    own = GOOD.replace("cpus: [1, 2]", "cpus: [1, 2]\n          command_line_words: [mitigations, debug_x]")
    assert read_inventory(written(tmp_path, own))["dut"].command_line_words == ("mitigations", "debug_x")
    for words in ("mitigations", "[1]", "{mitigations: 1}"):
        with pytest.raises(InventoryError, match="command_line_words of host d"):
            read_inventory(written(tmp_path, own.replace("[mitigations, debug_x]", words)))


@pytest.mark.django_db
def test_registering_keeps_the_words_and_forgets_them(tmp_path: Path) -> None:
    own = GOOD.replace("cpus: [1, 2]", "cpus: [1, 2]\n          command_line_words: [mitigations]")
    call_command("register_testbed", "own", inventory=written(tmp_path, own))
    assert Testbed.objects.get(name="own").command_line_words == ["mitigations"]
    for words in ("init", "rd.break", "mitigations=off"):
        with pytest.raises(CommandError, match="command_line_words of dut"):
            call_command(
                "register_testbed", "own", inventory=written(tmp_path, own.replace("[mitigations]", f"[{words}]"))
            )
    assert Testbed.objects.get(name="own").command_line_words == ["mitigations"]
    call_command("register_testbed", "own", inventory=written(tmp_path, GOOD))
    assert Testbed.objects.get(name="own").command_line_words is None


def test_dut_alone_simulates(tmp_path: Path) -> None:
    hosts = read_inventory(written(tmp_path, SIMULATOR))
    assert {role: host.name for role, host in hosts.items()} == {"dut": "d"}
    assert hosts["dut"].data_addresses == ()
    with pytest.raises(InventoryError, match="host d needs data_links with 0 entries"):
        read_inventory(written(tmp_path, SIMULATOR.replace("[]", "[{interface: a, address: 198.51.100.2/24}]")))


@pytest.mark.django_db
def test_a_testbed_that_simulates_never_measures(tmp_path: Path) -> None:
    assert services.register("sim", written(tmp_path, SIMULATOR)).origin == Origin.SIMULATED
    assert services.register("sim", written(tmp_path, SIMULATOR)).origin == Origin.SIMULATED
    with pytest.raises(InventoryError, match=r"testbed sim simulates, and .* is of one that measures: "):
        services.register("sim", written(tmp_path, GOOD))
    assert Host.objects.count() == 1


@pytest.mark.django_db
def test_dut_alone_counts_if_its_inventory_has_that(tmp_path: Path) -> None:
    counter = SIMULATOR.replace("data_links: []", "data_links: [], counts: true")
    assert services.register("counted", written(tmp_path, counter)).origin == Origin.COUNTED
    with pytest.raises(InventoryError, match=r"testbed counted counts, and .* is of one that simulates: "):
        services.register("counted", written(tmp_path, SIMULATOR))
    for wrong in (counter.replace("true", "3"), GOOD.replace("cpus: [1, 2]", "cpus: [1, 2]\n          counts: true")):
        with pytest.raises(InventoryError, match=r"has counts: .*; it is true for dut alone"):
            read_inventory(written(tmp_path, wrong))


def test_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="no such inventory"):
        read_inventory(tmp_path / "missing.yml")


@pytest.mark.django_db
def test_registering_again_updates(tmp_path: Path) -> None:
    services.register("bench", written(tmp_path, GOOD))
    services.register("bench", written(tmp_path, GOOD.replace("192.0.2.1", "192.0.2.9")))
    assert Host.objects.count() == 3
    assert Host.objects.get(role="left").address == "192.0.2.9"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "two words", "../up", "a" * 51])
def test_name_of_a_testbed_is_checked(tmp_path: Path, name: str) -> None:
    with pytest.raises(InventoryError, match="is no name for a testbed"):
        services.register(name, written(tmp_path, GOOD))
