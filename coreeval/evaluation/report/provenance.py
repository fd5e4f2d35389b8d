"""Describes in words how a run was made, and the evidence for its new facts.

The parts are the benchmark, the news, the roles, the targets and the settings; for the evidence,
the number of articles, their publishers, their age, and the precision of their dates.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePath
from statistics import median
from typing import Any, Final, get_args

from coreeval.config import ROLES, Config, ModelConfig
from coreeval.config.models import OWN_CODE
from coreeval.prompts import load_built_in_prompt
from coreeval.schema import Precision, RoleName, Task, Value, Window
from coreeval.tools.local_paths import shorten_name
from coreeval.tools.stores.run_figures import EvidenceUse

Json = Mapping[str, Any]
DOES: Final[Mapping[RoleName, str]] = {
    "extractor": "finds what a text mentions and what must stay",
    "replacer": "chooses the news and the facts that change",
    "rewriter": "rewords the original",
    "composer": "writes the updated text",
    "fact_judge": "judges whether the news supports the text",
    "label_judge": "labels texts without knowing their label",
}
JUDGE: Final = "utility_judge"
"""The role under which calls to score the cost of defences are recorded."""
JUDGES: Final = "scores how useful answers remain under a defence"
DATED: Final[Mapping[Precision, str]] = {
    "exact": "stated by the page",
    "url": "taken from a date in the address",
    "cluster": "taken from another report of the same event",
    "crawl": "when GDELT saw the page, which may be later than its publication",
}
ON_REJECT: Final = {
    "drop": "rejected samples are not in the updated arm",
    "semantic": "rejected samples appear in the updated arm with their reworded text; no score "
    "uses them",
    "original": "rejected samples appear in the updated arm with their original text; no score "
    "uses them",
}


def describe_benchmark(config: Config, task: Task, manifest: Json) -> Json:
    """Describe the updated benchmark; only the last part of a path is shown, for privacy."""
    dataset = config.dataset
    return {
        "description": task.description,
        "format": dataset.format,
        "source": _name_source(config),
        "split": dataset.split,
        "target": dataset.target,
        "fields": list(task.fields),
        "labels": [label.name for label in task.labels],
        "limit": manifest["limit"],
        "subset": manifest.get("subset"),
        "data_sha256": manifest["fingerprints"]["data"],
    }


def describe_notes(notes: Iterable[str]) -> list[str]:
    """Return warnings that begin with a benchmark's path, with only the last part of the path.

    The path is the one at the start of the run, whose project may have been moved since.
    """
    return [re.sub("^/.*/", "", note, flags=re.DOTALL) for note in notes]


def _name_source(config: Config) -> str:
    dataset = config.dataset
    return dataset.path if dataset.is_on_hub else PurePath(dataset.path).name


def describe_settings(config: Config) -> Json:
    """Return the settings that determine the outcome of samples."""
    return {
        "max_attempts": config.run.max_attempts,
        "on_reject": config.run.on_reject,
        "seed": config.run.seed,
        "min_precision": config.knowledge.min_precision,
        "backends": list(config.knowledge.backends),
        "safety": config.safety.flag_policies(),
    }


def describe_roles(config: Config, prompts: Json) -> list[Json]:
    """Return the model in each role with its parameters and prompt."""
    models = config.models
    team = [
        _describe_role(role, DOES[role], models.for_role(role), prompts.get(role)) for role in ROLES
    ]
    judges = config.detect.judges if models.targets else ()
    wording = load_built_in_prompt("series_judge").version
    return team + [_describe_role(JUDGE, JUDGES, judge, wording) for judge in judges]


def _describe_role(role: str, does: str, model: ModelConfig, prompt: str | None) -> Json:
    return {
        "role": role,
        "does": does,
        "model": model.model,
        "by_rules": model.is_rule_based,
        "parameters": list(_list_parameters(model)),
        "prompt": prompt if model.is_asked and model.provider != OWN_CODE else None,
    }


def describe_targets(config: Config, manifest: Json) -> list[Json]:
    """Return each model under test with its known dates."""
    base = Path(manifest["source"]["path"]).parent
    known = {shorten_name(each["target"], base): each for each in manifest["cutoffs"] or ()}
    fresh = {shorten_name(each["target"], base): each for each in manifest["after_cutoff"]}
    names = {each.model: shorten_name(each.model, base) for each in config.models.targets}
    return [
        {
            "target": target.model,
            "role": target.role,
            "embedded": target.is_embedded,
            "parameters": list(_list_parameters(target)),
            "cutoff": known.get(names[target.model], {}).get("cutoff"),
            "released": known.get(names[target.model], {}).get("released"),
            "fresh": fresh.get(names[target.model]),
        }
        for target in config.models.targets
    ]


def _list_parameters(model: ModelConfig) -> Iterator[str]:
    """Yield the parameters that were set; all others are the provider's defaults."""
    if not model.is_asked:
        return
    for name in ("temperature", "seed", "reasoning_effort"):
        if (value := getattr(model, name)) is not None:
            yield f"{name.replace('_', ' ')} {value}"
    yield f"at most {model.max_tokens} tokens"
    yield from (f"{name} {value}" for name, value in model.extra.items())


TOP = 10
"""The number of domains to name."""
BINS = 16
"""The most parts of the window in the picture."""
_STEPS = (1, 7, 14, 28, 91, 182, 364, 728)
"""The possible lengths of a part in days: a day, weeks, about months, about years."""


class DomainShare(Value):
    """The part of the evidence from one publisher."""

    domain: str
    articles: int
    samples: int
    """The number of accepted samples that cite it; a sample that cites two of its articles counts
    twice."""


class WindowSpan(Value):
    """A part of the window."""

    start: str
    articles: int


class EvidenceAges(Value):
    """The ages of the articles at the end of the window, in days."""

    youngest: float
    median: float
    oldest: float


class EvidenceUsed(Value):
    """The evidence that the replaced facts of accepted samples cite, each article once."""

    articles: int
    facts: int
    precision: dict[Precision, int]
    """The number of articles by how precisely their publication time is known."""
    domains: tuple[DomainShare, ...]
    """The most cited domains."""
    domains_in_all: int
    ages: EvidenceAges | None
    """The ages; None if nothing is cited."""
    span_days: int
    """The days of each part except the last, which ends with the window."""
    spans: tuple[WindowSpan, ...]
    """The numbers of articles by publication time, for parts of the window of equal length."""


def summarize_evidence(cited: Iterable[EvidenceUse], window: Window) -> EvidenceUsed:
    """Summarise the cited evidence; without any, all counts are 0."""
    found = list(cited)
    times = [datetime.fromisoformat(each.published_at) for each in found]
    precision = Counter(each.precision for each in found)
    step = _step(window)
    return EvidenceUsed(
        articles=len(found),
        facts=sum(each.facts for each in found),
        precision={name: precision[name] for name in get_args(Precision) if precision[name]},
        domains=_domains(found),
        domains_in_all=len({each.domain for each in found}),
        ages=_ages(times, window) if times else None,
        span_days=step,
        spans=_spans(times, window, step) if times else (),
    )


def _domains(found: Sequence[EvidenceUse]) -> tuple[DomainShare, ...]:
    articles, samples = Counter[str](), Counter[str]()
    for each in found:
        articles[each.domain] += 1
        samples[each.domain] += each.samples
    ranked = sorted(samples, key=lambda name: (-samples[name], name))[:TOP]
    return tuple(
        DomainShare(domain=name, articles=articles[name], samples=samples[name]) for name in ranked
    )


def _ages(times: Sequence[datetime], window: Window) -> EvidenceAges:
    ages = [(window.end - time) / timedelta(days=1) for time in times]
    return EvidenceAges(
        youngest=round(min(ages), 1), median=round(median(ages), 1), oldest=round(max(ages), 1)
    )


def _step(window: Window) -> int:
    days = (window.end - window.start) / timedelta(days=1)
    return next((step for step in _STEPS if days / step <= BINS), int(days // BINS) + 1)


def _spans(times: Sequence[datetime], window: Window, step: int) -> tuple[WindowSpan, ...]:
    """Count articles per part of the window; articles older than the window count in the first."""
    length = timedelta(days=step)
    last = max(0, -(-(window.end - window.start) // length) - 1)
    counted = Counter(min(max(0, (time - window.start) // length), last) for time in times)
    starts = [window.start + place * length for place in range(last + 1)]
    return tuple(
        WindowSpan(start=start.date().isoformat(), articles=counted[place])
        for place, start in enumerate(starts)
    )
