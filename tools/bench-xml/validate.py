#!/usr/bin/env python3
"""Validation beside libxml2: CPU microseconds per valid document that is parsed already, and the ratio.

    cargo build --release -p penstock-xsd --example bench_validate
    tools/bench-xml/validate.py [--rounds 5] [--milliseconds 300]

Every round measures each validator once, one after the other; the figure is the median of the rounds. libxml2 is
measured through libxml2-schema.c, compiled here.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from parse import ROOT, SIZES, measure

HERE = ROOT / "tools/bench-xml"


def document(size):
    """Orders of about `size` bytes."""
    text, number = '<orders xmlns="urn:bench:orders">', 0
    while number == 0 or len(text) < size:
        number += 1
        last = f"<limit>{number % 200}.50</limit>" if number % 2 else "<market>true</market>"
        text += (
            f'<order number="{number}" side="{"sell" if number % 3 else "buy"}"><symbol>S{number % 97}</symbol>'
            f"<buyer>buyer {number * 7 % 1000}</buyer><price>{number % 300}.{number % 100:02}</price>"
            f"<volume>{number * 13 % 5000 + 1}</volume><placed>2026-01-{number % 28 + 1:02}T10:00:00Z</placed>{last}</order>"
        )
    return text + "</orders>"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--milliseconds", type=int, default=300)
    options = options.parse_args()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/bench_validate"
    if not target.exists():
        sys.exit("bench_validate is not built, see --help")
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "libxml2-schema")
        source = str(HERE / "libxml2-schema.c")
        subprocess.run(["cc", "-O2", source, "-o", other, "-I/usr/include/libxml2", "-lxml2"], check=True)
        print(f"{'bytes':>7} {'ours':>9} {'libxml2':>9} {'ratio':>6}")
        for size in SIZES:
            text = document(size)
            path = os.path.join(folder, f"{size}.xml")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            engines = {"ours": target, "libxml2": other}
            figures = {name: [] for name in engines}
            for _ in range(options.rounds):
                for name, program in engines.items():
                    figures[name].append(measure([program, HERE / "schemas/orders.xsd", path], options.milliseconds))
            ours, theirs = (statistics.median(figures[name]) for name in engines)
            print(f"{len(text):7} {ours:9.2f} {theirs:9.2f} {theirs / ours:5.1f}x", flush=True)


if __name__ == "__main__":
    main()
