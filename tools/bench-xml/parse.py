#!/usr/bin/env python3
"""Parsing, writing and routing beside libxml2: CPU microseconds per document and ratios.

    cargo build --release -p penstock-xml -p penstock-xpath --examples
    tools/bench-xml/parse.py [--rounds 5] [--milliseconds 300]

Every round measures each engine once, one after the other, so that what else the machine does hits all of them; the
figure is the median of the rounds. libxml2 is measured through libxml2.c, compiled here; without a C compiler or
libxml2's headers its columns stay empty, with a note.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = [500, 1_000, 10_000, 100_000]
NEAR, FAR = "//order[1]/symbol", "//last/symbol"


def document(size, pretty=False):
    """A SOAP message of at most `size` bytes with as many orders as fit."""
    end_of_line, indent = ("\n", "    ") if pretty else ("", "")
    head = (
        '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header/><soapenv:Body>'
        f'<m:buyStocks xmlns:m="http://services.samples/xsd">{end_of_line}'
    )
    tail = "<last><symbol>END</symbol></last></m:buyStocks></soapenv:Body></soapenv:Envelope>"
    text, number = head, 0
    while True:
        fields = [
            ("symbol", f"S{number % 97}"),
            ("buyerID", f"buyer{number * 7 % 1000}"),
            ("price", f"{number % 300}.{number % 100:02}"),
            ("volume", str(number * 13 % 5000)),
        ]
        inner = "".join(f"{indent}{indent}<{name}>{value}</{name}>{end_of_line}" for name, value in fields)
        order = f"{indent}<order>{end_of_line}{inner}{indent}</order>{end_of_line}"
        if number and len(text) + len(order) + len(tail) > size:
            return text + tail
        text, number = text + order, number + 1


def libxml2(folder):
    """The compiled harness, or None."""
    target = os.path.join(folder, "libxml2")
    flags = subprocess.run(["xml2-config", "--cflags", "--libs"], capture_output=True, text=True, check=False)
    options = flags.stdout.split() if flags.returncode == 0 else ["-I/usr/include/libxml2", "-lxml2"]
    source = str(ROOT / "tools/bench-xml/libxml2.c")
    built = subprocess.run(["cc", "-O2", source, "-o", target, *options], capture_output=True, text=True, check=False)
    return target if built.returncode == 0 else None


def measure(command, milliseconds):
    return float(subprocess.run([*command, str(milliseconds)], capture_output=True, text=True, check=True).stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--milliseconds", type=int, default=300)
    options = options.parse_args()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples"
    parse, stream = target / "bench_parse", target / "bench_stream"
    missing = [path.name for path in (parse, stream) if not path.exists()]
    if missing:
        sys.exit(f"{', '.join(missing)} is not built, see --help")
    with tempfile.TemporaryDirectory() as folder:
        other = libxml2(folder)
        if other is None:
            print("libxml2 is not measured: its headers or a C compiler are missing")
        print(f"{'document':>18} {'tree':>9} {'libxml2':>9} {'ratio':>6} {'events':>9} {'write':>9} {'libxml2':>9} {'ratio':>6}"
              f" {'route near':>11} {'route far':>10} {'one pass':>9}")
        for size, pretty in [(size, False) for size in SIZES] + [(100_000, True)]:
            text = document(size, pretty)
            path = os.path.join(folder, f"{size}-{pretty}.xml")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            commands = {
                "tree": [parse, "tree", path],
                "events": [parse, "events", path],
                "write": [parse, "write", path],
                "near": [stream, "stream", NEAR, path],
                "far": [stream, "stream", FAR, path],
                "pass": [stream, "pass", FAR, path],
            }
            if other:
                commands |= {"libxml2 tree": [other, "parse", path], "libxml2 write": [other, "write", path]}
            rounds = {name: [] for name in commands}
            for _ in range(options.rounds):
                for name, command in commands.items():
                    rounds[name].append(measure(command, options.milliseconds))
            median = {name: statistics.median(figures) for name, figures in rounds.items()}

            def beside(name):
                figure = median.get(f"libxml2 {name}")
                return f"{figure:9.2f} {figure / median[name]:6.1f}" if figure else f"{'':9} {'':6}"

            label = f"{len(text)} {'indented' if pretty else 'bytes'}"
            print(f"{label:>18} {median['tree']:9.2f} {beside('tree')} {median['events']:9.2f} {median['write']:9.2f}"
                  f" {beside('write')} {median['near']:11.3f} {median['far']:10.2f} {median['pass']:9.2f}", flush=True)


if __name__ == "__main__":
    main()
