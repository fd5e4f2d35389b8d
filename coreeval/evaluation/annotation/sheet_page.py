"""The sheet of a rater as a page that works from a folder, without network requests."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from coreeval.evaluation.annotation.criteria import LABEL_STUDY, NO_OPTION, StudyDesign
from coreeval.evaluation.annotation.sheets import SheetItem
from coreeval.tasks.kinds.choice import LETTERS
from coreeval.tools.pages import open_templates


def write_sheet_page(
    path: Path,
    items: Sequence[SheetItem],
    *,
    study: str,
    rater: str,
    design: StudyDesign = LABEL_STUDY,
) -> None:
    """Write a sheet as a page that stores the ratings in the browser and downloads them as CSV."""
    style, script = _read_asset("page.css"), _read_asset("page.js")
    template = open_templates("coreeval.evaluation.annotation").get_template("page.html.jinja")
    page = template.render(
        study=study,
        rater=rater,
        items=items,
        instructions=design.instructions,
        source=design.source,
        options=any(each.options for each in items),
        style=style,
        style_hash=_hash_source(style),
        script=script,
        script_hash=_hash_source(script),
        data=_script_data(items, study, rater, design),
    )
    path.write_text(page, encoding="utf-8", newline="")


def _read_asset(name: str) -> str:
    return resources.files("coreeval.evaluation.annotation").joinpath(name).read_text("utf-8")


def _hash_source(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _script_data(items: Sequence[SheetItem], study: str, rater: str, design: StudyDesign) -> str:
    """Return the data for the page's script, in ASCII and without any `<` that ends its element."""
    told = {
        "study": study,
        "rater": rater,
        "gold": design.gold_title,
        "none": NO_OPTION,
        "letters": LETTERS,
        "criteria": [{**each.model_dump(), "values": each.values} for each in design.criteria],
        "items": [_item_data(each) for each in items],
    }
    return json.dumps(told).replace("<", "\\u003c")


def _item_data(each: SheetItem) -> dict[str, object]:
    return {
        "item": each.item,
        "fields": dict(each.fields),
        "question": each.question,
        "label": each.label,
        "meaning": each.meaning,
        "evidence": [one.model_dump() for one in each.evidence],
        "options": each.options,
    }
