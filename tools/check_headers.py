#!/usr/bin/env python3
"""Every header under neaptide/ compiles alone. Headers that need an SDK are checked where it is found, else named."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", f"-I{ROOT}", "-x", "c++"]


def sdk_includes():
    venv = pathlib.Path(os.environ.get("NEAPTIDE_VENV") or ROOT / "build/venv")
    generated = sorted(ROOT.glob("build/*/parts/onnx/proto/**/onnx.pb.h"))  # of any build that got so far
    return [f"-I{venv / 'include'}"] + [f"-I{header.parent}" for header in generated[:1]]


def compiles(header):
    command = ["g++", *FLAGS, *sdk_includes(), str(header)]
    done = subprocess.run(command, capture_output=True, text=True)
    return header, done.returncode, done.stderr


def main():
    headers = sorted(ROOT.glob("neaptide/**/*.hpp"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        broken = [(h, text) for h, code, text in pool.map(compiles, headers) if code != 0]
    for header, text in broken:
        first = next((line for line in text.splitlines() if "error" in line), text[:200])
        print(f"{header.relative_to(ROOT)} does not compile alone: {first}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
