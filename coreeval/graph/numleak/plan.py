"""Builds the plan of a config's questions about series, with all checks that are free.

The series are opened, and other series of their families if needed. Descriptions and chains of
thought get more tokens than numbers.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from coreeval.config import (
    Config,
    NumleakConfig,
    SeriesConfig,
    TargetConfig,
    extract_series_config,
    load_series_config,
)
from coreeval.errors import ConfigError, UsageError
from coreeval.evaluation.embedded_targets import is_classifier
from coreeval.evaluation.numleak.leak.signals import Signal, read_signal, require_common_dates
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.probes import SeriesQuestionSet, questions_about, sibling_questions
from coreeval.evaluation.numleak.series import (
    Series,
    expand_families,
    list_definitions,
    open_series,
)
from coreeval.graph.numleak.defence_trials import DefenceTrial, UtilityPlan, open_defence_trial
from coreeval.graph.setup import check_reachable
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.cutoffs import find_target_dates, load_cutoffs
from coreeval.tools.env_file import read_env_file
from coreeval.tools.workspace import Workspace, series_payer, workspace_for


@dataclass(frozen=True, kw_only=True)
class SeriesSet:
    """All series in the questions."""

    series: tuple[Series, ...]
    """The series that the config names, with families split into their members."""
    siblings: tuple[Series, ...] = ()
    left_out: tuple[str, ...] = ()
    """Siblings that could not be opened, one sentence each with the reason."""

    @property
    def all(self) -> tuple[Series, ...]:
        """Return the named series and their siblings."""
        return (*self.series, *self.siblings)

    def notes(self) -> Iterator[str]:
        """Yield notes on the series' files for the reader."""
        for one in self.series:
            yield from (f"{one.definition.id}: {note}" for note in one.notes)


def open_series_set(asked: NumleakConfig, *, base: Path, cache: Path) -> SeriesSet:
    """Open all series.

    Args:
        asked: The config's settings.
        base: The folder that relative paths are resolved against.
        cache: Folder where fetched files are kept.

    Raises:
        ConfigError: a series does not exist or is named twice, or a file belongs to another series.
        DatasetError: a file is missing, cannot be fetched, or has no values.
    """
    files = {name: base / path for name, path in asked.files.items()}
    named = expand_families(asked.series)
    series = [open_series(one, base=base, cache=cache, file=files.get(one)) for one in named]
    ids = [one.definition.id for one in series]
    _refuse_twice(ids)
    relatives = [*_iter_relatives(series)] if "siblings" in asked.probes else []
    _refuse_strange(asked.files, [*named, *ids, *relatives])
    siblings, left_out = list[Series](), list[str]()
    for name in relatives:
        try:
            siblings.append(open_series(name, base=base, cache=cache, file=files.get(name)))
        except UsageError as error:
            left_out.append(f"the sibling series {name} is skipped: {error.message}")
    return SeriesSet(series=tuple(series), siblings=tuple(siblings), left_out=tuple(left_out))


def _iter_relatives(series: Iterable[Series]) -> Iterator[str]:
    """Yield the other built-in series of the same families."""
    there = {one.definition.id for one in series}
    families = {one.definition.family for one in series if one.definition.family}
    for one in list_definitions():
        if one.family in families and one.id not in there:
            yield one.id


def _refuse_twice(ids: list[str]) -> None:
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise ConfigError(
            f"the series {twice[0]!r} occurs twice",
            where="detect.numleak.series",
            hint="answers are stored by series id: rename one of them",
        )


def _refuse_strange(files: Iterable[str], asked: list[str]) -> None:
    strange = [name for name in files if name not in asked]
    if strange:
        raise ConfigError(
            f"a file was passed for {strange[0]!r}, which is not among the series",
            where="detect.numleak.files",
            hint=f"series: {', '.join(dict.fromkeys(asked))}",
        )


SERIES_ROLE = "target_series"
"""Role under which the calls are recorded."""


@dataclass(frozen=True, kw_only=True)
class TargetAudit:
    """The questions for one target."""

    target: TargetConfig
    cutoff: date | None
    """The last day of its training data; None if unknown."""
    asked: tuple[SeriesQuestionSet, ...]
    """Questions about each series, then about its siblings."""
    judged: UtilityPlan | None = None
    """Additional questions, scored by judges; None if defences are not tried or not judged."""

    @property
    def questions(self) -> int:
        """Return the number of questions."""
        beside = len(self.judged.questions) if self.judged else 0
        return sum(len(each.questions) for each in self.asked) + beside


@dataclass(frozen=True, kw_only=True)
class NumleakPlan:
    """The targets, and the questions about series for each one."""

    source: Path
    """Path of the config file."""
    config: SeriesConfig
    workspace: Workspace
    universe: SeriesSet
    audits: tuple[TargetAudit, ...]
    """One audit per target."""
    passed_over: tuple[str, ...] = ()
    """Classifiers among the targets, which are skipped because they cannot answer in words."""
    signals: tuple[Signal, ...] = ()
    """The user's signals, as named in the config."""

    @property
    def series(self) -> tuple[Series, ...]:
        """Return the series that the config names."""
        return self.universe.series

    @property
    def siblings(self) -> tuple[Series, ...]:
        """Return the other series of the same families that can be opened."""
        return self.universe.siblings

    @property
    def payer(self) -> str:
        """Return the name of the payer in the call store."""
        return series_payer(self.config.name)

    @property
    def questions(self) -> int:
        """Return the number of questions to all targets."""
        return sum(audit.questions for audit in self.audits)

    @property
    def asked_dates(self) -> dict[str, tuple[Frequency, list[Period]]]:
        """Return the frequency of each series and the dates whose value is asked for."""
        return list_asked_dates(self.universe, self.audits)

    @property
    def cutoffs(self) -> dict[str, date | None]:
        """Return the last day of each target's training data, by the target's name."""
        return {audit.target.model: audit.cutoff for audit in self.audits}

    def notes(self) -> Iterator[str]:
        """Yield one note per question or setting that was left out or could not be applied."""
        for name in self.passed_over:
            yield f"{name} only labels texts and cannot answer with numbers, so it is skipped"
        yield from iter_notes(self.universe, self.audits)


def iter_notes(universe: SeriesSet, audits: Sequence[TargetAudit]) -> Iterator[str]:
    """Yield one note per setting that could not be applied, with all the targets it affects."""
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


def build_numleak_plan(
    path: Path, *, overrides: Sequence[str], now: Clock = utc_now
) -> NumleakPlan:
    """Return the plan of a config's questions; missing series are downloaded.

    Args:
        path: The YAML config, of NumLeak alone or of a run.
        overrides: `key.path=value` settings that override the config's.
        now: The current time; later publications are not asked about.

    Raises:
        UsageError: the config, a series, a key or a price cannot be used.
        ModelUnusable: an endpoint does not respond.
    """
    path = path.resolve()
    config = load_series_config(path, overrides)
    read_env_file(path.parent, config)
    return plan_series(config, source=path, base=path.parent, now=now)


def plan_series(
    config: SeriesConfig, *, source: Path, base: Path, now: Clock = utc_now
) -> NumleakPlan:
    """Return the plan of a config that was already read; see `build_numleak_plan`.

    Args:
        config: The questions and the targets.
        source: The display name of the config's source.
        base: The folder of the workspace and of relative paths.
        now: The current time; later publications are not asked about.
    """
    workspace = workspace_for(base)
    universe = open_series_set(config.detect.numleak, base=base, cache=workspace.series)
    targets = select_targets(config.models.targets)
    signals = load_signals(config.detect.numleak, base)
    plan = NumleakPlan(
        source=source,
        config=config,
        workspace=workspace,
        universe=universe,
        audits=plan_audits(config, universe, today=now().date()),
        passed_over=tuple(
            target.model
            for target in config.models.targets
            if target not in targets and target.role == "target"
        ),
        signals=signals,
    )
    require_common_dates(signals, plan.asked_dates)
    defences = config.detect.numleak.defences
    judges = [judge for judge in (defences.judges if defences else ()) if not judge.is_rule_based]
    asked = [*(target for target in targets if not target.is_embedded), *judges]
    check_reachable(config, asked, workspace)
    return plan


def plan_run_audits(
    config: Config,
    targets: Sequence[TargetConfig],
    universe: SeriesSet,
    *,
    source: Path,
    today: date,
) -> tuple[TargetAudit, ...]:
    """Return the questions of a run to each target.

    Args:
        config: The config of the run.
        targets: The targets to ask.
        universe: The series of the run.
        source: The config's file.
        today: The day of the questions.

    Raises:
        UsageError: a series has no value in the period.
    """
    part = extract_series_config(config, where=str(source))
    models = part.models.model_copy(update={"targets": tuple(targets)})
    return plan_audits(part.model_copy(update={"models": models}), universe, today=today)


def check_series(config: Config, *, source: Path, workspace: Workspace, today: date) -> None:
    """Check that a run can ask about the series of its config, if it names any.

    Raises:
        UsageError: a series cannot be opened, or has no value in the period.
    """
    asked, base = config.detect.numleak, source.parent
    if asked and config.models.targets:
        targets = select_targets(config.models.targets)
        universe = open_series_set(asked, base=base, cache=workspace.series)
        audits = plan_run_audits(config, targets, universe, source=source, today=today)
        require_common_dates(load_signals(asked, base), list_asked_dates(universe, audits))


def load_signals(asked: NumleakConfig, base: Path) -> tuple[Signal, ...]:
    """Return the user's own signals; their paths are relative to `base`.

    Raises:
        DatasetError: one cannot be read, or has no usable row.
    """
    return tuple(read_signal(base / path, name) for name, path in asked.signals.items())


def list_asked_dates(
    universe: SeriesSet, audits: Sequence[TargetAudit]
) -> dict[str, tuple[Frequency, list[Period]]]:
    """Return the frequency of each series and the dates whose value is asked for."""
    found = {one.definition.id: (one.definition.frequency, list[Period]()) for one in universe.all}
    for audit in audits:
        for asked in audit.asked:
            for question in asked.questions:
                if question.variant == "value":
                    found[question.series][1].append(question.period)
    return found


def select_targets(targets: Sequence[TargetConfig]) -> list[TargetConfig]:
    """Return the targets to ask about series: no embedded classifier and no reference.

    Raises:
        ConfigError: an embedded target is neither a classifier nor a persona; or no target is left.
    """
    found = list[TargetConfig]()
    for target in targets:
        if is_classifier(target.model) or target.role == "reference":
            continue
        if target.is_embedded:
            from coreeval.evaluation.numleak.personas import check_persona  # numpy

            check_persona(target.model)
        found.append(target)
    if not found:
        raise ConfigError(
            "no target can answer with numbers: embedded classifiers only label texts",
            where="models.targets",
            hint="pass a model, or a persona such as offline:memorizing",
        )
    return found


def plan_audits(
    config: SeriesConfig, universe: SeriesSet, *, today: date
) -> tuple[TargetAudit, ...]:
    """Return the questions to each target.

    Raises:
        ConfigError: the file of cutoffs cannot be used, or the file of a defence.
        DatasetError: a series has no value in the period.
    """
    table = load_cutoffs(Path(config.cutoffs) if config.cutoffs else None)
    trial = open_defence_trial(config.detect.numleak, seed=config.run.seed)
    targets, audits = select_targets(config.models.targets), list[TargetAudit]()
    judged = trial.plan_utility(universe.series, targets) if trial else None
    for target in targets:
        stated = find_target_dates(target, table).cutoff
        cutoff = stated.last_day if stated else None
        asked = _list_questions(config, universe, cutoff, today, trial)
        audits.append(TargetAudit(target=target, cutoff=cutoff, asked=asked, judged=judged))
    return tuple(audits)


def _list_questions(
    config: SeriesConfig,
    universe: SeriesSet,
    cutoff: date | None,
    today: date,
    trial: DefenceTrial | None,
) -> tuple[SeriesQuestionSet, ...]:
    asked, first = list[SeriesQuestionSet](), dict[str, SeriesQuestionSet]()
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


PROSE_ROLE: Final = "target_series_prose"
"""Role under which calls are recorded if their answers are longer than a number."""


def find_question_role(room: int) -> str:
    """Return the role that calls with this token limit are recorded under."""
    return PROSE_ROLE if room else SERIES_ROLE


def allow_tokens(target: TargetConfig, room: int) -> TargetConfig:
    """Return a target whose answers may have this many tokens, or its own limit if higher."""
    most = max(room, target.max_tokens)
    return target if most == target.max_tokens else target.model_copy(update={"max_tokens": most})
