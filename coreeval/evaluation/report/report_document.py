"""Builds report.json with its limits in plain words; writes it, the page and items.csv."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from coreeval.config import Config, ModelsConfig
from coreeval.evaluation.detectors import list_target_detectors
from coreeval.evaluation.detectors.base import DOCUMENTS
from coreeval.evaluation.grading import SCORING
from coreeval.evaluation.report.definitions import DEFINITIONS, Highlight, define_terms
from coreeval.evaluation.report.provenance import (
    EvidenceUsed,
    describe_benchmark,
    describe_notes,
    describe_roles,
    describe_settings,
    describe_targets,
)
from coreeval.evaluation.report.report_page import report_page
from coreeval.meanings import COMPARABILITY
from coreeval.schema import Task
from coreeval.tools.files import replacing, write_json, write_text
from coreeval.tools.private_folders import hide_private_folders, list_private_folders
from coreeval.tools.stores.run_overview import Overview
from coreeval.tools.text import escape_formula, visible
from coreeval.tools.workspace import RunFiles

if TYPE_CHECKING:
    from coreeval.evaluation.agreement import MemoryEvidence
    from coreeval.evaluation.scores import ArmTable


Json = Mapping[str, Any]
FEW: Final = 100
"""With this many samples, the interval of a share of one half is about 0.2 wide (own choice)."""
SHIFTED: Final = 0.1
"""A tenth of the updated arm would need other labels to restore the balance (own choice)."""
_ALWAYS: Final = (
    "The updated arm contains the samples for which news was found and that passed the checks; "
    "it is not a random part of the benchmark. Compare arms on the samples that they share.",
    "A fact is what a headline or a one-sentence description states on its date. Nobody verified "
    "whether it was true or stayed true.",
    "The judges are programs. The label-noise bound accounts for their errors on labels; their "
    "errors on facts have no bound.",
    "A drop from original to updated is not proof of memory: new facts can be harder to read. A "
    "verdict of memory relies on other targets losing less on the same texts. A weakness that only "
    "one target has, for rewordings or for new facts, would look like memory.",
)


def list_limits(document: Json) -> list[str]:
    """Return sentences on the limits of a report, derived from the report alone."""
    own = [sentence for look in _OWN for sentence in look(document)]
    measured = bool(document["arms"]["targets"])
    return own + [each for each in _ALWAYS if measured or "drop" not in each]


def _comparable(of: Json) -> Iterator[str]:
    """Yield the differences of the arms, and that scores on them then say little about memory."""
    found = of.get("comparability")
    if found is None or found["verdict"] == "comparable":
        return
    yield f"{COMPARABILITY[found['verdict']]} {' '.join(found['sentences'])}"


def _rules(of: Json) -> Iterator[str]:
    if of["offline_roles"]:
        who = ", ".join(of["offline_roles"]).replace("_", " ")
        yield (
            f"Rules played these roles: {who}. The rules demonstrate the process, not what a "
            "model would write or judge."
        )


def _part(of: Json) -> Iterator[str]:
    limit, pending = of["benchmark"]["limit"], of["counts"]["pending"]
    if limit is not None and not of["benchmark"]["subset"]:
        yield (
            f"Only the first {limit} samples were used (--limit); they may differ from the other "
            "samples."
        )
    if pending:
        yield f"{_count_done(pending)} unfinished when this report was written."
    if of["counts"]["failed"]:
        yield f"{_count(of['counts']['failed'])} failed; retry them with `coreeval retry`."


def _few(of: Json) -> Iterator[str]:
    accepted = of["counts"]["accepted"]
    if 0 < accepted < FEW:
        yield (
            f"Only {_count_done(accepted)} accepted: rely on the intervals, not on the estimates."
        )
    shift = of["quality"]["balance_shift"]
    if shift is not None and shift > SHIFTED:
        graded = SCORING[of["arms"].get("kind", "labels")].grade is not None
        moved = "all scores" if graded else "accuracy and, to a lesser degree, macro-F1"
        yield (
            f"The {'types of answers' if graded else 'labels'} of the updated arm are not "
            f"distributed like those of the benchmark. The shift of {shift:.2f} affects {moved}."
        )


def _noise(of: Json) -> Iterator[str]:
    if of["counts"]["accepted"] and of["quality"]["label_noise"]["bound"] is None:
        yield (
            "There is no upper bound on the share of wrong labels, because too few texts were "
            "judged blind in this run."
        )
    by = {each["role"]: each for each in of["roles"]}
    writer, judge = by["composer"], by["label_judge"]
    if writer["model"] == judge["model"] and not judge["by_rules"]:
        yield (
            f"The same model, {judge['model']}, wrote the texts and judged their labels, so it "
            "may overlook its own mistakes. Use another model as models.label_judge."
        )


def _dates(of: Json) -> Iterator[str]:
    used = of["evidence"]
    crawled = used["precision"].get("crawl", 0)
    if crawled:
        yield (
            f"For {crawled} of the {used['articles']} cited articles, only the time at which "
            "GDELT saw the page is known; the page may be older."
        )
    for each in of["targets"]:
        if not each["embedded"] and not (each["cutoff"] or each["released"]):
            yield (
                f"Neither the cutoff nor the release date of {each['target']} is known, so this "
                "target may know the news."
            )
    for each in of["after_cutoff"]:
        if each["before"]:
            yield (
                f"{_count(each['before'])} cited news from before the cutoff of {each['target']}, "
                "so this target may know that news."
            )


def _answers(of: Json) -> Iterator[str]:
    embedded = {each["target"] for each in of["targets"] if each["embedded"]}
    kinds = {
        target["target"]: [arm["answers"] for arm in target["all_samples"]["arms"]]
        for target in of["arms"]["targets"]
    }
    asked = {name: sum(sum(each.values()) for each in found) for name, found in kinds.items()}
    most = max((count for name, count in asked.items() if name not in embedded), default=0)
    for name, found in kinds.items():
        if name not in embedded and asked[name] < most:
            yield (
                f"{name} was asked {asked[name]} of {most} questions on the arms, so its scores "
                "are incomplete. Ask the rest with `coreeval evaluate`."
            )
        if refused := sum(each["refused"] for each in found):
            yield (
                f"{name} refused {refused} of {asked[name]} questions on the arms. Scores exclude "
                "refusals, so a target that refuses hard questions scores higher."
            )


def _control(of: Json) -> Iterator[str]:
    """Yield a note on targets whose cutoff was unknown when the control window was checked."""
    for target in of["targets"] if of["decomposition"]["control"] else ():
        if not target["embedded"] and target["cutoff"] is None:
            yield (
                f"The cutoff of {target['target']} was unknown when the control window was "
                "checked. If this target does not know the news in that window, the control arm "
                "explains too much of its drop."
            )


def _caveats(of: Json) -> Iterator[str]:
    """Yield the conditions of each detector's verdicts on memory, once for all targets."""
    for detector in list_target_detectors(of):
        for caveat in sorted({each.caveat for each in detector.find(of)} - {""}):
            title = f"{detector.title[:1].upper()}{detector.title[1:]}"
            yield f"{title}'s verdicts on memory come with a caveat: {caveat}."


def _money(of: Json) -> Iterator[str]:
    if of["cost"]["billed_usd"] is None:
        yield "Some calls have no known price, so the cost of the run is unknown."
    if of["cost"]["unknown_usd"]:
        yield (
            f"It is not known whether requests that were cut off were billed. Their maximum cost, "
            f"{of['cost']['unknown_usd']:.2f} USD, is treated as spent."
        )


def _count(samples: int) -> str:
    return f"{samples} sample{'' if samples == 1 else 's'}"


def _count_done(samples: int) -> str:
    return f"{_count(samples)} {'was' if samples == 1 else 'were'}"


_OWN: Final[tuple[Callable[[Json], Iterator[str]], ...]] = (
    _comparable,
    _rules,
    _part,
    _few,
    _noise,
    _dates,
    _answers,
    _control,
    _caveats,
    _money,
)


_OF_MANIFEST = (
    "run", "name", "task", "created_at", "now", "window", "window_start", "after_cutoff", "counts",
    "kept", "parent", "bad_rows", "cost", "knowledge", "fingerprints", "pipeline",
)  # fmt: skip
"""The keys copied from the manifest, because reports are read without their runs."""


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """The results of a run that its report needs."""

    manifest: Json
    config: Config
    task: Task
    quality: Json
    """The quality, in the same form as in a release."""
    overview: Overview
    attempts: Mapping[int, int]
    """The number of accepted samples, by the number of attempts."""
    evidence: EvidenceUsed
    worth: Sequence[Highlight]
    arms: "ArmTable"
    parts: Mapping[str, Json | None]
    """The parts of the report on detectors that have a node; None if a part was not configured."""
    documents: Mapping[str, Json]
    """The documents of detectors that `coreeval detect NAME RUN` ran, by name."""
    levels: "MemoryEvidence"
    """The evidence of memory from all detectors."""
    comparability: Json | None = None
    """The comparison of the updated arm with the original in length, difficulty and topics."""


def report_document(found: ReportInput) -> Json:
    """Return the report as a JSON document."""
    manifest, config = found.manifest, found.config
    played = ModelsConfig.model_validate(manifest["models"])
    played = played.model_copy(update={"targets": config.models.targets})
    as_played = config.model_copy(update={"models": played})
    document: dict[str, Any] = {
        **{key: manifest[key] for key in _OF_MANIFEST},
        "notes": describe_notes(manifest["notes"]),
        "arm_rows": manifest["arms"],
        "offline_roles": list(played.rule_based_roles),
        "benchmark": describe_benchmark(config, found.task, manifest),
        "settings": describe_settings(config),
        "roles": describe_roles(as_played, manifest["prompts"]),
        "targets": describe_targets(config, manifest),
        "quality": found.quality,
        "attempts": {str(number): samples for number, samples in found.attempts.items()},
        "causes": [each.model_dump() for each in found.overview.causes],
        "verdicts": [each.model_dump() for each in found.overview.verdicts],
        "evidence": found.evidence.model_dump(mode="json"),
        "calls": [
            {**each.model_dump(), "cached_share": each.cached_share}
            for each in found.overview.calls
        ],
        "worth_a_look": [each.model_dump() for each in found.worth],
        "comparability": found.comparability,
        "arms": found.arms.model_dump(mode="json"),
        **found.parts,
        "decomposition": {**found.levels.document, "control": manifest["control"]},
    }
    terms = {**DEFINITIONS, **define_terms(found.task.kind)}
    if found.documents:
        document[DOCUMENTS] = found.documents
    return document | {
        "limits": list_limits(document),
        "definitions": {key: f"{name}: {told}" for key, (name, told) in terms.items()},
    }


Row = Mapping[str, str | int | float | None]


def write_items(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write the table as CSV by replacing the file atomically; unknown values are empty.

    The file may be opened in a spreadsheet: texts cannot become formulas (see `escape_formula`) or
    hide characters.
    """
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({name: _safe_cell(row[name]) for name in row} for row in rows)


def _safe_cell(value: str | int | float | None) -> str | int | float | None:
    return escape_formula(visible(value)) if isinstance(value, str) else value


def _list_private_folders(found: ReportInput) -> list[str]:
    """Return the folders of the run's project, and those of other files that the run names."""
    source, workspace = found.manifest["source"], found.manifest["workspace"]
    beside = (source["path"], source.get("found", ""), workspace)
    known = (source.get("project", ""), *(str(PurePath(each).parent) for each in beside))
    return list_private_folders([found.config.model_dump(mode="json"), found.manifest], known)


def write_report(found: ReportInput, files: RunFiles) -> None:
    """Write report.json, report.html and, if a target labelled texts, items.csv."""
    document = report_document(found)
    write_json(files.report_json, document)
    page = hide_private_folders(report_page(document), _list_private_folders(found))
    write_text(files.report_html, page)
    if found.levels.items:
        write_items(files.items, found.levels.columns, found.levels.rows())
