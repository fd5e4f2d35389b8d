"""Plugin detectors: the protocol, and the adapter that makes a plugin a detector.

The document of a plugin's finding defines its verdicts. So a report, a release and a page can be
created from it without the plugin's code, even if the plugin is not installed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Protocol, cast

from pydantic import AfterValidator, Field, JsonValue, TypeAdapter, ValidationError

from coreeval.config.plugins import PluginUse
from coreeval.config.validation import explain_validation_error
from coreeval.errors import ConfigError
from coreeval.evaluation.detectors.base import (
    PLUGIN_DOCUMENT,
    Access,
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    MemoryFinding,
    TextAnswer,
)
from coreeval.schema import Value
from coreeval.tools.plugin_origin import PluginOrigin
from coreeval.tools.plugins import Plugin, load_plugin
from coreeval.tools.text import visible_line

_MOST_QUESTIONS: Final = 1_000_000
_MOST_BYTES: Final = 8_000_000
"""The most bytes of a finding as JSON."""
_OURS: Final = ("target", "caveat")
"""Keys of a finding that a plugin must not set."""
_Words = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(visible_line)]
_Verdict = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class DetectorPlugin(Protocol):
    """A method to detect whether a target remembers a benchmark; a plugin of the group `detectors`.

    Optional texts: `title`, its name in sentences; `limits`, the limits of its findings; and
    `access`, which is `answers`, or `log_probabilities` to receive those of the first tokens of
    answers.
    """

    plugin_api: int
    name: str
    """The name: lower-case letters, digits and `_`."""
    question: str
    """The question that it answers, as a sentence."""
    verdicts: Mapping[str, MemoryFinding]
    """The meaning of each verdict for memory: remembered, not_shown or cannot_tell."""

    def questions(self, inputs: DetectorInputs) -> Iterable[DetectorQuestion]:
        """Yield the questions to each target; the same inputs must give the same questions."""
        ...

    def score(
        self, inputs: DetectorInputs, answers: Mapping[str, TextAnswer]
    ) -> Mapping[str, object]:
        """Return the finding on one target: `verdict`, `reason`, and any other data to store.

        Args:
            inputs: The run's task and texts.
            answers: The target's answers by question key, including refusals.
        """
        ...


class PluginStatement(Value):
    """A plugin's description of itself as a detector; part of the documents of its findings."""

    origin: PluginOrigin
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    title: _Words
    question: _Words
    limits: Annotated[str, Field(max_length=1000), AfterValidator(visible_line)] = ""
    access: Access = "answers"
    verdicts: Annotated[dict[_Verdict, MemoryFinding], Field(min_length=1, max_length=20)]

    def make_detector(self) -> Detector:
        """Return a detector that can show findings, but not ask targets."""
        return Detector(
            name=f"{PLUGIN_DOCUMENT}{self.name}",
            title=self.title,
            question=self.question,
            access=self.access,
            limits=self.limits,
            verdicts=self.verdicts,
            keeps_document=True,
            arguments=(f"plugin:{self.origin.name}",),
            plugin=self.model_dump(mode="json"),
        )


def open_plugin_detector(name: str) -> Detector:
    """Return the detector of a plugin.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    from dataclasses import replace

    plugin = load_plugin(PluginUse("detectors", name), DetectorPlugin)
    judge = _PluginDetector(plugin)
    return replace(_read_statement(plugin).make_detector(), questions=judge.ask, score=judge.score)


def restore_detector(document: Json) -> Detector:
    """Return the detector that wrote a document; it can only show findings.

    Raises:
        ValueError: the document does not define its verdicts.
    """
    return PluginStatement.model_validate(document["plugin"]).make_detector()


def _read_statement(plugin: Plugin) -> PluginStatement:
    texts = {name: plugin.read_text(name) for name in ("name", "question", "limits")}
    loaded = cast(DetectorPlugin, plugin.loaded)
    try:
        return PluginStatement.model_validate(
            {
                "origin": plugin.origin,
                "title": plugin.read_text("title") or texts["name"].replace("_", " "),
                "access": plugin.read_text("access", "answers"),
                "verdicts": dict(loaded.verdicts),
                **texts,
            }
        )
    except ValidationError as error:
        told = explain_validation_error(error, PluginStatement, str(plugin.origin))
        raise plugin.refuse(_say(told)) from None
    except (TypeError, ValueError):
        raise plugin.refuse("verdicts must be a mapping of words to findings") from None


def _say(told: ConfigError) -> str:
    return f"{told.message}{f' ({told.hint})' if 'did you mean' in told.hint else ''}"


_FINDING: Final = TypeAdapter(dict[str, JsonValue])


class _PluginDetector:
    """Asks and scores with a plugin, and checks what it returns."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._detector = cast(DetectorPlugin, plugin.loaded)

    def ask(self, inputs: DetectorInputs) -> list[DetectorQuestion]:
        """Return the questions to each target.

        Raises:
            PluginFailed: the plugin failed, or has two questions with the same key.
        """
        seen = dict[str, DetectorQuestion]()
        with self._plugin.guard("questions"):
            for each in self._detector.questions(inputs):
                if not isinstance(each, DetectorQuestion) or not isinstance(each.text, str):
                    raise self._plugin.fail("must yield DetectorQuestion(key, text) from questions")
                if each.key in seen:
                    raise self._plugin.fail(f"has two questions with the key {each.key!r}")
                if len(seen) == _MOST_QUESTIONS:
                    raise self._plugin.fail(f"has more than {_MOST_QUESTIONS:,} questions")
                seen[each.key] = each
        return list(seen.values())

    def score(self, inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
        """Return the finding on one target.

        Raises:
            PluginFailed: the plugin failed, or its finding lacks a verdict or a reason.
        """
        with self._plugin.guard("score"):
            found: Any = self._detector.score(inputs, answers)
            verdicts = dict(self._detector.verdicts)
        try:
            finding = _FINDING.validate_python(dict(found))
            size = len(json.dumps(finding, allow_nan=False, ensure_ascii=False).encode())
        except (TypeError, ValueError, RecursionError):
            raise self._plugin.fail(
                "must return a mapping of JSON values from score, without NaN or infinity"
            ) from None
        if size > _MOST_BYTES:
            raise self._plugin.fail(f"returned more than {_MOST_BYTES:,} bytes from score")
        if finding.get("verdict") not in verdicts:
            known = ", ".join(verdicts)
            raise self._plugin.fail(
                f"gave the verdict {finding.get('verdict')!r}, but its verdicts are {known}"
            )
        if not isinstance(reason := finding.get("reason"), str) or not reason.strip():
            raise self._plugin.fail("gave no reason for its verdict: `reason` must be a sentence")
        if odd := [key for key in _OURS if key in finding]:
            raise self._plugin.fail(f"gave {odd[0]!r}, a key that CoreEval writes itself")
        return finding
