#!/usr/bin/env python3
"""Checks on the tree as a whole, standard library only; prints every finding and exits 1 when there is one.

Layers: a file under neaptide/ includes only its own folder and folders above it in tools/layers.txt.
Lists:  every .cc of a folder is named in that folder's CMakeLists.txt.
Documents: every path that ARCHITECTURE.md names exists, and every folder of neaptide/ is named there.
Words:  no file speaks of one machine (absolute home or work paths).
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
findings = []


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [p for p in listed.stdout.splitlines() if (ROOT / p).is_file()]


def layer_of(path, layers):
    """The longest layer name that is a leading folder of neaptide/<path>."""
    inside = path.removeprefix("neaptide/")
    fits = [name for name in layers if inside.startswith(name + "/")]
    return max(fits, key=len) if fits else None


def check_layers(files):
    lines = (ROOT / "tools/layers.txt").read_text().splitlines()
    layers = [line for line in lines if line and not line.startswith("#")]
    for path in files:
        if not (path.startswith("neaptide/") and path.endswith((".hpp", ".cc"))) or path.count("/") < 2:
            continue
        own = layer_of(path, layers)
        if own is None:
            findings.append(f"{path}: its folder is not in tools/layers.txt")
            continue
        for included in re.findall(r'#include [<"](neaptide/[^>"]+)[>"]', (ROOT / path).read_text()):
            other = layer_of(included, layers)
            if other is None:  # the umbrella header stands at the place of cli and capi only
                if own not in ("cli", "capi"):
                    findings.append(f"{path}: includes {included}, which belongs to no layer")
            elif layers.index(other) > layers.index(own):
                findings.append(f"{path}: includes {included}; {own} stands above {other}")
            elif own.startswith("backends/") and other.startswith("backends/") and own != other:
                findings.append(f"{path}: includes {included}; backends stand alone")


def check_lists(files):
    for path in files:
        if not path.endswith(".cc") or not path.startswith(("neaptide/", "tests/")):
            continue
        folder = (ROOT / path).parent
        while not (folder / "CMakeLists.txt").exists():
            folder = folder.parent
        name = str((ROOT / path).relative_to(folder))
        if not re.search(rf"(^|[\s(]){re.escape(name)}($|[\s)])", (folder / "CMakeLists.txt").read_text(), re.M):
            findings.append(f"{path}: not listed in {folder.relative_to(ROOT)}/CMakeLists.txt")


def check_documents(files):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for named in re.findall(r"`((?:neaptide|tests|tools|bench|docs|fuzz|examples|cmake)/[\w./*-]*)`", text):
        if "*" not in named and not (ROOT / named).exists():
            findings.append(f"ARCHITECTURE.md names {named}, which does not exist")
    folders = {"/".join(p.split("/")[:2]) for p in files if p.startswith("neaptide/") and p.count("/") >= 2}
    for folder in sorted(folders):
        if f"`{folder}" not in text:
            findings.append(f"ARCHITECTURE.md does not name {folder}/")


def check_words(files):
    pattern = re.compile(r"(?<![\w.])/(?:work|home|root|opt/nt)/")
    for path in files:
        if path.endswith((".png", ".onnx", ".gz")) or path == "tools/check_tree.py":
            continue
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                findings.append(f"{path}:{number}: a path of one machine")


def main():
    files = tracked()
    check_layers(files)
    check_lists(files)
    check_documents(files)
    check_words(files)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
