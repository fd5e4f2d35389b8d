"""Writes JUnit XML, one test case after the other, for CI servers."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

JUnitEnding = Literal["passed", "failure", "skipped"]
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent (its production 2, Char)."""


@dataclass(frozen=True, kw_only=True)
class JUnitCase:
    """One test case."""

    group: str
    name: str
    ending: JUnitEnding = "passed"
    kind: str = ""
    """The kind of failure or skip, in one word."""
    message: str = ""


def write_suite(
    path: Path, *, name: str, moment: datetime, cases: Callable[[], Iterable[JUnitCase]]
) -> int:
    """Write a JUnit suite and return its number of cases.

    Args:
        path: The file to write.
        name: The name of the suite.
        moment: When the check was made.
        cases: Returns the cases; called twice, first to count them and then to write them.
    """
    counts = Counter(case.ending for case in cases())
    totals = {
        "tests": str(counts.total()),
        "failures": str(counts["failure"]),
        "errors": "0",
        "skipped": str(counts["skipped"]),
    }
    named = {"name": _replace_invalid(name), "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}"}
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write(_open_suite("testsuites", totals))
        file.write(_open_suite("testsuite", named | totals))
        for case in cases():
            file.write(ET.tostring(_element(case), encoding="unicode") + "\n")
        file.write("</testsuite>\n</testsuites>\n")
    return counts.total()


def _element(case: JUnitCase) -> ET.Element:
    element = ET.Element(
        "testcase", classname=_replace_invalid(case.group), name=_replace_invalid(case.name)
    )
    if case.ending != "passed":
        ET.SubElement(element, case.ending, type=case.kind, message=_replace_invalid(case.message))
    return element


def _open_suite(tag: str, attributes: Mapping[str, str]) -> str:
    whole = ET.tostring(ET.Element(tag, dict(attributes)), encoding="unicode")
    return whole.removesuffix(" />") + ">\n"


def _replace_invalid(text: str) -> str:
    """Replace each character that XML cannot hold with U+FFFD."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
