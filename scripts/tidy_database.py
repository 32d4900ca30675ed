#!/usr/bin/env python3
"""Prints a compilation database for clang-tidy: each file of a build once, without precompiled headers.

    tidy_database.py BUILD-DIR

clang-tidy checks a file once for each command that compiles it, and the guest kernel is compiled for three platforms.
The first command counts: the guest's own, whose flags clang-tidy takes only if the build is clang's. Without the
precompiled headers, a file that does not include what it uses is an error.
"""

import json
import pathlib
import re
import sys

# As meson has clang and g++ use them.
PRECOMPILED = r"-include-pch \S+|-fpch-preprocess -include \S+_pch\.hpp"


def main():
    build = pathlib.Path(sys.argv[1])
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        entry["command"] = re.sub(PRECOMPILED, "", entry["command"])
        commands.setdefault(entry["file"], entry)
    print(json.dumps(list(commands.values()), indent=1))


if __name__ == "__main__":
    main()
