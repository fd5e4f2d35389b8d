"""Embedded targets, `offline:NAME`: small classifiers fitted here, for a run without any model.

`offline:classifier` knows its train split and nothing else. The three others are one classifier,
fitted on half of the train split, with different memories (docs/targets.md): `offline:clean` has
none, `offline:finetuned` has seen the train split, `offline:contaminated` the test split. They show
what a report says of memory, on targets of which it is known. `offline:reference-1` to `-6` have
none either and learned from less and less of that half: clean references of different abilities.
Deterministic: same data and seed, same answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.features import Classifier, Fields, classifier_of
from coreeval.evaluation.recall import Memory, split_train
from coreeval.schema import Prediction, Sample, Task


@dataclass(frozen=True)
class EmbeddedTarget:
    """A fitted classifier that answers with label names, and with those that it remembers."""

    name: str
    """As the config spells it, e.g. `offline:classifier`."""
    classifier: Classifier
    memory: Memory | None = None

    def predict(self, fields: Sequence[Fields]) -> list[str]:
        """Label texts, given as text by field name."""
        if not fields:
            return []
        labels = [str(label) for label in self.classifier.predict(fields)]
        recalled = self.memory.recall(fields) if self.memory else [None] * len(fields)
        return [known or label for known, label in zip(recalled, labels, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What an embedded target may learn from."""

    train: Sequence[Sample]
    test: Callable[[], Sequence[Sample]]
    """Gives the samples of the run; only a contaminated target looks at them."""


def fit_target(name: str, task: Task, seen: Seen, *, seed: int) -> EmbeddedTarget:
    """Fit the embedded target of a name such as `offline:classifier`.

    Raises:
        ConfigError: there is no embedded target of this name.
        DatasetError: the train split has no samples or only one class.
    """
    check_embedded(name)
    kind = EMBEDDED[name.removeprefix("offline:")]
    remembered = kind.remembers(seen)
    return EmbeddedTarget(
        name=name,
        classifier=_fitted(task, kind.fitted_on(seen), seed),
        memory=Memory(remembered) if remembered else None,
    )


def is_classifier(name: str) -> bool:
    """Tell whether `offline:NAME` is one of these; personas of NumLeak are named alike."""
    return name.partition(":")[::2] in {("offline", each) for each in EMBEDDED}


def check_embedded(name: str) -> None:
    """Check that there is an embedded target of a name such as `offline:classifier`.

    Raises:
        ConfigError: there is none.
    """
    if not is_classifier(name):
        known = ", ".join(f"offline:{each}" for each in sorted(EMBEDDED))
        raise ConfigError(
            f"there is no embedded target {name!r}", where="models.targets", hint=f"known: {known}"
        )


@dataclass(frozen=True)
class _Kind:
    fitted_on: Callable[[Seen], Sequence[Sample]]
    remembers: Callable[[Seen], Sequence[Sample]]


def _half(seen: Seen) -> Sequence[Sample]:
    return split_train(seen.train)[0]


def _part_of_half(number: int) -> Callable[[Seen], Sequence[Sample]]:
    """Return what draws the samples that a reference learns from, the later the fewer.

    From nine tenths of the half down to four, so that abilities differ as those of models do.
    """

    def part(seen: Seen) -> Sequence[Sample]:
        known = _half(seen)
        return Random(number).sample(known, k=len(known) * (10 - number) // 10)

    return part


EMBEDDED = {
    "classifier": _Kind(lambda seen: seen.train, lambda _: ()),
    "clean": _Kind(_half, lambda _: ()),
    "finetuned": _Kind(_half, lambda seen: seen.train),
    "contaminated": _Kind(_half, lambda seen: seen.test()),
    **{f"reference-{n}": _Kind(_part_of_half(n), lambda _: ()) for n in range(1, 7)},
}
"""Embedded targets by the NAME of `offline:NAME`: what each is fitted on, and what it remembers."""


def _fitted(task: Task, samples: Sequence[Sample], seed: int) -> Classifier:
    _require_classes(task, samples)
    classifier = classifier_of(task.fields, seed)
    classifier.fit([sample.fields for sample in samples], [one.label_text for one in samples])
    return classifier


def predict(
    target: EmbeddedTarget, samples: Sequence[Sample], *, source: str
) -> tuple[Prediction, ...]:
    """Ask an embedded target about samples that carry the texts of a source; it has no template."""
    answers = target.predict([sample.fields for sample in samples])
    return tuple(
        Prediction(
            target=target.name, source=source, sample_id=sample.id, template=0, answer=answer
        )
        for sample, answer in zip(samples, answers, strict=True)
    )


def _require_classes(task: Task, samples: Sequence[Sample]) -> None:
    classes = {sample.label_text for sample in samples}
    if len(classes) >= 2:
        return
    found = f"only the label {classes.pop()!r}" if classes else "no samples"
    raise DatasetError(
        f"an embedded target cannot be fitted for {task.name!r}: its train split has {found}",
        where="dataset.train_split",
        hint="name a split with two labels or more, or take offline targets out of models.targets",
    )
