"""Arguments of the benchmarks in Python: --help, and a line for each that is wrong before anything is done."""

import argparse
import os
import sys


class Parser(argparse.ArgumentParser):
    """Its help is the script's own text; its errors are one line, exit status 2."""

    def __init__(self, text):
        super().__init__(prog=f"bench/{os.path.basename(sys.argv[0])}", description=text,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("build", nargs="?", default="build", type=build_directory, metavar="BUILD-DIR")

    def error(self, message):
        print(f"{self.prog}: {message}; {self.prog} --help tells more", file=sys.stderr)
        sys.exit(2)

    def add_count(self, name, default, metavar, minimum=1, maximum=1_000_000, many=False):
        """A whole number that may be left out; `many`: any number of them."""
        self.add_argument(name, nargs="*" if many else "?", default=default, metavar=metavar,
                          type=lambda text: count(text, minimum, maximum))


def build_directory(text):
    """`text`, if the command has been built there."""
    if not os.access(os.path.join(text, "vmm", "sipi"), os.X_OK):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no build directory with vmm/sipi in it (meson setup build && ninja -C build)")
    return text


def count(text, minimum, maximum):
    """A whole number in [minimum, maximum]."""
    if text.isascii() and text.isdigit() and minimum <= int(text) <= maximum:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {minimum} to {maximum}")
