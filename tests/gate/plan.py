# SPDX-License-Identifier: BSD-2-Clause
"""The jobs of `./dev test`: their commands, the jobs before them, and the changes that affect them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runners.services.supervisor import DATABASE, Layout
from tests.gate import durations
from tests.gate.durations import cache
from tests.gate.scheduler import Argv, Job

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
BIN = Path(PYTHON).parent
STACK_BUILDS = ("release", "address", "thread")
CLANG_BUILDS = ("clang", "clang-sim")
FUZZ_SECONDS = {False: "8", True: "60"}
"""Seconds that each fuzzer explores, by whether the run is thorough."""

SUITE_PROCESSES = {"release": 4}
"""Tests of a suite at once. Those of the release wait most of the time; a sanitizer keeps a CPU busy."""

# Files of tests/stack with a separate job. The rest of tests/stack is one job.
SIMULATED = ("test_races.py", "test_sim_bench.py", "test_simulator.py", "test_simweights.py", "test_up.py")
COMBINED = ("test_combinations.py",)
FUZZED = ("test_fuzz.py",)
WAITING = ("test_cpython.py",)

# Files of tests/lab that emulate machines.
GUESTS = "tests/lab/test_vmlab.py"

# Folders of tests/unit with a separate job, which request pages of the site and of the API.
PAGES = ("accounts", "api", "crawl", "dashboard", "figures", "rawdata", "reports", "verdicts")

# Files of tests/integration as parallel jobs, because most of the time of each test is waiting. The rest is one job.
INTEGRATION = {
    "integration-builds": (
        "test_counted.py", "test_patches.py", "test_simulated.py", "test_stack.py", "test_tunnels.py",
    ),
    "integration-faults": ("test_faults.py", "test_labs.py"),
    "integration-outages": (
        "test_availability.py", "test_clocks.py", "test_crashes.py", "test_dependency_states.py", "test_linux.py",
    ),
}  # fmt: skip

# Plugins of pytest that one job needs; all others start a second sooner without them.
HEAVY_PLUGINS = {"schemathesis": "pages", "playwright": "browser"}

WEIGHTS = {
    "integration": 160, "integration-builds": 400, "integration-faults": 350, "integration-outages": 350, "guests": 400,
    "lab": 300, "stack": 300, "unit": 160, "pages": 120, "simulator": 120,
    "suite-thread": 170, "build-release": 95, "combinations": 120, "fuzz": 110, "browser": 75, "platform": 60,
    "cpython": 60, "counted": 60,
    "lint-mypy": 60, "build-address": 60, "build-thread": 60, "suite-address": 60, "lint-clang": 40,
    "lint-clang-sim": 20, "lint-cppcheck": 40, "lint-locking": 30, "suite-release": 20, "client": 30, "lint-djlint": 10,
    "lint-shellcheck": 5, "lint-ruff": 5, "lint-prose": 5,
}  # fmt: skip
"""Approximate seconds of each job before the first run of the gate (tests/gate/durations.py)."""


@dataclass(frozen=True)
class Setting:
    """Common settings of the jobs of a run: the directory of its data, and whether it is the thorough one."""

    var: Path
    thorough: bool = False


def tracked(*patterns: str) -> list[str]:
    """Files that git tracks, by patterns of git ls-files."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def _lint(name: str, *steps: Argv, after: tuple[str, ...] = ()) -> Job:
    return Job(f"lint-{name}", steps, after=after)


def _compiled(name: str) -> Argv:
    return (PYTHON, "-m", "tests.stack.builds", "make", name)


def lint_jobs() -> list[Job]:
    """Style and types of everything, and the builds by clang."""
    templates = tracked("templates/*.html")
    ruff = str(BIN / "ruff")
    return [
        *(_lint(name, _compiled(name)) for name in CLANG_BUILDS),
        _lint("cppcheck", _cppcheck(), after=("lint-clang",)),
        _lint("locking", (PYTHON, "-m", "tests.stack.locking", "check"), after=("lint-clang",)),
        _lint("mypy", _mypy()),
        _lint("djlint", (str(BIN / "djlint"), "--quiet", "--lint", *templates)),
        _lint("shellcheck", ("shellcheck", "--severity=warning", "dev", "runners/install.sh", ".ci/run")),
        _lint("ruff", (ruff, "check", "--quiet"), (ruff, "format", "--check", "--quiet")),
        _lint("prose", (PYTHON, "-m", "tests.prose")),
    ]


def _alone(name: str, *argv: str) -> Argv:
    """A command that shares a cache of that name with all clones: one at a time uses it."""
    return ("flock", str(cache(name) / "lock"), *argv)


def _mypy() -> Argv:
    """mypy's cached results of a module depend on the content of the file, the options and the version."""
    words = ("--no-error-summary", f"--cache-dir={cache('mypy')}")
    return _alone("mypy", str(BIN / "mypy"), *words, *tracked("*.py"))


def _cppcheck() -> Argv:
    """cppcheck's cached results of a file depend on the preprocessed source, the options and the version."""

    def output(*argv: str) -> str:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

    machine = output("uname", "-m")
    # Without any definition it tries a dozen sets of macros of the C library's headers, in ten times the time.
    defined = ["__STDC__=1", "__STDC_VERSION__=201112L", "__GNUC__=12", "__GNUC_MINOR__=2", "__linux__=1"]
    defined += [f"__{machine}__=1", "INVARIANTS", "WITNESS", "LOCK_TRACKING", "LOCK_PROFILING"]
    return _alone(
        "cppcheck", "cppcheck", "--quiet", "--std=c11", "--enable=portability", "--inline-suppr", "--error-exitcode=1",
        # It mistakes a buffer that is passed to be filled for one that is read.
        "--suppress=ctuuninitvar",
        f"--cppcheck-build-dir={cache('cppcheck')}", "-I", "stack", "-I", "build/clang",
        "-I", f"/usr/include/{output('gcc', '-print-multiarch')}",
        *(f"-D{name}" for name in defined), *tracked("stack/*.c"),
    )  # fmt: skip


def _suite(name: str) -> Job:
    """The stack's own tests in one of its builds."""
    test = (PYTHON, "-m", "tests.stack.builds", "test", name, "--processes", str(SUITE_PROCESSES.get(name, 1)))
    junit = (ROOT / "build" / name / "meson-logs" / "testlog.junit.xml",)
    return Job(f"suite-{name}", (test,), after=(f"build-{name}",), junit=junit)


def pytest_job(
    setting: Setting,
    name: str,
    *arguments: str,
    cpus: int = 1,
    after: tuple[str, ...] = (),
    databases: bool = False,
    environment: dict[str, str] | None = None,
) -> Job:
    """A run of pytest with a private directory, with PostgreSQL and Redis if it needs them."""
    var, junit = setting.var / name, setting.var / name / "junit.xml"
    words = [PYTHON, "-m", "pytest", "-q", f"--junit-xml={junit}", "-o", f"cache_dir={var / 'pytest_cache'}"]
    words += [word for plugin, job in HEAVY_PLUGINS.items() if job != name for word in ("-p", f"no:{plugin}")]
    if setting.thorough:
        words.append("--thorough")
    job = Job(name, ((*words, *arguments),), cpus=cpus, after=after, junit=(junit,), environment=environment or {})
    if not databases:
        return job
    services = (PYTHON, "-m", "runners.services", "--var", str(var))
    return replace(
        job,
        steps=(
            (PYTHON, "-m", "tests.clusters", str(var)),
            (*services, "--volatile", "start", "postgresql", "redis"),
            *job.steps,
        ),
        cleanup=((*services, "stop"),),
        environment={**job.environment, **Layout.of(var).environment(), "PERFWEB_TEST_TEMPLATE": DATABASE},
    )


def test_jobs(setting: Setting) -> list[Job]:
    """All tests: jobs that mostly wait first, then the builds that others need."""
    stack = [f"--ignore=tests/stack/{name}" for name in (*SIMULATED, *COMBINED, *FUZZED, *WAITING)]
    pages = [f"--ignore=tests/unit/{name}" for name in PAGES]
    others = [f"--ignore=tests/integration/{name}" for names in INTEGRATION.values() for name in names]

    def files(names: Iterable[str], folder: str = "stack") -> list[str]:
        return [f"tests/{folder}/{name}" for name in names]

    def integration(name: str, *arguments: str) -> Job:
        return pytest_job(setting, name, *arguments, cpus=0, databases=True)

    return [
        integration("integration", "tests/integration", *others),
        *(integration(name, *files(names, "integration")) for name, names in INTEGRATION.items()),
        *(Job(f"build-{name}", (_compiled(name),)) for name in STACK_BUILDS),
        pytest_job(setting, "guests", GUESTS, after=("build-release",)),
        pytest_job(setting, "counted", "tests/counted"),
        pytest_job(setting, "lab", "tests/lab", f"--ignore={GUESTS}", cpus=0),
        pytest_job(setting, "cpython", *files(WAITING), cpus=0, after=("build-release",)),
        pytest_job(setting, "stack", "tests/stack", *stack, after=("build-release",)),
        pytest_job(setting, "combinations", *files(COMBINED), after=("build-address", "build-thread")),
        *(_suite(name) for name in STACK_BUILDS),
        pytest_job(setting, "simulator", *files(SIMULATED)),
        pytest_job(setting, "fuzz", *files(FUZZED), environment={"FUZZ_SECONDS": FUZZ_SECONDS[setting.thorough]}),
        pytest_job(setting, "unit", "tests/unit", "tests/untrusted", *pages, databases=True),
        pytest_job(setting, "pages", *(f"tests/unit/{name}" for name in PAGES), databases=True),
        pytest_job(setting, "browser", "tests/browser", databases=True),
        pytest_job(setting, "client", "tests/client", databases=True),
        pytest_job(setting, "platform", "tests/platform", cpus=0, databases=True),
    ]


def all_jobs(setting: Setting) -> list[Job]:
    """The gate."""
    weights = WEIGHTS | durations.recorded()
    return [replace(job, weight=weights[job.name]) for job in (*test_jobs(setting), *lint_jobs())]


STACK = (
    "lint-clang", "lint-clang-sim", "lint-cppcheck", "lint-locking", "lint-prose",
    *(f"build-{name}" for name in STACK_BUILDS),
    *(f"suite-{name}" for name in STACK_BUILDS), "stack", "combinations", "cpython", "simulator", "fuzz",
    "lab-stack", "guests-stack", "docs",
)  # fmt: skip
PYTHON_LINT = ("lint-mypy", "lint-ruff")
UNIT = ("unit", "pages")
SERVICE = (*PYTHON_LINT, "lint-prose", *UNIT, "browser", "client", "one-run")
DOCS = ("docs", "lint-prose")

DOCUMENTED = (
    "tests/unit/test_documents.py", "tests/unit/runners/test_gates.py", "tests/unit/rawdata/test_rawdata.py",
    "tests/unit/accounts/test_crawl.py", "tests/stack/test_tcp_locking.py", "tests/unit/manual",
    "tests/unit/test_conformance.py",
)  # fmt: skip
"""Tests that compare a document with the code: also part of the jobs `unit` and `stack`."""

# The jobs of paths with a prefix; the first match counts. All jobs run for other paths.
DEPENDENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("docs/reference/tunables.md", (*DOCS, "docs-tunables")),
    ("docs/", DOCS),
    *((name, DOCS) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    ("stack/README.md", DOCS),
    ("stack/", STACK),
    ("perfweb/client/", (*SERVICE, "platform")),
    ("perfweb/counted/", (*SERVICE, "counted")),
    ("perfweb/", SERVICE),
    ("templates/", ("lint-djlint", "lint-prose", *UNIT, "browser")),
    ("static/", (*UNIT, "browser")),
    ("tests/unit/", (*PYTHON_LINT, *UNIT)),
    ("tests/untrusted/", (*PYTHON_LINT, "unit")),
    ("tests/stack/", (*PYTHON_LINT, *STACK)),
    ("tests/lab/", (*PYTHON_LINT, "build-release", "lab", "guests")),
    ("tests/counted/", (*PYTHON_LINT, "counted")),
    ("runners/counted/", (*PYTHON_LINT, "lint-prose", "unit", "counted")),
    ("tests/integration/", (*PYTHON_LINT, "integration", *INTEGRATION)),
    ("tests/browser/", (*PYTHON_LINT, "browser")),
    ("tests/client/", (*PYTHON_LINT, "client")),
    ("tests/platform/", (*PYTHON_LINT, "platform")),
    ("tests/bench/", (*PYTHON_LINT, "unit")),
    ("tests/mails/", (*PYTHON_LINT, "unit")),
    ("tests/prose/", (*PYTHON_LINT, "unit", "lint-prose")),
)


def partial_jobs(setting: Setting) -> list[Job]:
    """Parts of the gate's jobs, for changes that affect only these."""
    first = "tests/integration/test_runs.py::test_demo_command_runs_a_plan_to_its_verdict"
    tunnel = f"{GUESTS}::test_packets_between_guests_travel_in_a_tunnel"
    return [
        pytest_job(setting, "docs", *DOCUMENTED, databases=True),
        pytest_job(setting, "docs-tunables", "tests/stack/test_tunables.py"),
        pytest_job(setting, "lab-stack", "tests/lab/test_stack.py"),
        pytest_job(setting, "guests-stack", tunnel, "-k", "stack-gre", after=("build-release",)),
        pytest_job(setting, "one-run", first, cpus=0, databases=True),
    ]


def names_for(changed: Iterable[str], everything: Sequence[str]) -> set[str]:
    """Return the names of the jobs that changed files affect."""
    chosen: set[str] = set()
    for path in changed:
        jobs = next((jobs for prefix, jobs in DEPENDENTS if path.startswith(prefix)), tuple(everything))
        chosen.update(jobs)
    return chosen


def changed_files(tree: Path = ROOT) -> list[str]:
    """Files that differ from the newest commit shared with the main branch, committed or not; new ones, too."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=False).stdout

    main = next((name for name in ("origin/main", "main") if git("rev-parse", "--verify", "--quiet", name)), "HEAD")
    base = git("merge-base", main, "HEAD").strip()
    listed = git("diff", "--name-only", "-z", base) + git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({name for name in listed.split("\0") if name})
