#!/usr/bin/env python3
"""Tests of scripts/ and bench/: scripts_test.py SOURCE-ROOT BUILD-DIR."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = sys.argv[1], sys.argv[2]
BENCH_PROGRAMS = ("floor", "ipi", "sim_speed", "process_ratio", "rcu_read", "call_rcu_rate")


def bench_scripts():
    """Every file of bench/ that can be called."""
    folder = os.path.join(ROOT, "bench")
    return sorted(path for path in (os.path.join(folder, name) for name in os.listdir(folder))
                  if os.path.isfile(path) and os.access(path, os.X_OK))


def run(command, **more):
    # Elsewhere, so that no default (a folder named build) is there by chance.
    return subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60, check=False, **more)


def load_summary():
    """scripts/summarize_tests.py as a module."""
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("summary", os.path.join(ROOT, "scripts", "summarize_tests.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Benchmarks(unittest.TestCase):
    """Those that install packages would do so here, were they to begin before they look."""

    def assert_refused(self, command, **more):
        done = run(command, **more)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("--help tells more", done.stderr)
        self.assertEqual(done.stdout, "")

    def setUp(self):
        self.everything = bench_scripts() + [os.path.join(BUILD, "bench", name) for name in BENCH_PROGRAMS]
        # apt-get and the like leave a mark.
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.mark = os.path.join(self.folder.name, "called")
        for name in ("apt-get", "sudo", "dpkg-query"):
            path = os.path.join(self.folder.name, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho {name} >>'{self.mark}'\nexit 1\n")
            os.chmod(path, 0o755)
        self.environment = {**os.environ, "PATH": f"{self.folder.name}:{os.environ['PATH']}"}

    def test_there_are_scripts(self):
        self.assertGreaterEqual(len(bench_scripts()), 9)

    def test_help_of_each(self):
        for path in self.everything:
            with self.subTest(path):
                done = run([path, "--help"], env=self.environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(os.path.basename(path), done.stdout)
                self.assertEqual(done.stderr, "")
        self.assertFalse(os.path.exists(self.mark))

    def test_unknown_flags_are_refused(self):
        for path in bench_scripts():
            with self.subTest(path):
                self.assert_refused([path, "--wobble"], env=self.environment)
        self.assertFalse(os.path.exists(self.mark))

    def test_folders_without_a_build_are_refused(self):
        for path in bench_scripts():
            name = os.path.basename(path)
            if name == "smoke":
                continue
            payload = ["/bin/true"] if name == "payload-vs-qemu" else []
            with self.subTest(path):
                self.assert_refused([path, *payload, self.folder.name], env=self.environment)
        self.assertFalse(os.path.exists(self.mark))

    def test_numbers_are_numbers(self):
        for path in bench_scripts():
            name = os.path.basename(path)
            if name == "smoke":
                continue
            before = ["/bin/true", BUILD] if name == "payload-vs-qemu" else [BUILD]
            for number in ("x", "-1", "0x10", "99999999999"):
                with self.subTest(path, number=number):
                    self.assert_refused([path, *before, number], env=self.environment)
        self.assertFalse(os.path.exists(self.mark))

    def test_programs_refuse_what_is_no_number(self):
        for name in BENCH_PROGRAMS:
            if name != "process_ratio":
                with self.subTest(name):
                    self.assert_refused([os.path.join(BUILD, "bench", name), "x"])


class Build(unittest.TestCase):
    """`build` of scripts/setup, with a ninja that only says what it would do."""

    def said(self, dry_run):
        with tempfile.TemporaryDirectory() as folder:
            ninja = os.path.join(folder, "ninja")
            with open(ninja, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\ncase $* in *-n*) printf '{dry_run}';; esac\n")
            os.chmod(ninja, 0o755)
            done = run(["bash", "-c", f". '{ROOT}/scripts/setup'; build some-folder"],
                       env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_says_how_many_steps(self):
        self.assertIn("building some-folder: up to 401 steps", self.said("[1/401] Compiling\\n[401/401] Linking\\n"))

    def test_is_quiet_when_there_is_nothing_to_do(self):
        self.assertEqual(self.said("ninja: no work to do.\\n"), "")


class Results(unittest.TestCase):
    """summarize_tests.py over several build directories, whose tests meson would tell."""

    def summary(self, *directories):
        """The status and what was printed, of (name, results by test) pairs; None for no results at all."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = []
            for name, results in directories:
                logs = os.path.join(folder, name, "meson-logs")
                os.makedirs(logs)
                arguments.append(f"{name}={folder}/{name}" if arguments else f"{folder}/{name}")
                if results is None:
                    continue
                with open(os.path.join(logs, "testlog.junit.xml"), "w", encoding="utf-8") as junit:
                    junit.write("<testsuites/>")
                with open(os.path.join(logs, "testlog.json"), "w", encoding="utf-8") as log:
                    for test, result in results.items():
                        log.write(json.dumps({"name": f"sipi:threads / {test}", "result": result}) + "\n")
            meson = os.path.join(folder, "meson")
            with open(meson, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" """echo '[{"name": "a", "suite": ["sipi:threads"]}]'\n""")
            os.chmod(meson, 0o755)
            done = run([sys.executable, "-B", os.path.join(ROOT, "scripts", "summarize_tests.py"), *arguments],
                       env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        return done.returncode, done.stdout.splitlines()

    def test_later_directories_count_under_their_name(self):
        status, lines = self.summary(("build", {"a": "OK"}), ("TSan", {"a": "OK"}))
        self.assertEqual(status, 0)
        self.assertTrue(any(line.startswith("threads TSan  ") for line in lines), lines)
        self.assertEqual(lines[-1], "2 passed, 0 failed, 0 skipped")

    def test_a_failure_in_a_later_directory_fails_all(self):
        status, lines = self.summary(("build", {"a": "OK"}), ("TSan", {"a": "FAIL"}))
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")

    def test_a_directory_without_results_has_failed(self):
        status, lines = self.summary(("build", {"a": "OK"}), ("TSan", None))
        self.assertEqual(status, 1)
        self.assertTrue(any(line.startswith("failed: ") and line.endswith("no test has run") for line in lines), lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")


class Summary(unittest.TestCase):
    """The line about KVM tells those that lacked KVM from those that did not."""

    def line(self, *reasons):
        summary = load_summary()
        cases = [summary.Case("a", "passed", ""), summary.Case("b", "failed", "")]
        cases += [summary.Case("c", "skipped", reason) for reason in reasons]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            summary.print_summary({"kvm": cases})
        return out.getvalue().splitlines()[-1]

    def test_nothing_was_skipped(self):
        self.assertEqual(self.line(), "2 tests ran on KVM")

    def test_kvm_is_there(self):
        self.assertEqual(self.line("takes minutes", "takes minutes"),
                         "2 tests ran on KVM, 2 were skipped for other reasons than KVM (above)")

    def test_kvm_is_not_there(self):
        self.assertEqual(self.line("no usable /dev/kvm", "no KVM: it is not permitted", "takes minutes"),
                         "2 tests ran on KVM, 2 were skipped since KVM cannot be used here, 1 for other reasons (above)")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
