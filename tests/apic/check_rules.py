#!/usr/bin/env python3
"""Checks that the files and tests which docs/apic.md names, rule by rule, exist.

Usage: check_rules.py ROOT-OF-THE-TREE
"""
import pathlib
import re
import sys


def main(root):
    tests = set()
    for path in (root / 'tests' / 'apic').glob('*.cc'):
        tests.update('.'.join(name) for name in re.findall(r'TEST(?:_P)?\((\w+), (\w+)\)', path.read_text()))
    document = root / 'docs' / 'apic.md'
    rules, missing = 0, []
    for number, line in enumerate(document.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if len(cells) != 4 or not re.match(r'(table )?\d', cells[0]):
            continue
        rules += 1
        files, names = (re.findall(r'`([^`]+)`', cell) for cell in cells[2:])
        missing += [f'{document}:{number}: no file apic/{file}' for file in files if not (root / 'apic' / file).is_file()]
        missing += [f'{document}:{number}: no test {name}' for name in names if name not in tests]
        if not files or not names:
            missing.append(f'{document}:{number}: a rule without a file or a test')
    if rules < 80:
        missing.append(f'{document}: only {rules} rules; has the table changed its form?')
    print('\n'.join(missing) or f'{rules} rules, each with its file and tests')
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
