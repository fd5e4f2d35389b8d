"""JUnit: a test case for each sample, for the CI servers that show such reports.

A sample that failed is a failure. One that ended without a new text for any other reason is skipped
with that reason: a verdict is no error.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from coreeval.releases.exports.material import ExportedSample, Material

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write (its production 2, Char)."""


def write_junit(material: Material, out: Path) -> dict[str, int]:
    """Write junit.xml; return its number of test cases."""
    counts = Counter(kind for kind, _ in map(_ending, material.samples()))
    totals = {
        "tests": str(counts.total()),
        "failures": str(counts["failure"]),
        "errors": "0",
        "skipped": str(counts["skipped"]),
    }
    name = {"name": _plain(material.name), "timestamp": f"{material.moment:%Y-%m-%dT%H:%M:%S}"}
    with (out / "junit.xml").open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write(_opening("testsuites", totals))
        file.write(_opening("testsuite", name | totals))
        for case in _cases(material):
            file.write(ET.tostring(case, encoding="unicode") + "\n")
        file.write("</testsuite>\n</testsuites>\n")
    return {"testcases": counts.total()}


def _cases(material: Material) -> Iterator[ET.Element]:
    group = _plain(f"{material.name}.{material.split}")
    for sample in material.samples():
        case = ET.Element("testcase", classname=group, name=_plain(sample.id))
        kind, reason = _ending(sample)
        if kind != "passed":
            ET.SubElement(case, kind, type=sample.outcome, message=_plain(reason))
        yield case


def _ending(sample: ExportedSample) -> tuple[str, str]:
    """Return what a sample is to JUnit (`passed`, `failure` or `skipped`), and why."""
    reason = f"{sample.outcome}: {sample.reason}" if sample.reason else sample.outcome
    if sample.outcome == "failed":
        return "failure", reason
    if sample.outcome != "accepted":
        return "skipped", reason
    return ("passed", "") if sample.updated else ("skipped", "accepted, but withheld")


def _opening(tag: str, attributes: dict[str, str]) -> str:
    whole = ET.tostring(ET.Element(tag, attributes), encoding="unicode")
    return whole.removesuffix(" />") + ">\n"


def _plain(text: str) -> str:
    """Return a text with a replacement character for each that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
