"""Rejects likely credentials in a config, because configs are copied into runs and releases.

There are two rules; one match is enough. They are applied to plain data, before anything else.

1. A key named like a credential: its last word is `password`, `secret`, `authorization`, `cookie`,
   `credentials`, `token`, `key` or the like, and its value is a text or a number. Names that models
   and caches use otherwise, such as `eos_token` and `prompt_cache_key`, pass.
2. A text shaped like a credential, under any key: the prefixes of well-known providers, a JSON web
   token, a private key, `Bearer …` or `Basic …`, a URL with a password or with a query parameter
   of rule 1 or named `pass`, the address of a chat service's webhook. Under `extra` also one opaque
   word: at least 32 characters of capitals, small letters and digits mixed. A hash in hexadecimal
   and a UUID have no capitals beside small letters, and pass; so does a shell variable, such as
   `Bearer $TOKEN`.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from urllib.parse import unquote, unquote_to_bytes, urlsplit, urlunsplit

from coreeval.errors import ConfigError

HIDDEN = "***"
_HINT = (
    "put it in an environment variable or in .env next to the config: a model's key in the "
    "variable that api_key_env names, a webhook's address in the variable that webhook_env names"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_ALWAYS = re.compile(
    r"pass(word|wd|phrase)|pwd|secrets?|auth(orization|entication)?|bearer|cookies?|credentials?"
    r"|(api|access|secret|private|subscription)key|(auth|access|refresh)token|clientsecret"
    r"|signature|sig|jwt"
)
_UNLESS_AFTER = {
    "token": re.compile(
        r"eos|bos|pad|unk|sep|cls|mask|stop|start|end|begin|special|image|audio|system|first|last"
        r"|next|per|forced|decoder|think|thinking"
    ),
    "key": re.compile(r"cache|idempotency|sort|primary|foreign|partition|group|routing"),
}
"""Last words of credential names, with the preceding words that make a name harmless."""
_FREE_NAMES = frozenset({"columns", "files", "signals"})
"""Mappings whose keys are names that the user chose: of columns, series and signals."""

_SHAPES = re.compile(
    r"""
      # OpenAI, Anthropic, Stripe and many others: a long word with a digit after the prefix
      \b[spr]k[-_](?:[A-Za-z0-9]{1,20}[-_]){0,4}(?=[A-Za-z]{0,100}\d)[A-Za-z0-9]{12,}
    | \bgh[opsur]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}            # GitHub
    | \bglpat-[\w-]{16,}                                             # GitLab
    | \bhf_[A-Za-z0-9]{20,}                                          # Hugging Face
    | \b(?:gsk|r8|tgp|npm|nvapi|xai|pplx|csk)[-_][A-Za-z0-9]{20,}    # Groq, Replicate, npm, …
    | \blsv2_[a-z]{2}_[A-Za-z0-9]{20,}                               # LangSmith
    | \bxox[abeoprs]-[\w-]{10,}                                      # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                                  # Amazon
    | \bAIza[\w-]{30,} | \bya29\.[\w-]{20,}                         # Google
    | \beyJ[\w-]{8,300}\.[\w-]{8,}                                 # a JSON web token
    | -----BEGIN[ A-Z]{0,40}PRIVATE[ ]KEY-----
    | \bbearer\s+(?![$<{])(?:(?=\S{0,100}\d)[\w.~+/=-]{8,}|[\w.~+/=-]{20,})
    | \bbasic\s+(?=[A-Za-z+/]{0,100}[\d=])[A-Za-z0-9+/]{8,}={0,2}
    | ://[^\s/@:$]*:(?![$<{])[^\s/@]+@                               # a URL with a password
    | hooks\.slack\.com/(?:services|workflows|triggers)/\w+
    | discord(?:app)?\.com/api/webhooks/\w+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PARAMETER = re.compile(r"[?&;]([\w.[\]-]{1,80})=(?![$<{])[^\s&#'\"]{4,}")
_URL_PARAMETER = re.compile(r"[?&;]([\w.[\]-]{1,80})=(?=((?![$<{])[^\s&#'\"]{4,200}))")
"""The same also in an address that is the value of a parameter."""
_LONGEST_BEGINNING = 3 * (80 + 1 + 200)
"""The most characters that `_URL_PARAMETER` matches, each escaped as `%41`."""
_MOST_PARAMETERS = 64
"""The most parameters between semicolons that are read (own choice)."""
_SECRET_KEY = re.compile(r"api|access|app|auth|client|consumer|private|secret|subscription")
"""Words before `key` in the name of a parameter that is certainly a credential."""
_LONG_MIX = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9]{32,}")
"""A value of letters and digits without separators, unlike the name or number of an article."""
_NUMBERED = re.compile(r"\[\d*\]$")
"""The end of the name of a parameter that is an element of a list."""
_KEY_START = re.compile(
    r"[spr]k[-_]|gh[opsur]_|github_pat_|glpat-|hf_|(?:gsk|r8|tgp|npm|nvapi|xai|pplx|csk)[-_]|lsv2_"
    r"|xox[abeoprs]-|AKIA|ASIA|AIza|ya29\.|eyJ"
)
_LONG_PARTS = re.compile(r"[A-Za-z0-9]{16,}")
_IN_PATHS = re.compile(rf";|/(?:{_KEY_START.pattern})")
_HOLDS_CREDENTIALS = re.compile(rf"[@?#]|{_IN_PATHS.pattern}")
"""The characters before or after a credential in a URL, or its beginning; most URLs have none."""
_DIGEST = re.compile(r"hidden-[0-9a-f]{12}")
_HIDDEN_VALUE = re.compile(rf"[?&#=/;]{_DIGEST.pattern}(?=[&#/;?]|$)")
_OPAQUE = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/_=.-]{32,}")


def refuse_credentials(raw: object, *, where: str) -> None:
    """Raise an error if plain data contains a likely credential; the error does not repeat it.

    Args:
        raw: Mappings, lists and texts, as read from YAML.
        where: The location to name in an error.

    Raises:
        ConfigError: a key or a text in it looks like a credential by the module's two rules.
    """
    found = next(_find_suspects(raw, ()), None)
    if found is not None:
        place = ".".join(hide_credentials(part) for part in found)
        raise ConfigError(
            f"{place or 'this'} looks like a credential, and a config is copied into runs and "
            "releases",
            where=where,
            hint=_HINT,
        )


def hide_credentials(text: str) -> str:
    """Return a text with everything shaped like a credential replaced by `***`."""
    return _PARAMETER.sub(_hide_value, _SHAPES.sub(HIDDEN, text))


def _hide_value(parameter: re.Match[str]) -> str:
    whole, name = parameter[0], parameter[1]
    return f"{whole[0]}{name}={HIDDEN}" if _is_secret_parameter(name) else whole


def hide_url_credentials(url: str) -> str:
    """Return a URL without user and password, and with a digest for each parameter's credential.

    The rest is unchanged, and so is a text that is not a URL. Different values have different
    digests, so the addresses of two articles stay two. A name such as `article_key` often names an
    article, so its value stays unless it looks like a credential, too.
    """
    if not _HOLDS_CREDENTIALS.search(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    public = parts._replace(
        netloc=parts.netloc.rpartition("@")[2],
        path="/".join(map(_hide_segment, parts.path.split("/")))
        if _IN_PATHS.search(parts.path)
        else parts.path,
        query="&".join(map(_hide_parameters, parts.query.split("&"))),
        fragment="&".join(map(_hide_parameters, parts.fragment.split("&"))),
    )
    return url if public == parts else urlunsplit(public)


def has_hidden_credential(url: str) -> bool:
    """Return whether a URL contains the digest of a credential, so that it leads nowhere."""
    return _HIDDEN_VALUE.search(url) is not None


def _hide_segment(segment: str) -> str:
    """Return a part of a path without a key, and without credentials in its own parameters."""
    own, semicolon, parameters = segment.partition(";")
    plain = unquote(own)
    if _KEY_START.match(plain) and _SHAPES.match(plain) and _has_long_mix(plain):
        own = _make_digest(own)
    return f"{own}{semicolon}{_hide_parameters(parameters)}"


def _has_long_mix(text: str) -> bool:
    """Return whether a text has a part of a key: long, with letters and digits.

    The words and numbers of an article's address are shorter, or not mixed.
    """
    parts = _LONG_PARTS.findall(text)
    return any(not each.isalpha() and not each.isdecimal() for each in parts)


def _hide_parameters(text: str) -> str:
    """Return parameters between semicolons; from the first credential on, all is hidden.

    Few servers split at a semicolon, so what follows one may be the rest of the credential. After
    very many semicolons, which no address needs, all is hidden.
    """
    at = 0
    for _ in range(_MOST_PARAMETERS):
        end = text.find(";", at)
        if end < 0 or _starts_with_credential(text, at, end):
            return text[:at] + _hide_parameter(text[at:])
        at = end + 1
    rest = text[at:]
    return text[:at] + (rest if _DIGEST.fullmatch(rest) else _make_digest(rest))


def _starts_with_credential(text: str, start: int, end: int) -> bool:
    """Return whether a credential begins at the start of a parameter, which ends before `end`."""
    whole = _URL_PARAMETER.match(f"?{unquote(text[start : start + _LONGEST_BEGINNING])}")
    certain = whole is not None and _is_certain(*whole.groups())
    return certain or _has_parameter_credential(text[start:end])


def _make_digest(text: str) -> str:
    whole = unquote_to_bytes(text.encode("utf-8", "surrogatepass"))
    return f"hidden-{sha256(whole).hexdigest()[:12]}"


def _hide_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    is_named = bool(equals) and not _has_parameter_credential(name)
    if not _has_parameter_credential(parameter) or (is_named and _DIGEST.fullmatch(value)):
        return parameter
    return f"{name + equals if is_named else ''}{_make_digest(parameter)}"


def _has_parameter_credential(parameter: str) -> bool:
    plain = unquote(parameter)
    found = _URL_PARAMETER.findall(f"?{plain}")
    return _SHAPES.search(plain) is not None or any(_is_certain(*each) for each in found)


def _is_certain(name: str, value: str) -> bool:
    """Return whether a parameter is a credential, not the name or number of an article."""
    name = _NUMBERED.sub("", name)
    *before, last = (word.lower() for word in _WORDS.findall(name) or [""])
    if last == "key" and not (before and _SECRET_KEY.fullmatch(before[-1])):
        alone = value.partition(";")[0]
        return _is_credential_name(name) and _LONG_MIX.fullmatch(alone) is not None
    return _is_secret_parameter(name)


def _is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of an address is named like a credential; some say only `pass`."""
    plain = _NUMBERED.sub("", name)
    return plain.lower() in ("pass", "userpass") or _is_credential_name(plain)


def _find_suspects(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the key paths of likely credentials."""
    if isinstance(value, Mapping):
        named = bool(path) and path[-1] in _FREE_NAMES
        for key, inner in value.items():
            at = (*path, str(key))
            if _has_credential_shape(str(key)) or (
                not named and _is_credential_name(str(key)) and _has_value(inner)
            ):
                yield at
            else:
                yield from _find_suspects(inner, at)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _find_suspects(inner, (*path, str(number)))
    elif isinstance(value, str) and (
        _has_credential_shape(value) or ("extra" in path and _is_opaque(value))
    ):
        yield path


def _is_credential_name(key: str) -> bool:
    """Return whether a key is named like a credential (rule 1)."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words:
        return False
    before, last = words[:-1], words[-1]
    harmless = _UNLESS_AFTER.get(last)
    if harmless is None:
        return _ALWAYS.fullmatch(last) is not None
    return not any(harmless.fullmatch(word) for word in before)


def _has_value(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_has_value(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_has_value(inner) for inner in value)
    return not (value is None or isinstance(value, bool) or str(value).strip() == "")


def _has_credential_shape(text: str) -> bool:
    """Return whether a text contains something shaped like a credential (rule 2)."""
    named = any(_is_secret_parameter(name) for name in _PARAMETER.findall(text))
    return named or _SHAPES.search(text) is not None


def _is_opaque(text: str) -> bool:
    return _OPAQUE.fullmatch(text.strip()) is not None
