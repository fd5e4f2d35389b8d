"""Small GDELT files, as GDELT writes them."""

import gzip
import json
import zipfile
from pathlib import Path

from coreeval.tools.gdelt.rows import (
    ALL_NAMES,
    COLLECTION,
    DATE,
    EXTRAS,
    LOCATIONS,
    ORGANISATIONS,
    PERSONS,
    TRANSLATION,
    URL,
)

Row = dict[str, object]


def gkg_line(
    *,
    title: str = "Ministers agree to fund ten new ferries",
    url: str = "https://news.example/ferries",
    date: str = "20260610033000",
    published: str = "",
    collection: str = "1",
    persons: str = "",
    organisations: str = "",
    locations: str = "",
    all_names: str = "",
    translation: str = "",
) -> str:
    columns = [""] * 27
    columns[0] = f"{date}-1"
    columns[DATE], columns[COLLECTION], columns[URL] = date, collection, url
    columns[PERSONS], columns[ORGANISATIONS] = persons, organisations
    columns[LOCATIONS], columns[ALL_NAMES] = locations, all_names
    columns[TRANSLATION] = translation
    stamp = f"<PAGE_PRECISEPUBTIMESTAMP>{published}</PAGE_PRECISEPUBTIMESTAMP>" if published else ""
    columns[EXTRAS] = stamp + (f"<PAGE_TITLE>{title}</PAGE_TITLE>" if title else "")
    return "\t".join(columns)


def gal_line(title: str, url: str, date: str, desc: str = "", lang: str = "en") -> str:
    row = {"date": date, "url": url, "domain": "", "title": title, "desc": desc, "lang": lang}
    return json.dumps(row)


def listed(title: str, url: str, seen: str, language: str = "English") -> Row:
    return {"url": url, "title": title, "seendate": seen, "language": language}


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    data = "".join(line + end for line in lines).encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(path.stem, data)
    else:
        path.write_bytes(data)
    return path


def write_artlist(path: Path, *rows: Row, indent: int | None = None) -> Path:
    return write(path, json.dumps({"articles": rows}, indent=indent))
