"""`dataset_info` of a dataset card: columns, rows and bytes, which hubs show without the data."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coreeval.config.user_files import parse_yaml
from coreeval.releases.arms import shard_name
from coreeval.releases.markdown import dump_front_matter

_FENCE = "---\n"
_FENCES = re.compile(f"^{_FENCE}", re.MULTILINE)
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
"""Size categories of dataset cards, each by the number of rows that it ends before."""
Info = dict[str, Any]


def add_dataset_info(card: str, folder: Path, split: str) -> str:
    """Return a card whose front matter describes the files of a folder.

    Args:
        card: Text with YAML between two lines of dashes at its beginning.
        folder: Has one folder for each config, with one parquet file for the split.
        split: The split that the files hold.
    """
    _, head, body = _FENCES.split(card, 2)
    front: Info = parse_yaml(head)
    info = list(iter_dataset_info(folder, split))
    rows = max((one["splits"][0]["num_examples"] for one in info), default=0)
    front |= {
        "size_categories": [size_category(rows)],
        "configs": [one for one in front["configs"] if one["config_name"] in _names(info)],
        "dataset_info": info,
    }
    head = dump_front_matter(front)
    return f"{_FENCE}{head}{_FENCE}{body}"


def _names(info: list[Info]) -> set[str]:
    return {one["config_name"] for one in info}


def iter_dataset_info(folder: Path, split: str) -> Iterator[Info]:
    """Yield what the card says of each config, by their names; one without rows is none."""
    for file in sorted(folder.glob(f"*/{shard_name(split)}")):
        info = _info(file, split)
        if info["splits"][0]["num_examples"]:
            yield info


def size_category(rows: int) -> str:
    """Return the size category of a card for a number of rows."""
    return next((name for end, name in _SIZES if rows < end), "n>10M")


def _info(file: Path, split: str) -> Info:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # slow to import

    with pq.ParquetFile(file) as table:
        size = sum(batch.nbytes for batch in table.iter_batches())
        rows, schema = table.metadata.num_rows, table.schema_arrow
    kinds = {field.name: str(field.type) for field in schema}
    return {
        "config_name": file.parent.name,
        "features": list(_features(kinds, schema.metadata or {})),
        "splits": [{"name": split, "num_bytes": size, "num_examples": rows}],
        "download_size": file.stat().st_size,
        "dataset_size": size,
    }


def _features(kinds: Mapping[str, str], metadata: Mapping[bytes, bytes]) -> Iterator[Info]:
    """Yield columns as `datasets` writes them: of ClassLabels the names, of lists the kind."""
    told = json.loads(metadata.get(b"huggingface", b"{}"))
    declared = told.get("info", {}).get("features", {})
    for name, kind in kinds.items():
        labels = declared.get(name, {}).get("names")
        if labels:
            names = {str(number): label for number, label in enumerate(labels)}
            yield {"name": name, "dtype": {"class_label": {"names": names}}}
        elif kind.startswith("list"):
            yield {"name": name, "list": kind.rpartition(" ")[2].rstrip(">")}
        else:
            yield {"name": name, "dtype": kind}
