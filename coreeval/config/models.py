"""The model for one role: `provider:name`, its parameters and its prices.

A URL with a password or a query, a key in place of its variable's name, and parameters that
CoreEval sends itself are rejected; error messages do not repeat secrets.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Final, Literal, Self, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, JsonValue, PrivateAttr, model_validator

from coreeval.config.base import Count, Section
from coreeval.config.dates import DateText
from coreeval.config.plugins import PROVIDER, parse_plugin
from coreeval.schema import RoleName


def split_address(url: str) -> SplitResult:
    """Return the parts of a URL, if clients can open a connection to its host and port.

    Raises:
        ValueError: the host or port is not possible; the message does not repeat the URL.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna")  # like `socket`
        possible = port != 0 and host.isprintable()
    except ValueError:
        possible = False
    if not possible:
        raise ValueError(
            "this host or port is not valid; an address looks like http://127.0.0.1:8000/v1"
        )
    return parts


def _check_plain_url(url: str) -> str:
    """Raise an error if a URL may contain secrets; the message must not repeat it."""
    parts = split_address(url)
    if "@" in parts.netloc or parts.query:
        raise ValueError("a URL must not contain a password or a query; see api_key_env for keys")
    return url


def _check_variable_name(name: str) -> str:
    """Raise an error if this is not a variable name, e.g. the key itself; do not repeat it."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise ValueError(
            "this takes the NAME of an environment variable, in capitals, not the key itself"
        )
    return name


PlainUrl = Annotated[str, AfterValidator(_check_plain_url)]
"""A URL without user, password or query."""
VariableName = Annotated[str, AfterValidator(_check_variable_name)]
"""The name of an environment variable with a secret."""


Method = Literal["json_schema", "function_calling", "json_mode", "text"]
METHODS: tuple[Method, ...] = get_args(Method)
"""Ways to make a model follow a schema, the strictest first."""


_RESERVED: Final[Mapping[str, tuple[str, ...]]] = {
    "name the model in `model`": ("model", "model_name", "model_id", "models"),
    "the roles write the prompts (coreeval docs prompts)": (
        *("messages", "input", "prompt", "contents"),
        *("system", "instructions", "system_instruction"),
    ),
    "set the model's `max_tokens`, which the budget uses": (
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
        *("max_tokens_to_sample", "max_length", "num_predict"),
    ),
    "the budget assumes one answer per request": (
        *("n", "best_of", "candidate_count", "num_return_sequences", "num_generations"),
    ),
    "answers are not streamed": ("stream", "streaming", "stream_options"),
    "set the model's `structured`": (
        *("tools", "tool_choice", "functions", "function_call", "mcp_servers"),
        *("response_format", "response_schema", "response_mime_type"),
    ),
}
"""Names that `extra` must not contain, for all providers, by what to do instead."""
_RESERVED_HINTS: Final = {
    name.replace("_", ""): instead for instead, names in _RESERVED.items() for name in names
}
_PARAMETER_MAPPINGS: Final = frozenset(
    ("extrabody", "modelkwargs", "generationconfig", "config", "options", "parameters")
)
"""Mappings whose keys become parameters of the request, without their underscores."""


def _check_extra_parameters(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Raise an error for parameters that CoreEval sends itself: budget and checks need them."""
    for name, instead in _find_reserved(values):
        raise ValueError(f"{name} cannot be set here: {instead}")
    return values


def _find_reserved(values: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the names that are reserved, with what to do instead."""
    for name, value in values.items():
        plain = name.strip().lower().replace("_", "").replace("-", "")
        if plain in _RESERVED_HINTS:
            yield name, _RESERVED_HINTS[plain]
        elif plain in _PARAMETER_MAPPINGS and isinstance(value, dict):
            yield from ((f"{name}.{inner}", instead) for inner, instead in _find_reserved(value))


TokenPrice = Annotated[float, Field(ge=0, le=1e9)]
"""US dollars per million tokens; limited so that sums of prices fit in a float."""


class PriceConfig(Section):
    """The prices of a model, in US dollars per million tokens."""

    input: TokenPrice
    """The price of prompt tokens."""
    output: TokenPrice
    """The price of answer tokens."""
    cached_input: TokenPrice | None = None
    """The price of prompt tokens that the provider read from its cache. None: the same as `input`.
    """
    cache_write: TokenPrice | None = None
    """The price of prompt tokens that the provider was asked to cache. None: the same as `input`.
    """
    batch_input: TokenPrice | None = None
    """The price of prompt tokens in batches. None: unknown."""
    batch_output: TokenPrice | None = None
    """The price of answer tokens in batches. None: unknown."""


def hide_folder(model: str) -> str:
    """Return a model's name without the folder of a file or of weights on this machine."""
    provider, colon, name = model.partition(":")
    is_path = provider in ON_THIS_MACHINE and not name.startswith("package:")
    return f"{provider}{colon}{PurePath(name).name}" if is_path else model


MODEL_SPELLING: Final = "plugin:NAME or plugin:module:Class"
OWN_CODE: Final = "python"
"""The provider of a role played by the caller's own code: `python:package.Class`."""
ON_THIS_MACHINE: Final = frozenset({"replay", "hf"})
"""Providers whose answers come from this machine: no key, no endpoint, no money."""


class ModelConfig(Section):
    """A model for one role: `provider:name` and its parameters."""

    model: str
    """`openai:NAME`, `anthropic:NAME`, any provider of LangChain, `hf:WEIGHTS`, `replay:FILE`
    (recorded answers), `offline` (rules), `spacy` (extractor only) or `plugin:NAME`
    (docs/plugins.md). A target may also be `offline:NAME`, a small classifier that CoreEval fits
    (docs/targets.md)."""
    base_url: PlainUrl | None = None
    """Any endpoint with the provider's API, as a URL without user, password or query. None: the
    provider's own endpoint."""
    temperature: float | None = None
    """The sampling temperature, which is sent only if it is set."""
    max_tokens: Count = 2048
    """The maximum length of an answer, in tokens. If an answer is cut off, the second try allows
    twice this length."""
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    """The random seed, which is sent only if it is set."""
    reasoning_effort: str | None = None
    """The reasoning effort, which is sent only if it is set."""
    structured: Method | Literal["auto"] = "auto"
    """How JSON is requested. `auto`: the strictest way that the endpoint supports, which is
    determined once and remembered."""
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    """The time limit of one request, in seconds."""
    api_key_env: VariableName | None = None
    """The name of the environment variable with the key. None: the provider's usual variable, such
    as `OPENAI_API_KEY`."""
    ca_file: str | None = None
    """A PEM file with the only certificate authorities that are trusted for the endpoint. None: the
    authorities that the system trusts."""
    price: PriceConfig | None = None
    """Overrides the built-in price and the one in `run.prices` for all uses of the model with the
    same `base_url` in the config."""
    max_in_flight: Count | None = None
    """The maximum number of simultaneous requests. None: `run.concurrency`."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """The maximum number of requests per minute. None: no limit."""
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None
    """The maximum number of tokens per minute. None: no limit."""
    extra: Annotated[dict[str, JsonValue], AfterValidator(_check_extra_parameters)] = {}
    """Further parameters of the request, sent unchanged. Credentials and CoreEval's own parameters
    are refused (docs/models.md)."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value

    _place: str = PrivateAttr(default="")

    @property
    def place(self) -> str:
        """Return the present path of `replay:FILE` or `hf:PATH`."""
        return self._place or self.name

    def resolve(self, at: Callable[[str], str], rename: Callable[[str], str] | None = None) -> Self:
        """Return it with absolute paths of `replay:FILE`, `hf:PATH` and `ca_file`.

        Args:
            at: Returns the path of a file.
            rename: Returns the name to use for `replay:FILE` and `hf:PATH`. None: their path.
        """
        changes: dict[str, object] = {"ca_file": at(self.ca_file) if self.ca_file else None}
        place = ""
        if self._is_path(at):
            place = at(self.name)
            changes["model"] = f"{self.provider}:{rename(self.name) if rename else place}"
        made = self.model_copy(update=changes)
        made._place = place if place != made.name else ""
        return made

    def _is_path(self, at: Callable[[str], str]) -> bool:
        """Return whether the name is a path; names of hub models look like paths, too."""
        if self.provider != "hf":
            return self.provider == "replay"
        hub = self.extra.get("hub") is True
        return not self.name.startswith("package:") and (not hub or Path(at(self.name)).exists())

    @property
    def is_on_this_machine(self) -> bool:
        """Return whether its answers come from this machine: no key, no endpoint, no money."""
        return self.provider in ON_THIS_MACHINE

    @property
    def provider(self) -> str:
        """Return the part of `model` before the colon."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """Return the part of `model` after the colon; empty for `offline`."""
        return self.model.partition(":")[2]

    @property
    def key_variable(self) -> str:
        """Return the variable with the key; by default the provider's own."""
        return self.api_key_env or f"{self.provider.upper()}_API_KEY"

    @property
    def is_rule_based(self) -> bool:
        """Return whether our own rules play this model: no key, no messages, no call store."""
        return self.provider in {"offline", "spacy"}

    @property
    def is_plugin(self) -> bool:
        """Return whether a plugin plays this model: `plugin:NAME` or `plugin:module:Class`."""
        return self.provider == PROVIDER

    @property
    def is_asked(self) -> bool:
        """Return whether a model is asked, not our rules or a role's plugin."""
        return not (self.is_rule_based or self.is_plugin)

    @model_validator(mode="after")
    def _check_plugin(self) -> Self:
        if self.is_plugin and parse_plugin(self.model) is None:
            raise ValueError(f"{self.model!r} does not name a plugin: write {MODEL_SPELLING}")
        return self


ROLES: tuple[RoleName, ...] = (
    "extractor",
    "replacer",
    "rewriter",
    "composer",
    "fact_judge",
    "label_judge",
)


class TargetConfig(ModelConfig):
    """A model under test."""

    cutoff: DateText | None = None
    """The end of the target's training data, a day or a month. Like `released`, it overrides the
    known date (docs/cutoffs.md)."""
    released: DateText | None = None
    """The date on which the target was published, a day or a month."""
    role: Literal["target", "reference"] = "target"
    """`reference`: a model that is presumed not to have seen the benchmark; the PCR of the other
    targets is compared with its PCR (docs/pcr.md). At least one target must not be a reference."""

    @model_validator(mode="after")
    def _check_provider(self) -> Self:
        if self.provider == "spacy":
            raise ValueError("spacy is an extractor, not a target")
        return self

    @property
    def is_embedded(self) -> bool:
        """Return whether this is `offline:NAME`, a small classifier fitted here."""
        return self.provider == "offline"

    @property
    def is_asked(self) -> bool:
        """Return whether it is asked through the call store, as plugins for targets are too."""
        return not self.is_rule_based


def require_distinct_targets(targets: Sequence[TargetConfig]) -> None:
    """Raise an error if targets share a name, because answers are stored by name."""
    names = [target.model for target in targets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"targets contains {twice[0]!r} more than once")


def require_tested_target(targets: Sequence[TargetConfig]) -> None:
    """Raise an error if all targets are references, because none could be compared with them."""
    if targets and all(target.role == "reference" for target in targets):
        raise ValueError("targets contains only references: at least one needs `role: target`")


class ModelsConfig(Section):
    """The model of each role."""

    default: ModelConfig
    """The model for every role that has no model of its own."""
    extractor: ModelConfig | None = None
    """Finds the entities of a text and the words that must stay unchanged; `spacy` does this
    without a language model."""
    replacer: ModelConfig | None = None
    """Chooses the news and the facts that change."""
    rewriter: ModelConfig | None = None
    """Writes the semantic text: the same facts in other words."""
    composer: ModelConfig | None = None
    """Writes the updated text with the new facts."""
    fact_judge: ModelConfig | None = None
    """Judges whether the evidence supports every new statement."""
    label_judge: ModelConfig | None = None
    """Labels texts without being shown their labels; ideally, it is a different model from the
    composer."""
    targets: tuple[TargetConfig, ...] = ()
    """The models to test; each may occur only once."""

    @model_validator(mode="after")
    def _check_rule_based_roles(self) -> Self:
        wrong = [role for role in ROLES if self.for_role(role).provider == "spacy"]
        if wrong not in ([], ["extractor"]):
            raise ValueError("spacy can only be an extractor: use it only in models.extractor")
        named = [
            self.for_role(role).model for role in self.rule_based_roles if self.for_role(role).name
        ]
        if named:
            plain = named[0].partition(":")[0]
            raise ValueError(f"a role takes {plain!r} without a name, not {named[0]!r}")
        return self

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        require_distinct_targets(self.targets)
        require_tested_target(self.targets)
        return self

    def for_role(self, role: RoleName) -> ModelConfig:
        """Return the model configured for a role, or the default."""
        chosen: ModelConfig | None = getattr(self, role)
        return chosen or self.default

    @property
    def measured_targets(self) -> list[TargetConfig]:
        """Return the targets that get verdicts: all except the references."""
        return [target for target in self.targets if target.role == "target"]

    @property
    def unasked_roles(self) -> list[RoleName]:
        """Return the roles for which no model is asked: our rules or plugins play them."""
        return [role for role in ROLES if not self.for_role(role).is_asked]

    @property
    def rule_based_roles(self) -> list[RoleName]:
        """Return the roles played by our own rules; output that shows their work must say so."""
        return [role for role in ROLES if self.for_role(role).is_rule_based]
