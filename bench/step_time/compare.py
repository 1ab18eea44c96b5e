#!/usr/bin/env python3
"""Step time and peak resident memory of Neaptide beside PyTorch's modes, measured one after the other.

    python compare.py BUILD_DIR [NETWORK ...]      (default: all four)

PyTorch runs in the environment that NEAPTIDE_TORCH names (a prefix with bin/python); without it the table has our
column only. Ratios are ours over PyTorch's best mode: below 1 is better. Options by environment: NEAPTIDE_BATCH (8),
NEAPTIDE_THREADS (2), NEAPTIDE_STEPS (7), NEAPTIDE_MODES (eager,channels-last,compiled).
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = ["resnet50", "resnet18", "vgg16", "mobilenet_v2_224"]
BATCH, THREADS, STEPS = (os.environ.get("NEAPTIDE_" + k, d) for k, d in [("BATCH", "8"), ("THREADS", "2"), ("STEPS", "7")])
MODES = os.environ.get("NEAPTIDE_MODES", "eager,channels-last,compiled").split(",")


def run(command):
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.stderr.write(f"{' '.join(map(str, command))} failed:\n{done.stderr[-1000:]}\n")
        return None
    return json.loads(done.stdout)


def mib(row, key="peak_resident"):
    """Above the idle process. Ours while stepping is `resident_in_steps`; the whole process, which also measures its
    operators, is `peak_resident`. PyTorch has one figure."""
    return (row[key] - row["idle_resident"]) / 2**20


def table(header, rows):
    widths = [max(len(str(r[i])) for r in [header] + rows) for i in range(len(header))]
    for r in [header] + rows:
        print("  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(r, widths))))
    print()


def classes(ours):
    order = sorted(ours["classes"].items(), key=lambda item: -item[1]["seconds"])
    rows = [[op, c["count"], f"{c['seconds'] * 1e3:.1f}", f"{c['alone'] * 1e3:.1f}"] for op, c in order]
    whole = ["step", "", f"{ours['seconds'] * 1e3:.1f}", f"{ours['primitives'] * 1e3:.1f}"]
    table([ours["network"], "nodes", "ms in step", "ms alone"], rows + [whole])


def row_of(name, ours, peers):
    in_steps = mib(ours, "resident_in_steps")
    row = [name, f"{ours['seconds']:.3f} s", f"{in_steps:.0f} MiB", f"{mib(ours):.0f} MiB"]
    row += [f"{peers[m]['seconds']:.3f} s / {mib(peers[m]):.0f} MiB" if m in peers else "-" for m in MODES]
    if not peers:
        return row + ["-", "-"]
    best = min(p["seconds"] for p in peers.values())
    leanest = min(mib(p) for p in peers.values())
    return row + [f"{ours['seconds'] / best:.2f}", f"{in_steps / leanest:.2f}"]


def main():
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "build" / "release"
    program = next(iter(build.rglob("bench_step_time")), None)
    if program is None:
        sys.exit(f"{build} has no bench_step_time; build it first")
    torch = os.environ.get("NEAPTIDE_TORCH")
    rows = []
    for name in sys.argv[2:] or NETWORKS:
        ours = run([program, name, BATCH, THREADS, STEPS])
        if ours is None:
            continue
        classes(ours)
        half = run([program, name, BATCH, THREADS, STEPS, "50"])
        peers = {}
        for mode in MODES if torch else []:
            peer = run([pathlib.Path(torch) / "bin" / "python", HERE / "torch_step.py", name, BATCH, THREADS, STEPS, mode])
            if peer is not None:
                peers[mode] = peer
        rows.append(row_of(name, ours, peers))
        if half is not None:
            rows.append(row_of(f"{name} at half its peak", half, peers))
    table(["network", "step", "in steps", "with planning"] + [f"torch {m}" for m in MODES] + ["time ratio", "memory ratio"], rows)


main()
