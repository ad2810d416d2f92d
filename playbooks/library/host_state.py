#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Records the network settings of a host that a run can change, and checks later that they are the same.

Sysctls that differ at the end are reset, because moving a link between network namespaces gives it the new namespace's
defaults. Any other difference is a failure that names it. The record stays until a later check finds no difference.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.linux import (
    DEVICES,
    KINDS,
    OFFLOADS,
    STEERING,
    SettingError,
    offloads,
    qdiscs,
    run,
    settings_of,
    sysctls,
)
from ansible.module_utils.linux import SYSCTL as SYSCTL_NAME
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.remembered import damaged, forget, texts, write_durably
from ansible.module_utils.tunnels import INTERFACE

DOCUMENTATION = """
module: host_state
short_description: record the state of a host's network, or prove that it is as recorded
options:
  state:
    description: C(recorded) takes the record, in place of an older one; C(proven) compares, and ends it.
    choices: [recorded, proven]
    required: true
  links:
    description: The data links.
    type: list
    elements: str
    required: true
  namespace:
    description: A file that is a network namespace while a stack has the links.
    type: path
    required: true
  record:
    description: The file of the record.
    type: path
    required: true
"""

RETURN = """
put_back:
  description: Sysctls that were set to what they had been.
  type: list
proven:
  description: Whether there was a record to compare with.
  type: bool
"""

SYSCTL = "sysctl "
ABSENT = "not there"
MOST_DIFFERENCES = 20
"""Max number of differences named in a failure."""


def state_of(links: Sequence[str], namespace: Path) -> dict[str, str]:
    """What a run can change: names and values."""
    made = {"network namespace of a stack": namespace, f"tunnel {INTERFACE}": DEVICES / INTERFACE}
    found = {name: "there" if path.exists() else ABSENT for name, path in made.items()}
    for link in links:
        try:
            found |= {f"{name} of {link}": value for name, value in link_state(link).items()}
        except SettingError:
            found[f"link {link}"] = ABSENT
    return {**found, **{SYSCTL + name: value for name, value in sysctls(links).items()}}


def link_state(link: str) -> dict[str, str]:
    """Returns the settings of a link that can change. Raises SettingError if the link does not exist."""
    features = offloads(link)
    steered = [setting for name in STEERING for setting in settings_of(f"link.{name}", [link])]
    added = [{**qdisc, "refcnt": 0} for qdisc in qdiscs(link) if qdisc["handle"] != "0:"]
    return {
        "mtu": KINDS["mtu"]("mtu", link).read(),
        **{f"offload {name}": features[long].state for name, long in OFFLOADS.items() if long in features},
        **{setting.name: _value(setting) for setting in steered},
        "qdiscs": json.dumps(added, sort_keys=True),
        "filters": "".join(run("tc", "filter", "show", "dev", link, way) for way in ("ingress", "egress")).strip(),
        "addresses": _addresses(link),
        "routes": _routes(link),
    }


def _value(setting: Any) -> str:
    try:
        value: str = setting.read()
    except SettingError:  # a link with one transmit queue has no choice of queue
        return ABSENT
    return value


def _addresses(link: str) -> str:
    """Returns the addresses of a link, without link-local ones, which the kernel adds and removes by itself."""
    shown = json.loads(run("ip", "-j", "address", "show", "dev", link))[0]["addr_info"]
    found = [f"{address['local']}/{address['prefixlen']}" for address in shown if address["scope"] != "link"]
    return " ".join(sorted(found)) or "none"


_KEPT = ("gateway", "prefsrc", "protocol", "metric")


def _routes(link: str) -> str:
    """Returns the routes of a link, without flags and link-local routes, which depend on the link's carrier."""
    found = []
    for family in ("-4", "-6"):
        for route in json.loads(run("ip", "-j", family, "route", "show", "dev", link) or "[]"):
            kept = (f"{key} {route[key]}" for key in _KEPT if key in route)
            found.append(" ".join([route["dst"], *kept]))
    return "; ".join(sorted(route for route in found if not route.startswith("fe80:"))) or "none"


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names of recorded settings that differ now; additional ones came with a kernel module and do not count."""
    return [name for name, value in before.items() if now.get(name, ABSENT) != value]


def set_sysctls(names: Sequence[str], before: Mapping[str, str]) -> list[str]:
    """Resets those of the names that are sysctls, as far as possible."""
    done = []
    for name in (name.removeprefix(SYSCTL) for name in names if name.startswith(SYSCTL)):
        with contextlib.suppress(SettingError, OSError):
            KINDS["sysctl"](name).write(before[SYSCTL + name])
            done.append(name)
    return done


def recorded(record: Path) -> dict[str, str] | None:
    """Returns the contents of a record, None if there is none.

    Raises ValueError, with what to do, for a damaged one.
    """
    before: dict[str, str] | None = texts(record)
    if before is not None and not all(map(_is_recorded, before, before.values())):
        raise damaged(record)
    return before


def _is_recorded(name: str, value: str) -> bool:
    """Returns whether `state_of` could have made such an entry."""
    if name.startswith(SYSCTL):
        return re.fullmatch(SYSCTL_NAME, name[len(SYSCTL) :], re.ASCII) is not None
    return name.isascii() and name.isprintable() and len(name) < 200 and len(value) < 65_536


def prove(module: Module, record: Path) -> dict[str, Any]:
    """Compares with the record and removes it. Fails the module if something differs."""
    before = recorded(record)
    if before is None:
        return {"changed": False, "proven": False, "put_back": []}
    links, namespace = module.params["links"], Path(module.params["namespace"])
    now = state_of(links, namespace)
    differing, done = differences(before, now), []
    if differing and not module.check_mode:
        done = set_sysctls(differing, before)
        now = state_of(links, namespace)
        differing = differences(before, now)
    if differing:
        named = [f"{name} is {now.get(name, ABSENT)} and was {before[name]}" for name in differing[:MOST_DIFFERENCES]]
        more = f"; and {len(differing) - len(named)} more" if len(differing) > len(named) else ""
        module.fail_json(msg=f"the host is not as it was before the run: {'; '.join(named)}{more}", put_back=done)
    if not module.check_mode:
        forget(record)
    return {"changed": bool(done), "proven": True, "put_back": done}


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "state": {"required": True},
            "links": {"required": True},
            "namespace": {"required": True},
            "record": {"required": True},
        },
        supports_check_mode=True,
    )
    record = Path(checked(module, "host_state")["record"])
    result: dict[str, Any] = {"changed": False}
    try:
        if module.params["state"] == "proven":
            result = prove(module, record)
        elif not module.check_mode:
            state = state_of(module.params["links"], Path(module.params["namespace"]))
            write_durably(record, json.dumps(state))
    except (SettingError, OSError, ValueError) as error:
        module.fail_json(msg=f"the state of this host is unknown: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
