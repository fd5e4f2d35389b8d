"""A sheet as one page that works from a folder: nothing is fetched, nothing is sent."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from coreeval.evaluation.annotation.guideline import CRITERIA, INSTRUCTIONS, SOURCE
from coreeval.evaluation.annotation.sheets import SheetItem
from coreeval.tools.text import visible_value


def write_page(path: Path, items: Sequence[SheetItem], *, study: str, rater: str) -> None:
    """Write a sheet as a page that keeps the ratings in the browser and downloads them as CSV."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, finalize=visible_value, undefined=StrictUndefined, trim_blocks=True
    )
    style, script = _part("page.css"), _part("page.js")
    page = environment.from_string(_part("page.html.jinja")).render(
        study=study,
        rater=rater,
        items=items,
        instructions=INSTRUCTIONS,
        source=SOURCE,
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=_data(items, study, rater),
    )
    path.write_text(page, encoding="utf-8", newline="")


def _part(name: str) -> str:
    return resources.files("coreeval.evaluation.annotation").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(items: Sequence[SheetItem], study: str, rater: str) -> str:
    """Return what the script reads: in ASCII, and with no `<` that could end its element."""
    told = {
        "study": study,
        "rater": rater,
        "criteria": [{**each.model_dump(), "values": each.values} for each in CRITERIA],
        "items": [_shown(each) for each in items],
    }
    return json.dumps(told).replace("<", "\\u003c")


def _shown(each: SheetItem) -> dict[str, object]:
    return {
        "item": each.item,
        "fields": dict(each.fields),
        "question": each.question,
        "label": each.label,
        "meaning": each.meaning,
        "evidence": [one.model_dump() for one in each.evidence],
    }
