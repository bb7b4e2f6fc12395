#!/usr/bin/env python3
"""Transformation, bytes in to bytes out, beside libxslt (and Xalan XSLTC): CPU microseconds per document and ratios.

    cargo build --release -p penstock-xslt --example bench_transform
    tools/bench-xml/transform.py [--rounds 5] [--milliseconds 300] [--xalan JARS]

Every round measures each engine once, one after the other, so that what else the machine does hits all of them; the
figure is the median of the rounds. Both times include parsing the source and serialising the result. libxslt is
measured through libxslt.c, compiled here; without a C compiler or its headers its columns stay empty, with a note.
Xalan's XSLTC runs on a warm JVM when --xalan names a folder with xalan.jar, serializer.jar, bcel.jar and commons-lang3.jar
(Maven Central has them), once per document and for half a minute: before ten seconds the figure is that of a cold one.
The stylesheets are ours; those of the published proxy tests are measured too when ../shared is there.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/bench-xml"
SIZES = [500, 1_000, 10_000, 100_000]
# The first half warms up.
XSLTC_MILLISECONDS = 30_000


def message(size, body, item):
    """A SOAP message of about `size` bytes with as many items as fit."""
    head = f'<env:Envelope xmlns:env="http://schemas.xmlsoap.org/soap/envelope/"><env:Body>{body[0]}'
    tail = f"{body[1]}</env:Body></env:Envelope>"
    text, number = head, 0
    while number == 0 or len(text) + len(tail) < size:
        number += 1
        text += item(number)
    return text + tail


def sell_list(names):
    root, entry, *fields = names

    def item(number):
        values = [f"S{number % 97}", f"owner{number}", f"140.{number % 100:02}", str(2000 + number)]
        return f"<{entry}>" + "".join(f"<{n}>{v}</{n}>" for n, v in zip(fields, values)) + f"</{entry}>"

    return lambda size: message(size, (f'<s:{root} xmlns:s="urn:bench:stock">', f"</s:{root}>"), item)


def shared_cases(folder):
    """The stylesheets of the published tests with messages of their vocabulary, when they are there."""
    place = ROOT.parent / "shared/scenarios/integration"
    cases = []
    for name, root, names in (
        ("xslt_transform-1.0.0.xml", "skcotSyub", ["redro", "lobmys", "DIreyub", "ecirp", "emulov"]),
        ("xslt_transform_reverse-1.0.0.xml", "buyStocks", ["order", "symbol", "buyerID", "price", "volume"]),
    ):
        if not (place / name).exists():
            continue
        text = (place / name).read_text()
        stylesheet = re.search(r"<xsl:stylesheet.*</xsl:stylesheet>", text, re.S).group(0)
        target = os.path.join(folder, name)
        pathlib.Path(target).write_text(stylesheet)

        def document(size, root=root, names=names):
            def item(number):
                values = ["IBM", f"indika{number}", f"140.{number % 100:02}", str(2000 + number)]
                return f"<{names[0]}>" + "".join(f"<{n}>{v}</{n}>" for n, v in zip(names[1:], values)) + f"</{names[0]}>"

            body = (f'<m:{root} xmlns:m="http://services.samples/xsd">', f"</m:{root}>")
            return message(size, body, item)

        cases.append((name.split("-")[0], target, document))
    return cases


def libxslt(folder):
    """The compiled harness, or None."""
    target = os.path.join(folder, "libxslt")
    flags = []
    for tool, fallback in (("xml2-config", "-I/usr/include/libxml2 -lxml2"), ("xslt-config", "-lxslt")):
        try:
            flags += subprocess.run([tool, "--cflags", "--libs"], capture_output=True, text=True, check=True).stdout.split()
        except (OSError, subprocess.CalledProcessError):
            flags += fallback.split()
    command = ["cc", "-O2", str(HERE / "libxslt.c"), "-o", target, *flags]
    return target if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def xsltc(folder, jars):
    """The command that runs XSLTC, or None."""
    if jars is None:
        return None
    path = os.pathsep.join([*map(str, sorted(pathlib.Path(jars).glob("*.jar"))), folder])
    built = subprocess.run(["javac", "-cp", path, "-d", folder, str(HERE / "Xsltc.java")], capture_output=True, check=False)
    return ["java", "-cp", path, "Xsltc"] if built.returncode == 0 else None


def measure(command, milliseconds):
    return float(subprocess.run([*command, str(milliseconds)], capture_output=True, text=True, check=True).stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--milliseconds", type=int, default=300)
    options.add_argument("--xalan", help="folder with Xalan's jars")
    options = options.parse_args()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/bench_transform"
    if not target.exists():
        sys.exit("bench_transform is not built, see --help")
    with tempfile.TemporaryDirectory() as folder:
        engines = {"ours": [str(target)]}
        other = libxslt(folder)
        if other is None:
            print("libxslt is not measured: its headers or a C compiler are missing")
        else:
            engines["libxslt"] = [other]
        java = xsltc(folder, options.xalan)
        if java is None:
            print("XSLTC is not measured: --xalan names no folder with its jars, or there is no javac")
        else:
            engines["xsltc"] = java
        cases = [
            ("rename", str(HERE / "stylesheets/rename.xsl"), sell_list(["sellList", "entry", "name", "owner", "cost", "amount"])),
            ("rename-back", str(HERE / "stylesheets/rename-back.xsl"), sell_list(["tsiLlles", "yrtne", "eman", "renwo", "tsoc", "tnuoma"])),
        ]
        shared = shared_cases(folder)
        if not shared:
            print("the published stylesheets are not measured: ../shared is not there")
        others = [name for name in engines if name != "ours"]
        print(f"{'stylesheet':>24} {'bytes':>7} {'ours':>9}" + "".join(f" {name:>9} {'ratio':>6}" for name in others))
        for name, stylesheet, document in cases + shared:
            for size in SIZES:
                text = document(size)
                path = os.path.join(folder, "source.xml")
                pathlib.Path(path).write_text(text)
                figures = {engine: [] for engine in engines}
                for number in range(options.rounds):
                    for engine, command in engines.items():
                        if engine != "xsltc":
                            figures[engine].append(measure([*command, stylesheet, path], options.milliseconds))
                        elif number == 0:
                            figures[engine].append(measure([*command, stylesheet, path], XSLTC_MILLISECONDS))
                medians = {engine: statistics.median(list) for engine, list in figures.items()}
                row = "".join(f" {medians[engine]:9.2f} {medians[engine] / medians['ours']:5.1f}x" for engine in others)
                print(f"{name:>24} {len(text):7} {medians['ours']:9.2f}{row}", flush=True)


if __name__ == "__main__":
    main()
