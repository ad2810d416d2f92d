#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sets the network knobs of a Linux host to the values of a variant, and resets all others.

A knob that an earlier variant set and this one does not is reset to its value before the first change. A file records
those values; it is written before anything is changed. So a variant without knobs undoes all changes, even if an
earlier module was killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils import congestion
from ansible.module_utils.linux import Setting, SettingError, link_knobs, own, settings_of, sysctls
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.remembered import Change, Memory

DOCUMENTATION = """
module: linux_knobs
short_description: set the knobs of a Linux host that a variant has, and put back all others
options:
  knobs:
    description: Names and values as in a plan (docs/reference/linux.md). Without it everything is restored.
    type: dict
  roles:
    description: What this host is, of C(left), C(dut) and C(right).
    type: list
    elements: str
    required: true
  links:
    description: Its data links.
    type: list
    elements: str
    required: true
  machine:
    description: A file that is the first network namespace of the machine, where this host is another one of it.
    type: str
    default: ""
  memory:
    description: A file that keeps what was before.
    type: path
    required: true
"""

RETURN = """
effective:
  description: All knobs of the data links, and those of C(knobs), by the names that they have in a plan; of the device
    under test all sysctls of the network besides, but for those of single interfaces. Empty without C(knobs).
  type: dict
"""

OFFERED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


class Host:
    """Applies the settings to this host; with `dry` it writes nothing, and `changed` reports whether it would."""

    def __init__(self, memory: Memory, machine: str, *, dry: bool) -> None:
        self.memory = memory
        self.machine = machine
        self.dry = dry
        self.changed = False

    def apply(self, wanted: Mapping[Setting, str]) -> None:
        """Resets the settings that are not wanted and sets the others. Raises SettingError."""
        self.put_back([change for change in self.memory.changes if change.setting not in wanted])
        known = {change.setting for change in self.memory.changes}
        new = [Change(setting, setting.read()) for setting in wanted if setting not in known]
        for change in new:
            if objection := change.setting.objection():
                raise SettingError(objection)
        if new and not self.dry:
            self.memory.keep([*self.memory.changes, *new])
        for setting, value in wanted.items():
            self.make(setting, value)
        if not self.dry:
            self.check(wanted)

    def put_back(self, changes: Sequence[Change]) -> None:
        """Resets settings to their old values, the latest change first.

        It goes through them twice, because one setting may prevent another from changing. The settings of a link that
        is gone need no reset.
        """
        for _ in range(2):
            for change in reversed(changes):
                with contextlib.suppress(SettingError):
                    self.make(change.setting, change.before)
        if self.dry:
            return
        left = list(_different({change.setting: change.before for change in changes}))
        if left:
            raise SettingError(f"not put back: {'; '.join(left)}")
        if changes:
            self.memory.keep([change for change in self.memory.changes if change not in changes])

    def make(self, setting: Setting, value: str) -> None:
        """Sets the settings that differ."""
        if setting.read() == setting.canonical(value):
            return
        self.changed = True
        if not self.dry:
            with _permission(setting, value, self.machine):
                setting.write(value)

    def check(self, wanted: Mapping[Setting, str]) -> None:
        """Raises SettingError if a setting does not have the wanted value: some settings change others."""
        if wrong := list(_different({setting: setting.canonical(value) for setting, value in wanted.items()})):
            raise SettingError(f"{'; '.join(wrong)}: the kernel or another knob of the variant keeps it so")


def _different(wanted: Mapping[Setting, str]) -> Iterator[str]:
    """Describes the difference between the wanted values and those that `read` returns."""
    for setting, value in wanted.items():
        with contextlib.suppress(SettingError):
            if (now := setting.read()) != value:
                yield f"{setting} is {now} and not {value}"


@contextlib.contextmanager
def _permission(setting: Setting, value: str, machine: str) -> Iterator[None]:
    """Allows a congestion control temporarily where this host is a namespace that may not choose any."""
    chosen = setting.name == "net.ipv4.tcp_congestion_control" and value in OFFERED.read_text(encoding="ascii").split()
    if not (machine and chosen):
        yield
        return
    try:
        with congestion.allowed(value, machine):
            yield
    except OSError as error:
        raise SettingError(f"{setting}: the machine does not allow {value} here ({error})") from None


def wanted_settings(knobs: Mapping[str, str], links: Sequence[str]) -> dict[Setting, str]:
    """Returns each setting of the knobs, whose names are without the host, with its value."""
    return {setting: value for knob, value in knobs.items() for setting in settings_of(knob, links)}


def effective(knobs: Mapping[str, str], roles: Sequence[str], links: Sequence[str]) -> dict[str, str]:
    """Returns the effective values, by the names of a plan."""
    prefix = "" if "dut" in roles else f"{roles[0]}."
    values = {prefix + knob: value for knob in link_knobs() if (value := _shown(knob, links))}
    if "dut" in roles:
        values |= {name: value for name, value in sysctls([]).items() if ".conf." not in name and ".neigh." not in name}
    return {**values, **knobs}


def _shown(knob: str, links: Sequence[str]) -> str:
    """Returns the values of a knob of data links, each once; empty where they have no such setting."""
    try:
        return " ".join(dict.fromkeys(setting.read() for setting in settings_of(knob, links)))
    except SettingError:
        return ""


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "knobs": {},
            "roles": {"required": True},
            "links": {"required": True},
            "machine": {"default": ""},
            "memory": {"required": True},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = checked(module, "linux_knobs")
    roles, links = params["roles"], params["links"]
    try:
        congestion.put_back(params["machine"])
        knobs: dict[str, str] = params["knobs"] or {}
        ours = {name: (bare, knobs[name]) for name, bare in own(knobs, roles).items()}
        host = Host(Memory(params["memory"]), params["machine"], dry=module.check_mode)
        host.apply(wanted_settings(dict(ours.values()), links))
        wanted = {name: value for name, (_, value) in ours.items()}
        values = {} if params["knobs"] is None else effective(wanted, roles, links)
    except (SettingError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=host.changed, effective=values)


if __name__ == "__main__":
    main()
