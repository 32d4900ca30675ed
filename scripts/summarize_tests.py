#!/usr/bin/env python3
"""Counts the cases of the last `meson test` run and prints them by suite.

The argument is the build directory. Each case of a GoogleTest program counts; any other program counts as one case,
and a program that ended badly without saying which case failed (a crash, a timeout) as one failure. The last line is
"N passed, N failed, N skipped". Exits with 1 if something failed or nothing passed.
"""

import collections
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

Case = collections.namedtuple("Case", "name result reason")
SUITES_ON_KVM = ("kvm", "e2e", "bench")


def outcome(case):
    """One <testcase> of meson's or GoogleTest's JUnit file; None if it was disabled."""
    if case.get("status") == "notrun":
        return None
    name = f'{case.get("classname")}.{case.get("name")}'
    if case.find("failure") is not None or case.find("error") is not None:
        return Case(name, "failed", "")
    skipped = case.find("skipped")
    if skipped is None:
        return Case(name, "passed", "")
    lines = (skipped.get("message") or case.findtext("system-out") or "no reason given").strip().splitlines()
    return Case(name, "skipped", lines[-1])


def suites_of_tests(build_dir):
    """Maps the name of each test to its suite."""
    text = subprocess.run(["meson", "introspect", "--tests", build_dir], check=True, capture_output=True).stdout
    return {test["name"]: test["suite"][-1].split(":")[-1] if test["suite"] else "other" for test in json.loads(text)}


def read_cases(build_dir):
    """All cases by the name of their test."""
    cases = collections.defaultdict(list)
    junit = ElementTree.parse(os.path.join(build_dir, "meson-logs", "testlog.junit.xml"))
    for group in junit.getroot().findall("testsuite"):
        # "project.test.GoogleTestSuite", or "project" for all programs that are not GoogleTest's.
        parts = group.get("name").split(".")
        for element in group.findall("testcase"):
            case = outcome(element)
            if case is not None:
                cases[parts[1] if len(parts) > 1 else element.get("name")].append(case)
    with open(os.path.join(build_dir, "meson-logs", "testlog.json"), encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1].split(":")[-1]
            bad = test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
            if bad and not any(case.result == "failed" for case in cases[name]):
                cases[name].append(Case(f"{name} as a whole", "failed", test["result"]))
    return cases


def print_summary(by_suite):
    """Prints everything but the last line."""
    for suite, cases in sorted(by_suite.items()):
        of = collections.Counter(case.result for case in cases)
        where = " (on KVM)" if suite in SUITES_ON_KVM else ""
        print(f'{suite + where:16} {of["passed"]:5} passed {of["failed"]:4} failed {of["skipped"]:4} skipped')
    everything = [case for cases in by_suite.values() for case in cases]
    reasons = collections.Counter(case.reason for case in everything if case.result == "skipped")
    for reason, count in reasons.most_common():
        print(f"skipped {count}: {reason}")
    for case in everything:
        if case.result == "failed":
            print(f"failed: {case.name} {case.reason}".rstrip())
    on_kvm = [case for suite in SUITES_ON_KVM for case in by_suite.get(suite, ())]
    ran = sum(case.result != "skipped" for case in on_kvm)
    print(f"{ran} tests ran on KVM, {len(on_kvm) - ran} that need it were skipped")


def main():
    build_dir = sys.argv[1]
    suites = suites_of_tests(build_dir)
    by_suite = collections.defaultdict(list)
    for test, cases in read_cases(build_dir).items():
        by_suite[suites.get(test, "other")] += cases
    print_summary(by_suite)
    counts = collections.Counter(case.result for cases in by_suite.values() for case in cases)
    print(f'{counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} skipped')
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
