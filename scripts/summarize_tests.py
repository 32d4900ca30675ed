#!/usr/bin/env python3
"""Counts the cases of the last `meson test` runs and prints them by suite: summarize_tests.py DIR [NAME=DIR...]

The arguments are build directories; the suites of a named one go with its name. Each case of a GoogleTest program
counts; any other program counts as one case, and a program that ended badly without saying which case failed (a crash,
a timeout) as one failure, as does a directory in which no test has run. The last line is "N passed, N failed, N
skipped". Exits with 1 if something failed or nothing passed.
"""

import collections
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

Case = collections.namedtuple("Case", "name result reason")
SUITES_ON_KVM = ("kvm", "e2e", "bench")
# What tests say that skip themselves for want of KVM.
NO_KVM = re.compile(r"/dev/kvm|no KVM")


def test_name(text):
    """The test's own name in "project:suite / test"."""
    return text.split(" / ")[-1]


def last_line(text):
    """The last line of a text, for use as a reason."""
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else "no reason given"


def googletest_case(element):
    """One <testcase> of GoogleTest's part of the JUnit file; None if it was disabled."""
    if element.get("status") == "notrun":
        return None
    name = f'{element.get("classname")}.{element.get("name")}'
    if element.find("failure") is not None or element.find("error") is not None:
        return Case(name, "failed", "")
    skipped = element.find("skipped")
    return Case(name, "passed", "") if skipped is None else Case(name, "skipped", last_line(skipped.get("message")))


def whole_program_case(name, test):
    """A program as one case, from meson's own record of it."""
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        return Case(name, "passed", "")
    if test["result"] == "SKIP":
        return Case(name, "skipped", last_line(test.get("stdout")))
    return Case(f"{name} as a whole", "failed", test["result"])


def suites_of_tests(build_dir):
    """Maps the name of each test to its suite."""
    text = subprocess.run(["meson", "introspect", "--tests", build_dir], check=True, capture_output=True).stdout
    return {test["name"]: test["suite"][-1].split(":")[-1] if test["suite"] else "other" for test in json.loads(text)}


def read_cases(build_dir):
    """All cases by the name of their test. A folder without results, as after a failed build, is a failed case."""
    cases = collections.defaultdict(list)
    logs = os.path.join(build_dir, "meson-logs")
    if not os.path.exists(os.path.join(logs, "testlog.json")):
        return {build_dir: [Case(build_dir, "failed", "no test has run")]}
    for group in ElementTree.parse(os.path.join(logs, "testlog.junit.xml")).getroot().findall("testsuite"):
        # GoogleTest's groups are "project.project:suite / test.GoogleTestSuite"; the group of all other programs is
        # named after the project alone.
        if " / " in group.get("name"):
            found = map(googletest_case, group.findall("testcase"))
            cases[test_name(group.get("name").rsplit(".", 1)[0])] += [case for case in found if case is not None]
    with open(os.path.join(logs, "testlog.json"), encoding="utf-8") as log:
        for test in map(json.loads, log):
            name = test_name(test["name"])
            case = whole_program_case(name, test)
            told = any(known.result == "failed" for known in cases[name])
            if not cases[name] or (case.result == "failed" and not told):
                cases[name].append(case)
    return cases


def kvm_line(on_kvm):
    """How many of the tests that need KVM ran, and whether it was KVM that the others lacked."""
    skipped = [case for case in on_kvm if case.result == "skipped"]
    lacking = sum(NO_KVM.search(case.reason) is not None for case in skipped)
    line = f"{len(on_kvm) - len(skipped)} tests ran on KVM"
    if lacking:
        line += f", {lacking} were skipped since KVM cannot be used here"
    if len(skipped) > lacking:
        line += f", {len(skipped) - lacking} for other reasons (above)" if lacking else (
            f", {len(skipped)} were skipped for other reasons than KVM (above)")
    return line


def print_summary(by_suite):
    """Prints everything but the last line."""
    for suite, cases in sorted(by_suite.items()):
        of = collections.Counter(case.result for case in cases)
        where = " (on KVM)" if suite in SUITES_ON_KVM else ""
        print(f'{suite + where:16} {of["passed"]:5} passed {of["failed"]:4} failed {of["skipped"]:4} skipped')
    everything = [case for cases in by_suite.values() for case in cases]
    reasons = collections.Counter(case.reason for case in everything if case.result == "skipped")
    for reason, count in reasons.most_common():
        print(f"skipped {count}: {reason if len(reason) <= 200 else reason[:197] + chr(0x2026)}")
    for case in everything:
        if case.result == "failed":
            print(f"failed: {case.name} {case.reason}".rstrip())
    print(kvm_line([case for suite in SUITES_ON_KVM for case in by_suite.get(suite, ())]))


def main():
    by_suite = collections.defaultdict(list)
    for argument in sys.argv[1:]:
        name, _, build_dir = argument.rpartition("=")
        by_test = read_cases(build_dir)
        suites = suites_of_tests(build_dir) if build_dir not in by_test else {}
        for test, cases in by_test.items():
            by_suite[f'{suites.get(test, "other")} {name}'.rstrip()] += cases
    print_summary(by_suite)
    counts = collections.Counter(case.result for cases in by_suite.values() for case in cases)
    print(f'{counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} skipped')
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
