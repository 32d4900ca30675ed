#!/usr/bin/env python3
"""Prints what the tests of some suites need built: scripts/test_programs.py BUILD-DIR SUITE...

One path a line, as ninja takes it. Asked of meson, which knows what a test depends on however its command line names it.
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    command = ["meson", "introspect", build, f"--{what}"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def main():
    build, suites = sys.argv[1], set(sys.argv[2:])
    needed = set()
    for test in introspect(build, "tests"):
        if suites & {suite.split(":")[-1] for suite in test["suite"]}:
            needed.update(test["depends"])
    for target in introspect(build, "targets"):
        if target["id"] in needed:
            print(*(os.path.relpath(name, os.path.abspath(build)) for name in target["filename"]), sep="\n")


if __name__ == "__main__":
    main()
