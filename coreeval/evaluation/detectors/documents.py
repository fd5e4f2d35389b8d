"""The documents of detectors that `coreeval detect NAME RUN` ran, next to the run's report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunCorrupt, RunStateError
from coreeval.evaluation.detectors import DOCUMENTED
from coreeval.evaluation.detectors.base import PLUGIN_DOCUMENT, Detector, Json
from coreeval.tools.files import parse_json, write_json
from coreeval.tools.workspace import RunFiles

ANY_PLUGIN: Final = f"{PLUGIN_DOCUMENT}*"
"""The pattern of the names of plugin detectors."""


def read_documents(files: RunFiles) -> dict[str, dict[str, Any]]:
    """Return the documents of a run by detector; detectors that were not run have none.

    Raises:
        RunCorrupt: a document is damaged.
    """
    found = {name: read_document(files, detector) for name, detector in DOCUMENTED.items()}
    found |= {path.stem: _read_plugin_document(files, path) for path in _list_plugin_files(files)}
    return {name: document for name, document in found.items() if document}


def _list_plugin_files(files: RunFiles) -> list[Path]:
    return sorted(files.detector_document(ANY_PLUGIN).parent.glob(f"{ANY_PLUGIN}.json"))


def _read_plugin_document(files: RunFiles, path: Path) -> dict[str, Any] | None:
    """Return the document of a plugin's findings, which defines its verdicts.

    Raises:
        RunCorrupt: the document lacks the definitions or is damaged.
    """
    from coreeval.evaluation.detectors.plugin_detector import restore_detector  # for few runs

    try:
        found: Any = parse_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
        detector = restore_detector(found)
        if detector.name != path.stem:
            raise ValueError(f"it is a finding of {detector.name}")
    except (ValueError, KeyError, TypeError) as error:
        raise RunCorrupt(
            f"the finding of a plugin is damaged: {_describe_error(error)}",
            where=str(path),
            hint="delete the file, and run the detector again",
        ) from None
    return read_document(files, detector)


def read_document(files: RunFiles, detector: Detector) -> dict[str, Any] | None:
    """Return a detector's document of a run; None if it was not run.

    Raises:
        RunCorrupt: the document is damaged, has a verdict that the detector does not give, or lacks
            data of its tables, for example if another version wrote it.
        RunStateError: another plugin of that name wrote it, or a version with other verdicts.
    """
    path = files.detector_document(detector.name)
    try:
        found: Any = parse_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
        if detector.plugin:
            _refuse_other_plugin(path, detector.plugin, found["plugin"])
        _check_document(detector, found)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunCorrupt(
            f"the finding of {detector.title} is damaged or from another version of CoreEval: "
            f"{_describe_error(error)}",
            where=str(path),
            hint=f"delete the file, and run the detector again: {detector.command}",
        ) from None
    return dict(found)


def _refuse_other_plugin(path: Path, own: Json, stored: Json) -> None:
    """Refuse to add findings of a plugin to those of another one, or of another version.

    Raises:
        RunStateError: the stored findings are from another plugin, or have other verdicts.
    """
    from coreeval.evaluation.detectors.plugin_detector import PluginStatement  # for few runs

    here, there = map(PluginStatement.model_validate, (own, stored))
    if here.origin.target != there.origin.target:
        raise RunStateError(
            f"the run has findings of another plugin that is also named {here.name}: "
            f"{there.origin}",
            where=str(path),
            hint="give one of the two plugins another `name`, or delete the file to lose these "
            "findings",
        )
    if here.verdicts != there.verdicts:
        raise RunStateError(
            f"the run has findings of another version of {here.origin}, with the verdicts "
            f"{', '.join(there.verdicts)}; now they are {', '.join(here.verdicts)}",
            where=str(path),
            hint="delete the file, and run the detector again for all targets",
        )


def _check_document(detector: Detector, document: Any) -> None:  # noqa: ANN401 - from a file
    """Raise an error unless a document has the data for findings and tables."""
    for each in document["targets"]:
        "".join([each["target"], each["reason"], each.get("caveat", "")])
        if each["verdict"] not in detector.verdicts:
            raise ValueError(f"{detector.title} has no verdict {each['verdict']!r}")
    detector.make_tables(document)


def _describe_error(error: Exception) -> str:
    """Return a one-line description of what is missing or wrong."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return f"{type(error).__name__}: {error}"


def write_document(
    files: RunFiles, detector: Detector, found: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Add findings on targets, by name, to a detector's document of a run, and return it.

    Targets that were not asked this time keep their findings.
    """
    before = read_document(files, detector) or {"targets": []}
    targets = {each["target"]: each for each in before["targets"]}
    targets |= {name: {"target": name, **each} for name, each in found.items()}
    document = {
        "detector": detector.name,
        "question": detector.question,
        "targets": list(targets.values()),
        **({"plugin": detector.plugin} if detector.plugin else {}),
    }
    write_json(files.detector_document(detector.name), document)
    return document
