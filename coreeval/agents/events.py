"""Groups news by event, offers one event's reports together, and limits the samples per event.

Retrieval finds single reports. `bundle_reports` groups those of one event across outlets and days;
`rank_events` orders the events for a sample by words and meaning; `choose_passages` selects as much
of an event's texts as a sample of its length needs; `deal_events` assigns each event to at most a
few samples. Their results depend only on their arguments, so that a resumed run offers every sample
the same news.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from coreeval.agents.queries import ALIKE_SHARE, find_best_rung
from coreeval.agents.text.words import count_words, find_content_stems
from coreeval.schema import Evidence, Rung

EVENTS_OFFERED = 8
"""The number of events offered to a sample; in lists of 20 single reports, writers found most items
irrelevant (research: reading_trial_2)."""
MOST_REPORTS = 3
"""The most reports of one event that are offered; more repeat each other (pilot §2)."""
MOST_REPORTS_OF_TWEET = 1
"""The most reports of one event that are offered for a personal text, which needs a single fact;
more only cost tokens (docs/quality.md)."""
SAME_EVENT_SPAN = timedelta(days=4)
"""The longest time between two reports of one event (own choice: a report on the next day, and its
follow-up)."""
MATERIAL = 2.5
"""The words of material per word of the original: a writer omits what does not fit, and so needs
more than is written (own choice)."""
LEAST_MATERIAL, MOST_MATERIAL = 40, 260
"""The fewest and the most words of passages for one event (own choice)."""
MEANING_WEIGHT = 0.6
"""The weight of meaning against words in the order of events, if there is an embedder (own choice,
not measured yet)."""
MOST_RANKED = 24
"""The most events of a sample that are compared in meaning, the first in the order of retrieval;
three times as many as are offered (own choice)."""
MOST_COMPARED = 8
"""The most sentences of an event that are compared in meaning, those with most words of the sample
first: a sentence takes MiniLM about 10 ms (own choice)."""

Similarity = Callable[[Sequence[str], str], Sequence[float]]
"""Returns the similarity in meaning of each of some texts to another text, from -1 to 1."""


@dataclass(frozen=True, kw_only=True)
class NewsEvent:
    """Reports of one event."""

    reports: tuple[Evidence, ...]
    """The reports, at least one, best first."""
    rung: Rung
    """The best rung of the knowledge ladder that found one of them."""
    key: str
    """The event's id: its cluster in the index, or otherwise one of its reports."""


def bundle_reports(found: Mapping[Evidence, Rung]) -> list[NewsEvent]:
    """Return the reports by event, in the order of each event's best report.

    Two reports belong to one event if the index says so, or if their headlines share many words and
    they are close in time.
    """
    bundles = list[list[Evidence]]()
    for report in found:
        home = next((bundle for bundle in bundles if _tells_same(report, bundle)), None)
        if home is None:
            bundles.append([report])
        else:
            home.append(report)
    return [_make_event(bundle, found) for bundle in bundles]


def _make_event(bundle: Sequence[Evidence], found: Mapping[Evidence, Rung]) -> NewsEvent:
    best = find_best_rung(found[one] for one in bundle)
    return NewsEvent(reports=tuple(bundle), rung=best, key=_find_key(bundle))


def _find_key(bundle: Sequence[Evidence]) -> str:
    clusters = sorted(one.cluster for one in bundle if one.cluster)
    return clusters[0] if clusters else min(one.id for one in bundle)


def _tells_same(report: Evidence, bundle: Sequence[Evidence]) -> bool:
    return any(_is_same_event(report, other) for other in bundle)


def _is_same_event(one: Evidence, other: Evidence) -> bool:
    if one.cluster and one.cluster == other.cluster:
        return True
    if abs(one.published_at - other.published_at) > SAME_EVENT_SPAN:
        return False
    own, others = (find_content_stems(each.title, each.language) for each in (one, other))
    return len(own & others) >= max(2, ALIKE_SHARE * len(own | others))


def rank_events(
    events: Sequence[NewsEvent], text: str, *, similarity: Similarity | None = None
) -> list[NewsEvent]:
    """Return the events, the most suitable for a sample first.

    Args:
        events: The events in the order of retrieval, which is by names and words.
        text: The sample's text and the kind of news that it needs.
        similarity: Returns similarities in meaning; without it, the order of retrieval stays.
    """
    if similarity is None or len(events) < 2:
        return list(events)
    events, others = events[:MOST_RANKED], events[MOST_RANKED:]
    near = similarity([_describe(event) for event in events], text)
    by_words = {event.key: 1 - place / len(events) for place, event in enumerate(events)}
    low, high = min(near), max(near)
    spread = (high - low) or 1.0
    scores = {
        event.key: MEANING_WEIGHT * (value - low) / spread
        + (1 - MEANING_WEIGHT) * by_words[event.key]
        for event, value in zip(events, near, strict=True)
    }
    return [*sorted(events, key=lambda event: -scores[event.key]), *others]


def _describe(event: NewsEvent) -> str:
    best = event.reports[0]
    return f"{best.title}. {best.snippet}".strip()


_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[\u00bf\u00a1\u201e\u00ab]?[A-Z\u00c0-\u00de0-9])|\n+"
)


def split_passages(text: str) -> list[str]:
    """Return the sentences of an article in order, without blank ones."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def choose_passages(
    texts: Mapping[str, str],
    sample_text: str,
    *,
    similarity: Similarity | None = None,
) -> dict[str, str]:
    """Return, for each report of an event, the sentences to show, in the order of its text.

    Sentences that repeat another one are omitted. The first sentence of a report says what happened
    and is always shown; the others are chosen by their similarity to the sample.

    Args:
        texts: The text of each report, a description or an article, by evidence id.
        sample_text: The sample's text and the kind of news that it needs.
        similarity: Returns similarities in meaning; without it, only words decide.
    """
    budget = min(MOST_MATERIAL, max(LEAST_MATERIAL, round(MATERIAL * count_words(sample_text))))
    every = [
        (key, place, sentence)
        for key, text in texts.items()
        for place, sentence in enumerate(split_passages(text))
    ]
    scores = _score_sentences([sentence for _, _, sentence in every], sample_text, similarity)
    order = sorted(range(len(every)), key=lambda at: (every[at][1] > 0, -scores[at], at))
    kept, told, words = set[int](), list[frozenset[str]](), 0
    for at in order:
        own, length = find_content_stems(every[at][2]), count_words(every[at][2])
        if _repeats(own, told) or (kept and words + length > budget):
            continue
        kept.add(at)
        told.append(own)
        words += length
    return {
        key: " ".join(every[at][2] for at in sorted(kept) if every[at][0] == key) for key in texts
    }


def _score_sentences(
    sentences: Sequence[str], text: str, similarity: Similarity | None
) -> list[float]:
    wanted, stems = find_content_stems(text), map(find_content_stems, sentences)
    shared = [len(own & wanted) / (len(own) or 1) for own in stems]
    if similarity is None or not sentences:
        return shared
    likely = sorted(range(len(sentences)), key=lambda at: -shared[at])[:MOST_COMPARED]
    near = similarity([sentences[at] for at in likely], text)
    for at, meaning in zip(likely, near, strict=True):
        shared[at] += meaning
    return shared


def _repeats(own: frozenset[str], told: Iterable[frozenset[str]]) -> bool:
    """Return whether a sentence repeats another one, or has no content."""
    return not own or any(len(own & other) >= 0.7 * len(own) for other in told)


def deal_events(
    wanted: Mapping[str, Sequence[str]],
    *,
    reuse: int,
    each: int,
    seed: int,
    taken: Iterable[str] = (),
) -> dict[str, list[str]]:
    """Assign events to samples so that no event is offered to more than `reuse` of them.

    Samples choose in turn, in an order given by the seed and their ids: each takes its best event
    that is still available, then all take their second one, and so on.

    Args:
        wanted: The keys of each sample's events, best first, by sample id.
        reuse: The most samples to which one event may be offered.
        each: The most events for one sample.
        seed: The run's seed.
        taken: The events assigned to other samples before, each as often as it was assigned.
    """
    counts, dealt = Counter(taken), {sample: list[str]() for sample in wanted}
    order = sorted(wanted, key=lambda sample: _rank(seed, sample))
    left: dict[str, Iterator[str]] = {sample: iter(keys) for sample, keys in wanted.items()}
    for _ in range(each):
        for sample in order:
            key = next((one for one in left[sample] if counts[one] < reuse), None)
            if key is not None:
                counts[key] += 1
                dealt[sample].append(key)
    return dealt


def _rank(seed: int, sample: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{sample}".encode()).digest()
