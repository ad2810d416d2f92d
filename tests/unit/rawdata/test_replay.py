# SPDX-License-Identifier: BSD-2-Clause
"""A bundle is analysed again to the same verdicts, elsewhere and without a database; a hostile one is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfweb.rawdata.replay import tarwalk
from perfweb.rawdata.replay.analysis import analyse, differences
from perfweb.rawdata.replay.bundle import Bundle, read_bundle
from perfweb.rawdata.replay.tarwalk import BundleError
from perfweb.runs.models import Run, Sample
from tests.factories import create_knob_run, create_queued_run, create_run, create_watched_run, faster_later

ROOT = Path(__file__).resolve().parents[3]
DEMO_PLAN = ROOT / "perfweb" / "runs" / "plans" / "demo.yaml"
Contents = dict[str, bytes]

pytestmark = pytest.mark.django_db


@pytest.fixture
def bundle(client: Client, run: Run, tmp_path: Path) -> Path:
    """The archive of a run in which one test failed."""
    return save(client, run, tmp_path)


def save(client: Client, run: Run, folder: Path) -> Path:
    path = folder / f"run-{run.pk}.tar"
    path.write_bytes(client.get(reverse("reports:run-archive", args=[run.pk])).getvalue())
    return path


def contents(path: Path) -> Contents:
    """The members of a bundle, without the list of hashes."""
    with tarfile.open(path) as archive:
        files = {entry.name.partition("/")[2]: archive.extractfile(entry) for entry in archive}
        return {name: file.read() for name, file in files.items() if file and name != "SHA256SUMS"}


def pack(path: Path, members: Contents) -> Path:
    """A bundle of these members, with their hashes."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items())
    return pack_raw(path, {**members, "SHA256SUMS": sums.encode()})


def pack_raw(path: Path, members: Contents, change: Callable[[tarfile.TarInfo], None] | None = None) -> Path:
    data = io.BytesIO()
    for name, content in members.items():
        entry = tarfile.TarInfo(f"run-1/{name}")
        entry.size = len(content)
        if change:
            change(entry)
        data.write(entry.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512))
    path.write_bytes(data.getvalue() + bytes(1024))
    return path


def replay(path: Path) -> str:
    out = io.StringIO()
    call_command("replay", str(path), stdout=out)
    return out.getvalue()


def test_a_replayed_bundle_has_the_verdicts_of_its_run(bundle: Path, run: Run) -> None:
    text = replay(bundle)
    assert f"Run {run.pk} of testbed demo, seed 1: Direct against deferred dispatch" in text
    assert "direct against deferred, 95 % confidence: 1 failed, 5 faster" in text
    assert "6 verdicts: each of them, and each of their numbers to 12 digits, is the one in the bundle." in text


@pytest.mark.parametrize(
    "make",
    [
        create_knob_run,
        lambda: create_run(boots=1, samples=2),
        create_queued_run,
        create_watched_run,
        lambda: create_watched_run(order="aaaabbbb", level=faster_later, gain=1.0),
    ],
)
def test_any_run_can_be_replayed(client: Client, tmp_path: Path, make: Callable[[], Run]) -> None:
    """Several variants; too few samples; no measurements; boots that do not count; doubts."""
    run = make()
    if not run.variants.exists():
        run.variants.create(name="alone", position=0, target="linux")
        Run.objects.update(state="cancelled")
    assert "in the bundle." in replay(save(client, run, tmp_path))


def test_another_checkout_without_a_database_comes_to_the_same(bundle: Path, tmp_path: Path) -> None:
    """A copy of the program, as a separate process without a database."""
    checkout = tmp_path / "checkout"
    for part in ("perfweb", "playbooks"):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", checkout)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "perfweb.settings.development",
        "PERFWEB_VAR": str(tmp_path / "var"),
        "PERFWEB_PGHOST": str(tmp_path / "nobody"),
    }
    command = [sys.executable, "manage.py", "replay", str(bundle)]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 verdicts: each of them" in done.stdout
    members = contents(bundle)
    members["samples.csv"] = members["samples.csv"].replace(b"/s,higher,false,", b"/s,higher,true,", 1)
    command[-1] = str(pack(tmp_path / "other.tar", members))
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "base_n is 9 here and 10 in the bundle" in done.stderr


def test_every_other_verdict_or_number_is_reported(bundle: Path, tmp_path: Path) -> None:
    members = contents(bundle)
    rows = json.loads(members["verdicts.json"])
    rows[0]["verdict"] = "slower"
    rows[2]["change_low"] *= 1 + 1e-9
    rows[3]["more_boots"] = False
    rows[4]["test"] = "no/such/test"
    members["verdicts.json"] = json.dumps(rows).encode()
    with pytest.raises(CommandError) as caught:
        replay(pack(tmp_path / "changed.tar", members))
    text = str(caught.value)
    assert text.startswith("5 values differ:")
    assert f"{rows[0]['test']}, direct against deferred: verdict is 'faster' here and 'slower' in the bundle" in text
    assert f"{rows[2]['test']}, direct against deferred: change_low is " in text
    assert "no/such/test, direct against deferred: there is no verdict here" in text


def test_the_last_digits_of_another_library_do_not_matter(bundle: Path, tmp_path: Path) -> None:
    members = contents(bundle)
    rows = json.loads(members["verdicts.json"])
    for row in rows:
        for name, value in row.items():
            row[name] = (
                value * (1 + 1e-14) if isinstance(value, float) and name not in {"confidence", "margin"} else value
            )
    members["verdicts.json"] = json.dumps(rows).encode()
    assert "in the bundle." in replay(pack(tmp_path / "rounded.tar", members))


def test_what_cannot_be_measured_here_is_reported(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match=r"plan\.yaml of the bundle cannot be measured: line 1, column 1: plan lacks"
    ):
        call_command("replay", str(bundle), run=True, stdout=io.StringIO())
    members = contents(bundle) | {"plan.yaml": DEMO_PLAN.read_bytes()}
    with pytest.raises(CommandError, match="there is no testbed 'rack9'; registered: demo"):
        call_command("replay", str(pack(tmp_path / "x.tar", members)), run=True, testbed="rack9", stdout=io.StringIO())
    members["bundle.json"] = members["bundle.json"].replace(b'"patches": []', b'"patches": [{}]')
    with pytest.raises(CommandError, match="the bundle has 1 patches, which this program cannot apply yet"):
        call_command("replay", str(pack(tmp_path / "y.tar", members)), run=True, stdout=io.StringIO())


def refused(path: Path) -> str:
    with pytest.raises(BundleError) as caught:
        read_bundle(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../../etc/passwd", "a name is a relative path"),
        ("artefacts/../x", "a name is a relative path"),
        ("/etc/passwd", "a name is a relative path"),
        (".ssh/authorized_keys", "a name is a relative path"),
        ("a\\b", "a name is a relative path"),
        ("a\x1b[2Jb", "a name is a relative path"),
        ("plan.yaml/", "a name is a relative path"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    def rename(entry: tarfile.TarInfo) -> None:
        entry.name = name if name.startswith("/") else f"run-1/{name}"

    message = refused(pack_raw(tmp_path / "x.tar", {"bundle.json": b"{}"}, rename))
    assert reason in message
    assert "\x1b" not in message


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a character device"),
        (tarfile.BLKTYPE, "a block device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.XHDTYPE, "an extended header"),
        (tarfile.GNUTYPE_LONGNAME, "an extended header"),
        (tarfile.GNUTYPE_SPARSE, "of the unknown type"),
    ],
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes, word: str) -> None:
    def change(entry: tarfile.TarInfo) -> None:
        entry.type, entry.linkname = kind, "/etc/passwd"

    message = refused(pack_raw(tmp_path / "x.tar", {"bundle.json": b"{}"}, change))
    assert message.startswith(f"run-1/bundle.json is {word}")


def test_a_size_that_cannot_be_is_refused(tmp_path: Path) -> None:
    def claim(entry: tarfile.TarInfo) -> None:
        entry.size = 8**11 - 1

    message = refused(pack_raw(tmp_path / "x.tar", {"bundle.json": b"{}"}, claim))
    assert "bundle.json has a size of 8589934591 bytes in its header, but 1536 are left" in message


def test_limits_hold(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = contents(bundle)
    members["bundle.json"] += b" " * (5 << 20)
    assert "bundle.json has" in refused(pack(tmp_path / "long.tar", members))
    monkeypatch.setattr(tarwalk, "MOST_MEMBERS", 3)
    assert refused(bundle) == "there are more than 3 members"
    monkeypatch.setattr(tarwalk, "LARGEST_BUNDLE", 1000)
    assert "a bundle may have 1000" in refused(bundle)


def test_members_that_do_not_match_the_list_are_named(bundle: Path, tmp_path: Path) -> None:
    members = contents(bundle)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()).encode()
    other = {**members, "run.json": b"{}", "SHA256SUMS": sums}
    assert refused(pack_raw(tmp_path / "a.tar", other)).startswith("run.json differs from SHA256SUMS")
    assert (
        refused(pack_raw(tmp_path / "b.tar", {"new": b"", **members, "SHA256SUMS": sums})) == "new is not in SHA256SUMS"
    )
    fewer = {name: content for name, content in members.items() if name != "run.json"}
    missing = refused(pack_raw(tmp_path / "c.tar", {**fewer, "SHA256SUMS": sums}))
    assert missing == "run.json is in SHA256SUMS, but not in the bundle"
    assert refused(pack_raw(tmp_path / "d.tar", members)).startswith("SHA256SUMS is missing")


@pytest.mark.parametrize(
    ("member", "old", "new", "reason"),
    [
        ("bundle.json", b'"format": 1', b'"format": 2', "bundle.json has format 2; this program reads format 1"),
        (
            "bundle.json",
            b'"confidence": 95.0',
            b'"confidence": 94.0',
            "bundle.json confidence level 94 is not supported",
        ),
        ("bundle.json", b'"margin": 2.0', b'"margin": NaN', "bundle.json is not JSON: NaN is not a JSON number"),
        ("bundle.json", b'"number": ', b'"number": -', "bundle.json has -"),
        ("bundle.json", b'"name": "direct"', b'"name": "deferred"', "bundle.json names a variant twice"),
        ("bundle.json", b'"name": "direct"', b'"name": "\\u001b[2J"', "without control characters"),
        ("bundle.json", b'"name": "direct"', b'"name": "other"', "samples.csv has a variant 'direct', which"),
        ("bundle.json", b"{", b"[" * 100_000, "bundle.json is nested more than"),
        ("samples.csv", b"/s,higher,false", b"/s,up,false", "'up' is no direction"),
        ("samples.csv", b"variant", b"Variant", "samples.csv has no column variant"),
        ("samples.csv", b",ok,", b",ok,,,", "has not as many cells"),
        ("verdicts.json", b"[", b"{", "verdicts.json is not JSON"),
        ("verdicts.json", b'"p": ', b'"p": [], "q": ', "no object with plain values"),
        ("plan.yaml", b"name", b"\xff", "plan.yaml is not UTF-8: byte 0"),
    ],
)
def test_contents_that_make_no_sense_are_named(
    bundle: Path, tmp_path: Path, member: str, old: bytes, new: bytes, reason: str
) -> None:
    members = contents(bundle)
    assert old in members[member]
    members[member] = members[member].replace(old, new, 1)
    path = pack(tmp_path / "x.tar", members)
    with pytest.raises(CommandError) as caught:
        replay(path)
    assert reason in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "fast", ""])
def test_values_are_finite_numbers(bundle: Path, tmp_path: Path, value: str) -> None:
    members = contents(bundle)
    first = Sample.objects.filter(discarded=False, measurement__state="ok").order_by("measurement__boot__position")[0]
    members["samples.csv"] = members["samples.csv"].replace(f",{first.value},".encode(), f",{value},".encode(), 1)
    assert f"{value!r} is " in refused(pack(tmp_path / "x.tar", members))


def outcome(path: Path) -> Bundle | None:
    """The parsed content, None for a refusal; any other exception fails the test."""
    try:
        read = read_bundle(path)
        differences(read, analyse(read))
    except BundleError:
        return None
    return read


def test_no_damaged_bundle_is_accepted(bundle: Path, tmp_path: Path) -> None:
    """Bytes overwritten, cut out, inserted twice or cut off anywhere: refused, or equal to the original."""
    whole, path = bundle.read_bytes(), tmp_path / "damaged.tar"
    untouched = read_bundle(bundle)
    places = st.integers(0, len(whole) - 1)

    @settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def damage(data: st.DataObject) -> None:
        place, length = data.draw(places), data.draw(st.sampled_from([1, 7, 512, 4096]))
        piece = whole[place : place + length] * data.draw(st.integers(0, 2))
        if data.draw(st.booleans()):
            piece = data.draw(st.binary(min_size=1, max_size=length))
        end = len(whole) if data.draw(st.integers(0, 9)) == 0 else place + length
        path.write_bytes(whole[:place] + piece + whole[end:])
        assert outcome(path) in (None, untouched)

    damage()


scalars: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


def test_no_content_breaks_the_reader(bundle: Path, tmp_path: Path) -> None:
    """Documents with other values at any place, in an archive with right hashes."""
    members, path = contents(bundle), tmp_path / "odd.tar"
    small = {name: members[name] for name in ("bundle.json", "plan.yaml", "samples.csv", "verdicts.json")}

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def change(data: st.DataObject) -> None:
        odd = dict(small)
        name = data.draw(st.sampled_from(["bundle.json", "verdicts.json", "samples.csv"]))
        if name == "samples.csv":
            lines = odd[name].decode().splitlines()
            row = data.draw(st.integers(0, len(lines) - 1))
            cells = lines[row].split(",")
            cells[data.draw(st.integers(0, len(cells) - 1))] = data.draw(
                st.sampled_from(["", "-1e308", "1e308", "0", "\0", '"', "x", "true", "'=", "9" * 400])
            )
            lines[row] = ",".join(cells)
            odd[name] = "\n".join(lines).encode()
        else:
            document = json.loads(odd[name])
            node, steps = document, data.draw(st.integers(1, 4))
            for step in range(steps):
                keys = list(node) if isinstance(node, dict) else list(range(len(node)))
                key = data.draw(st.sampled_from(keys))
                if step == steps - 1 or not isinstance(node[key], dict | list) or not node[key]:
                    node[key] = data.draw(scalars)
                    break
                node = node[key]
            odd[name] = json.dumps(document).encode()
        outcome(pack(path, odd))

    change()
