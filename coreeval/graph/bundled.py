"""The bundled demo: five small benchmarks and their news, with configs for the offline roles.

A sixth, with generated items and a generated series, is for PCR and NumLeak and has targets with
known memories. Four more, of the other kinds of task, have a recorded run.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml

from coreeval.errors import UsageError
from coreeval.tools.files import write_text

RecordedKind = Literal["choice", "answer", "summary"]
"""The kinds of task that the demo replays from recorded answers, because rules cannot write such
items."""
DATASETS: dict[str, dict[str, str]] = {
    "emotion": {"format": "tweeteval", "path": "emotion"},
    "irony": {"format": "tweeteval", "path": "irony"},
    "stance": {"format": "tweeteval", "path": "stance", "target": "climate"},
    "mrpc": {"format": "mrpc", "path": "mrpc"},
    "rte": {"format": "rte", "path": "rte"},
}
MEMORY, NUMBERS = "synthetic_memory", "synthetic_numbers"
REMEMBERING = ("offline:clean", "offline:finetuned", "offline:contaminated")
REFERENCES = tuple(f"offline:reference-{n}" for n in range(1, 7))
"""Classifiers of different abilities without memory, by which PCR separates difficulty from
memory."""
RECALLING = (
    "offline:memorizing",
    "offline:half-remembering",
    "offline:fluent",
    "offline:fabricating",
    "offline:guessing",
    "offline:refusing",
)
PROBES = ("value", "fictitious")
"""NumLeak's probes, on which its six verdicts are based."""
WINDOW = {"start": "2025-08-01", "end": "2026-10-01"}
"""The period of the bundled news, so that the demo's result does not depend on the day."""
RECORDED: Mapping[RecordedKind, tuple[str, ...]] = {
    "choice": ("quiz",),
    "answer": ("reading", "trivia"),
    "summary": ("reports",),
}
"""The benchmarks with a recorded run, by the kind of their task."""
_RECORDINGS = "recorded.tar.xz"
"""All recorded runs in one file: they share their prompts, so this takes a third of the space."""


def demo_data() -> Path:
    """Return the folder of the demo data, in the installed package or in the source tree."""
    installed = Path(str(resources.files("coreeval"))) / "_demo"
    source = Path(str(resources.files("coreeval"))).parent / "examples" / "demo"
    return installed if installed.is_dir() else source


def write_recording(name: str, folder: Path) -> Path:
    """Write the recorded run of a bundled benchmark as a cassette and return its path.

    Raises:
        UsageError: this Python cannot unpack it, because it was built without lzma.
        OSError: the cassette cannot be written.
    """
    import shutil
    import tarfile

    from coreeval.releases.cassettes.format import open_packed

    source, path = demo_data() / _RECORDINGS, folder / f"{name}.cassette"
    try:
        recordings = tarfile.open(source, "r:xz")  # noqa: SIM115 - opened apart from reading
    except tarfile.CompressionError:
        raise UsageError(
            "this Python was built without lzma, which unpacks the recorded runs",
            where=str(source),
            hint="use a Python that has the lzma module",
        ) from None
    with recordings, open_packed(path) as packed:
        lines = recordings.extractfile(f"{name}.jsonl")
        if lines is None:
            raise LookupError(f"{source} has no recorded run {name!r}")
        shutil.copyfileobj(lines, packed)
    return path


def write_configs(folder: Path) -> list[Path]:
    """Write a config for each task into a folder and return their paths."""
    return [_write_config(folder, task) for task in DATASETS]


def write_memory_config(folder: Path) -> Path:
    """Write the config of the demo in which PCR and NumLeak detect memorised generated data."""
    numbers = {"series": [str(demo_data() / NUMBERS / "series.yaml")], "probes": list(PROBES)}
    detect = {"evaluate": False, "pcr": {}, "numleak": numbers}
    dataset = {"format": "jsonl", "path": MEMORY}
    targets = [*map(_target, (*REMEMBERING, *RECALLING)), *map(_reference, REFERENCES)]
    return _write(folder, MEMORY, "emotion", dataset, targets, detect=detect)


def _write_config(folder: Path, task: str) -> Path:
    return _write(folder, task, task, DATASETS[task], [_target("offline:classifier")])


def _target(name: str) -> dict[str, str]:
    return {"model": name}


def _reference(name: str) -> dict[str, str]:
    return {"model": name, "role": "reference"}


def _write(
    folder: Path,
    name: str,
    task: str,
    dataset: Mapping[str, str],
    targets: Sequence[Mapping[str, str]],
    **more: object,
) -> Path:
    data = demo_data()
    config = {
        "name": f"demo-{name}",
        "task": task,
        "dataset": {**dataset, "path": str(data / dataset["path"]), "split": "test"},
        "knowledge": {"path": str(data / "news"), "window": WINDOW, "min_precision": "crawl"},
        "models": {"default": "offline", "targets": [dict(target) for target in targets]},
        **more,
    }
    path = folder / f"{name}.yaml"
    write_text(path, yaml.safe_dump(config, sort_keys=False))
    return path
