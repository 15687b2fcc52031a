# SPDX-License-Identifier: MIT
"""``python -m bench [NAME …]``: measure, print a table, keep it as JSON beside this file."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from bench import accelerator, calls, virtual_cpus
from bench.measure import Row
from bench.native import accelerator as native_accelerator
from bench.native import calls as native
from bench.native import ftorch, torch_ftn

BENCHES = {
    "calls": calls,
    "virtual_cpus": virtual_cpus,
    "native": native,
    "ftorch": ftorch,
    "torch_ftn": torch_ftn,
    "accelerator": accelerator,
    "native_accelerator": native_accelerator,
}


def main() -> int:
    """Run the benches that were asked for; the status is 1 where a bar does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHES)}")
    parser.add_argument("--json", type=Path, help="where to keep the figures (bench/results)")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHES)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="torchspan-bench-") as folder:
        for name in arguments.names or BENCHES:
            found = BENCHES[name].run(Path(folder))
            if not found:
                print(f"{name}: this machine has not what it measures; skipped", file=sys.stderr)
            rows += found
    machine = _machine()
    print(_table(rows, machine))
    kind = str(machine["accelerator"] or "cpu").lower().replace(" ", "-")
    target = arguments.json or Path(__file__).parent / "results" / f"{kind}.json"
    target.parent.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=1)
    target.write_text(text + "\n", encoding="utf-8")
    return int(any(row.holds is False for row in rows))


def _machine() -> dict[str, object]:
    there = torch.accelerator.is_available()
    return {
        "cpu": _cpu_name(),
        "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "accelerator": torch.get_device_module().get_device_name(0) if there else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _table(rows: list[Row], machine: dict[str, object]) -> str:
    lines = [", ".join(f"{key} {value}" for key, value in machine.items() if value), ""]
    bench = ""
    for row in rows:
        if row.bench != bench:
            bench = row.bench
            lines += ["", f"### {bench}", "", "| what | time | ratio | bar |", "|---|---|---|---|"]
        verdict = {None: "", True: " (holds)", False: " (FAILS)"}[row.holds]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        lines.append(f"| {row.what} | {_time(row.seconds)} | {ratio} | {row.bar}{verdict} |")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
