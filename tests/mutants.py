"""Would the tests notice a changed line? A seeded sample of mutmut's mutants, against the fast tests of their rooms.

Each mutant is one small change in one function. Those that no test notices are listed with their diff; too many are a
failure. How mutmut is set up is said in pyproject.toml under [tool.mutmut].
"""

import argparse
import os
import random
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGXCPU

import hypothesis
import numba  # noqa: F401 - once here, not in the process of each mutant
import pytest
from mutmut import __main__ as mutmut
from mutmut.configuration import config, reset_config
from mutmut.mutation import trampoline
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import ForkServerRunner

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 8 * 2**30  # bytes a process may have: some mutants would take all

SUITES = {
    ("content", "matching"): [
        *(f"unit/test_{name}.py" for name in ("covering", "filter_cases", "filter_properties", "line", "matching")),
        *(f"unit/test_{name}.py" for name in ("parser", "types", "values", "workloads")),
    ],
    ("overlay", "routing"): [
        *(f"unit/test_{name}.py" for name in ("channel", "construct", "declared", "organise", "parked", "passing_on")),
        *("unit/test_prt.py", "unit/test_routes.py", "scenarios"),
        *(f"sim/test_{name}.py" for name in ("batch", "convergence", "doors", "faults", "fbr", "recording", "traced")),
    ],
}
"""Rooms, and the tests that are to notice what changes in them."""

KILLED, TIMEOUT, SURVIVED, SUSPICIOUS = "killed", "timeout", "survived", "suspicious"
VERDICTS = {0: SURVIVED, 1: KILLED, 2: KILLED, 3: KILLED, 255: KILLED, 33: SURVIVED, -SIGXCPU: TIMEOUT}
"""By exit code: 1 is a failed test, 2 and 255 a module that fails to import, 3 pytest itself, 33 that no test gets
there. The control without a mutant shows that every test can be found, so that 255 means nothing else."""

CONTROLS = {"": SURVIVED, "fail": KILLED}
"""No mutant, and a failure of every mutated function: what must come of them if the verdicts are to mean anything."""


def prepare(rooms: tuple[str, ...]) -> None:
    """A directory as mutmut wants it (it knows sources in src/ only), and the same examples of hypothesis each time."""
    work = ROOT / "mutants"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name, target in {"src": "services", "tests": "tests", "pyproject.toml": "pyproject.toml"}.items():
        (work / name).symlink_to(ROOT / target)
    os.chdir(work)
    reset_config()
    config().only_mutate = [f"src/mercast/{room}/*" for room in rooms]
    config().pytest_add_cli_args_test_selection[:0] = [f"tests/{name}" for name in SUITES[rooms]]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # that a test fails is enough: nothing is shrunk
    repeatable = hypothesis.settings(hypothesis.settings.get_profile("ci"), phases=phases)
    hypothesis.settings.register_profile("mutants", repeatable)
    hypothesis.settings.load_profile("mutants")
    # mutmut 3.8 needs an attribute that pytest 9.2 has no more, and is slow: it reads os.environ at each call.
    pytest.Item._nodeid = property(lambda item: item.nodeid)
    trampoline.get_mutant_under_test = lambda: trampoline._mutant_under_test or ""


def all_mutants(processes: int) -> list[str]:
    """Write the mutated copy of the sources, and name its mutants."""
    with mutmut.CatchOutput(spinner_title="Making mutants"):
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.setup_source_paths()
        mutmut.create_mutants(processes)
    return sorted(name for _, name, _ in mutmut.collect_source_file_mutation_data(mutant_names=())[0])


def verdicts(names: list[str], processes: int) -> Iterator[tuple[str, str]]:
    """Each mutant against the tests that reach its function, quickest first, in a fresh process: no cache is filled."""
    runner = ForkServerRunner(max_workers=processes, test_runner_class=PytestRunner, test_runner_args={})
    mutmut.collect_or_load_stats(runner)  # which tests reach which function
    reaching, durations = state().tests_by_mangled_function_name, state().duration_by_test
    waiting = iter(names)
    runner.startup()
    while True:
        while runner.has_capacity() and (name := next(waiting, None)) is not None:
            tests = durations if name in CONTROLS else reaching.get(mangled_name_from_mutant_name(name), ())
            time = sum(durations[test] for test in tests)
            limit = (time + config().timeout_constant) * config().timeout_multiplier
            runner.submit(name, sorted(tests, key=lambda test: (durations[test], test)), int(2 * limit), time)
        if not runner.pending_count():
            return runner.shutdown()
        result = runner.wait_for_result()
        yield result.mutant_name, VERDICTS.get(result.exit_code, f"{SUSPICIOUS} ({result.exit_code})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", choices=[",".join(rooms) for rooms in SUITES])
    parser.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at a time (all cores)")
    parser.add_argument("--least", type=float, default=85, help="percentage that must be killed (85)")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the same order of sets each time
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    prepare(tuple(options.rooms.split(",")))
    names = all_mutants(options.processes)
    sample = random.Random(options.seed).sample(names, min(options.count, len(names)))
    print(f"{len(sample)} of {len(names)} mutants")
    found: dict[str, str] = {}
    for name, said in verdicts([*CONTROLS, *sample], options.processes):
        if CONTROLS.get(name, said) != said:
            sys.exit(f"the control {name!r} is {said}, expected {CONTROLS[name]}: no verdict would mean anything")
        found[name] = said
        print(f"{len(found)}/{len(sample) + len(CONTROLS)} {said} {name or 'without a mutant'}", flush=True)
    survivors = [name for name in sorted(sample) if found[name] not in (KILLED, TIMEOUT)]
    for name in survivors:
        print(f"\n{found[name]}: {name}\n{get_diff_for_mutant(name).replace('src/', 'services/')}")
    counts = Counter(found[name] for name in sample)
    print("\n" + ", ".join(f"{count} {said}" for said, count in sorted(counts.items())))
    percentage = 100 * (1 - len(survivors) / len(sample))
    print(f"{percentage:.1f}% killed, at least {options.least:g}% wanted")
    sys.exit(percentage < options.least)


if __name__ == "__main__":
    main()
