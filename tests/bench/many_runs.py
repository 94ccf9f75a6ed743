"""Measures runs side by side: python3 tests/bench/many_runs.py PROGRAM [COUNT...]

The agent of each run is `sleep`. The memory is the proportional set size of all processes of PROGRAM, without the agents,
while all runs are waiting for their agents. The CPU time is that of the runs from their start to their end, with their
agents. Linux only.
"""
import json
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = {"agents": {"wait": {"driver": "lines", "command": "sh", "args": ["-c", "echo ready; exec sleep 600"]}}}


def memory(program: Path) -> float:
    """The memory of all processes of the program, in MiB."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() == program:
                lines = (process / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:
            continue
    return total / 1024


def side_by_side(program: Path, count: int, home: str) -> str:
    """A row of the table."""
    command = [str(program), "adhoc", "--output", "json", "--agent", "wait", "--progress", "minimal", "--prompt", "Wait"]
    environment = {"HOME": home, "PATH": os.environ["PATH"]}
    selector, runs, took = selectors.DefaultSelector(), [], []
    for _ in range(count):
        began = time.monotonic()
        run = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=home, env=environment)
        runs.append(run)
        selector.register(run.stdout, selectors.EVENT_READ, (began, []))
    # The first read of a run holds run.started, the status `running` says that its agent works.
    while selector.get_map():
        for key, _ in selector.select():
            began, seen = key.data
            chunk = os.read(key.fd, 1 << 16)
            assert chunk, "a run ended before its agent worked"
            if not seen:
                took.append(time.monotonic() - began)
            seen.append(chunk)
            if b'"status":"running"' in b"".join(seen):
                selector.unregister(key.fileobj)
    held = memory(program)
    for run in runs:
        run.send_signal(signal.SIGTERM)
    cpu = 0.0
    for run in runs:
        _, _, used = os.wait4(run.pid, 0)
        cpu += used.ru_utime + used.ru_stime
    start = [statistics.median(took) * 1000, max(took) * 1000]
    return f"| {count} | {held:.1f} MiB | {held / count:.2f} MiB | {cpu:.2f} s | {start[0]:.0f} ms | {start[1]:.0f} ms |"


def main() -> None:
    program, counts = Path(sys.argv[1]).resolve(), [int(word) for word in sys.argv[2:]] or [1, 20, 200]
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, ".config/spektacular")
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        print("| runs | memory | memory per run | CPU time | run.started: median | last |\n|---|---|---|---|---|---|")
        for count in counts:
            print(side_by_side(program, count, home), flush=True)


main()
