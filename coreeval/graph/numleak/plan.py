"""From a config to what would be asked about series: checked as far as that is free."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from coreeval.config import (
    Config,
    NumleakConfig,
    SeriesConfig,
    TargetConfig,
    extract_series_config,
    load_series_config,
)
from coreeval.errors import ConfigError
from coreeval.evaluation.embedded import is_classifier
from coreeval.evaluation.numleak.leak.signals import Signal, read_signal, refuse_strangers
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.probes import Asked, questions_about, sibling_questions
from coreeval.evaluation.numleak.series import Series
from coreeval.graph.numleak.defending import Judged, Trial, open_trial
from coreeval.graph.numleak.universe import Universe, open_universe
from coreeval.graph.setup import check_reached
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.cutoffs import find_target_dates, load_cutoffs
from coreeval.tools.env_file import read_env_file
from coreeval.tools.workspace import Workspace, series_payer, workspace_for

TARGET_ROLE = "target_series"
"""What the calls are noted as."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What one target is asked."""

    target: TargetConfig
    cutoff: date | None
    """The last day of its training data; None where it is not known."""
    asked: tuple[Asked, ...]
    """About each series, then about each of their siblings."""
    judged: Judged | None = None
    """What it is asked beside, for judges; None where defences are not tried or not judged."""

    @property
    def questions(self) -> int:
        """How many there are."""
        beside = len(self.judged.questions) if self.judged else 0
        return sum(len(each.questions) for each in self.asked) + beside


@dataclass(frozen=True, kw_only=True)
class NumleakPlan:
    """What is asked of whom about which series."""

    source: Path
    """The config's file."""
    config: SeriesConfig
    workspace: Workspace
    universe: Universe
    audits: tuple[Audit, ...]
    """One for each target."""
    passed_over: tuple[str, ...] = ()
    """Classifiers among the targets: they have no words to answer in."""
    signals: tuple[Signal, ...] = ()
    """The user's own, which the config names."""

    @property
    def series(self) -> tuple[Series, ...]:
        """Those that the config names."""
        return self.universe.series

    @property
    def siblings(self) -> tuple[Series, ...]:
        """The others of their families, as far as they can be opened."""
        return self.universe.siblings

    @property
    def payer(self) -> str:
        """Who pays in the call store."""
        return series_payer(self.config.name)

    @property
    def questions(self) -> int:
        """Questions to all targets."""
        return sum(audit.questions for audit in self.audits)

    @property
    def asked_dates(self) -> dict[str, tuple[Frequency, list[Period]]]:
        """The frequency of each series, and the dates whose value is asked for."""
        return asked_dates(self.universe, self.audits)

    @property
    def cutoffs(self) -> dict[str, date | None]:
        """The last day of each target's training data, by its name."""
        return {audit.target.model: audit.cutoff for audit in self.audits}

    def notes(self) -> Iterator[str]:
        """Yield what is not asked, or not as it was meant, each thing once."""
        for name in self.passed_over:
            yield f"{name} labels texts and has no words for numbers: it is not asked"
        yield from notes_on(self.universe, self.audits)


def notes_on(universe: Universe, audits: Sequence[Audit]) -> Iterator[str]:
    """Yield what could not be asked as it was meant, each thing once for all whom it is true of."""
    yield from universe.left_out
    said = defaultdict[str, defaultdict[str, list[str]]](lambda: defaultdict(list))
    for audit in audits:
        for asked in audit.asked:
            for note in dict.fromkeys(asked.notes):
                said[note][asked.series].append(audit.target.model)
    for note, models_of in said.items():
        series_of = defaultdict[tuple[str, ...], list[str]](list)
        for series, models in models_of.items():
            series_of[tuple(models)].append(series)
        for whom, about in series_of.items():
            everybody = len(whom) == len(audits) > 1
            who = f"all {len(whom)} targets" if everybody else ", ".join(whom)
            yield f"{who}, {', '.join(about)}: {note}"


def numleak_plan_of(path: Path, *, overrides: Sequence[str], now: Clock = utc_now) -> NumleakPlan:
    """Return what a config asks for; series are fetched where they are not at hand.

    Args:
        path: The YAML config, of NumLeak alone or of a run.
        overrides: `key.path=value` settings over the config's.
        now: The time of day; what is published later is not asked about.

    Raises:
        UsageError: the config, a series, a key or a price cannot be used.
        ModelUnusable: an endpoint does not answer.
    """
    path = path.resolve()
    config = load_series_config(path, overrides)
    read_env_file(path.parent, config)
    return plan_for(config, source=path, base=path.parent, now=now)


def plan_for(
    config: SeriesConfig, *, source: Path, base: Path, now: Clock = utc_now
) -> NumleakPlan:
    """Return what a config asks for that was read already; see `numleak_plan_of`.

    Args:
        config: What is asked of whom.
        source: Where it comes from, for people.
        base: The folder of the workspace and of relative paths.
        now: The time of day; what is published later is not asked about.
    """
    workspace = workspace_for(base)
    universe = open_universe(config.detect.numleak, base=base, cache=workspace.series)
    targets = asked_targets(config.models.targets)
    signals = signals_of(config.detect.numleak, base)
    plan = NumleakPlan(
        source=source,
        config=config,
        workspace=workspace,
        universe=universe,
        audits=audits_of(config, universe, today=now().date()),
        passed_over=tuple(
            target.model
            for target in config.models.targets
            if target not in targets and target.role == "target"
        ),
        signals=signals,
    )
    refuse_strangers(signals, plan.asked_dates)
    defences = config.detect.numleak.defences
    judges = [judge for judge in (defences.judges if defences else ()) if not judge.is_rule_based]
    asked = [*(target for target in targets if not target.is_embedded), *judges]
    check_reached(config, asked, workspace)
    return plan


def run_audits(
    config: Config,
    targets: Sequence[TargetConfig],
    *,
    source: Path,
    workspace: Workspace,
    today: date,
) -> tuple[Universe, tuple[Audit, ...]]:
    """Return the series that the config of a run names, and what each target is asked.

    Args:
        config: The run's.
        targets: Those that are asked.
        source: Its file; relative paths start there.
        workspace: Keeps what is fetched.
        today: The day of asking.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    part = extract_series_config(config, where=str(source))
    universe = open_universe(part.detect.numleak, base=source.parent, cache=workspace.series)
    models = part.models.model_copy(update={"targets": tuple(targets)})
    part = part.model_copy(update={"models": models})
    return universe, audits_of(part, universe, today=today)


def check_series(config: Config, *, source: Path, workspace: Workspace, today: date) -> None:
    """Check that what a run is to ask about series can be asked, where its config names any.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    if config.detect.numleak and config.models.targets:
        targets = asked_targets(config.models.targets)
        asked = run_audits(config, targets, source=source, workspace=workspace, today=today)
        refuse_strangers(signals_of(config.detect.numleak, source.parent), asked_dates(*asked))


def signals_of(asked: NumleakConfig, base: Path) -> tuple[Signal, ...]:
    """Return the user's own signals; their paths start at `base`.

    Raises:
        DatasetError: one cannot be read, or has no row that can be used.
    """
    return tuple(read_signal(base / path, name) for name, path in asked.signals.items())


def asked_dates(
    universe: Universe, audits: Sequence[Audit]
) -> dict[str, tuple[Frequency, list[Period]]]:
    """Return the frequency of each series, and the dates whose value is asked for."""
    found = {one.definition.id: (one.definition.frequency, list[Period]()) for one in universe.all}
    for audit in audits:
        for asked in audit.asked:
            for question in asked.questions:
                if question.variant == "value":
                    found[question.series][1].append(question.period)
    return found


def asked_targets(targets: Sequence[TargetConfig]) -> list[TargetConfig]:
    """Return the targets to ask about series: no embedded classifier, and no reference.

    Raises:
        ConfigError: an embedded target is neither a classifier nor a persona; or nobody is left.
    """
    found = list[TargetConfig]()
    for target in targets:
        if is_classifier(target.model) or target.role == "reference":
            continue
        if target.is_embedded:
            from coreeval.evaluation.numleak.embedded import check_persona  # numpy

            check_persona(target.model)
        found.append(target)
    if not found:
        raise ConfigError(
            "no target has words for numbers: embedded classifiers label texts",
            where="models.targets",
            hint="name a model, or a persona such as offline:memorizing",
        )
    return found


def audits_of(config: SeriesConfig, universe: Universe, *, today: date) -> tuple[Audit, ...]:
    """Return what each target is asked.

    Raises:
        ConfigError: the file of cutoffs cannot be used, or one that a defence is read from.
        DatasetError: a series has no value in the period.
    """
    table = load_cutoffs(Path(config.cutoffs) if config.cutoffs else None)
    trial = open_trial(config.detect.numleak, seed=config.run.seed)
    targets, audits = asked_targets(config.models.targets), list[Audit]()
    judged = trial.judged(universe.series, targets) if trial else None
    for target in targets:
        stated = find_target_dates(target, table).cutoff
        cutoff = stated.last_day if stated else None
        asked = _asked(config, universe, cutoff, today, trial)
        audits.append(Audit(target=target, cutoff=cutoff, asked=asked, judged=judged))
    return tuple(audits)


def _asked(
    config: SeriesConfig,
    universe: Universe,
    cutoff: date | None,
    today: date,
    trial: Trial | None,
) -> tuple[Asked, ...]:
    asked, first = list[Asked](), dict[str, Asked]()
    for series in universe.series:
        one = questions_about(
            series, config.detect.numleak, cutoff=cutoff, today=today, seed=config.run.seed
        )
        first.setdefault(series.definition.family or "", one)
        asked.append(trial.attacks(one, series) if trial else one)
    for sibling in universe.siblings:
        like = first[sibling.definition.family or ""]
        asked.append(sibling_questions(sibling, like, today=today))
    return tuple(asked)
