from datetime import UTC, datetime, timedelta

import pytest

from coreeval.evaluation.report.provenance import TOP, summarize_evidence
from coreeval.schema import Precision, Window
from coreeval.tools.stores.run_figures import EvidenceUse

START = datetime(2026, 3, 1, tzinfo=UTC)


def cited(
    day: float, domain: str = "a.example", precision: Precision = "exact", samples: int = 1
) -> EvidenceUse:
    return EvidenceUse(
        domain=domain,
        published_at=(START + timedelta(days=day)).isoformat(),
        precision=precision,
        samples=samples,
        facts=2 * samples,
    )


def window(days: float) -> Window:
    return Window(start=START, end=START + timedelta(days=days))


def test_articles_are_counted_by_date_by_publisher_and_by_how_surely_they_are_dated() -> None:
    found = summarize_evidence(
        [cited(0), cited(1, "b.example", "crawl", 3), cited(6.5, "b.example", "crawl")], window(7)
    )
    assert (found.articles, found.facts, found.domains_in_all) == (3, 10, 2)
    assert found.precision == {"exact": 1, "crawl": 2}
    assert [(one.domain, one.articles, one.samples) for one in found.domains] == [
        ("b.example", 2, 4),
        ("a.example", 1, 1),
    ]
    assert found.ages
    assert (found.ages.youngest, found.ages.median, found.ages.oldest) == (0.5, 6, 7)
    assert (found.span_days, [each.articles for each in found.spans]) == (1, [1, 1, 0, 0, 0, 0, 1])
    assert found.spans[-1].start == "2026-03-07"


@pytest.mark.parametrize(("days", "span", "parts"), [(0.2, 1, 1), (30, 7, 5), (426, 28, 16)])
def test_the_window_has_few_parts_however_long_it_is(days: float, span: int, parts: int) -> None:
    found = summarize_evidence([cited(0)], window(days))
    assert (found.span_days, len(found.spans)) == (span, parts)


def test_what_kept_samples_cite_from_before_the_window_is_in_its_first_part() -> None:
    found = summarize_evidence([cited(-100), cited(9)], window(10))
    assert [each.articles for each in found.spans] == [1, *[0] * 8, 1]
    assert found.ages and found.ages.oldest == 110


def test_only_the_most_cited_publishers_are_named() -> None:
    found = summarize_evidence([cited(0, f"{n:02}.example") for n in range(TOP + 5)], window(1))
    assert (len(found.domains), found.domains_in_all) == (TOP, TOP + 5)


def test_without_any_there_is_nothing_to_add_up() -> None:
    found = summarize_evidence([], window(10))
    assert (found.articles, found.ages, found.spans, found.domains) == (0, None, (), ())
