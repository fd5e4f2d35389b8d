"""A run whose benchmark, news and model answers try everything on whoever looks at them."""

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

from coreeval.schema import Evidence, ReplacedFact, Result, Sample, Triple, Verdict
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord

SCRIPT = "<script>alert('owned')</script>"
MARKUP = '<img src=x onerror="alert(1)"><b>bold</b></bdi></td></table>&lt;i&gt;'
OVERRIDE = "pay \N{RIGHT-TO-LEFT OVERRIDE}moc.live\N{POP DIRECTIONAL FORMATTING} now"
LONG = "the bridge opens and <i>nobody</i> minds it at all " * 2000
"""100 KB."""
SAMPLE = "x/<y>/../%2e?a=1#b \N{RIGHT-TO-LEFT OVERRIDE}"
"""An id that is no address, and hides a character."""
ADDRESSES = ("javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "//evil.example")


def make_hostile(like: Path, folder: Path) -> Path:
    """Make a run of one accepted sample with the manifest and config of another run."""
    folder.mkdir(parents=True)
    for name in ("manifest.json", "config.yaml"):
        shutil.copy(like / name, folder / name)
    asyncio.run(_fill(folder / "run.db"))
    return folder


async def _fill(path: Path) -> None:
    store = RunStore.open(path, now=utc_now)
    fields = {"text": f"{MARKUP} {OVERRIDE}", "long": LONG}
    store.add_samples([Sample(id=SAMPLE, split=SCRIPT, fields=fields, label=1, label_text=MARKUP)])
    news = [_news(number, url) for number, url in enumerate((*ADDRESSES, "https://news.example/a"))]
    await store.history.add_evidence(news)
    store.history.record(_step(fields))
    facts = [_fact(item) for item in news]
    texts = {"text": f"{SCRIPT} {OVERRIDE}", "long": LONG.replace("opens", "shuts")}
    await store.commit(
        Result(
            sample_id=SAMPLE,
            outcome="accepted",
            reason=SCRIPT,
            attempts=1,
            rung="named",
            semantic_status="reworded",
            semantic={"text": MARKUP, "long": LONG[::-1]},
            updated=texts,
            original_label=SCRIPT,
            facts=tuple(facts),
        )
    )
    store.close()


def _news(number: int, url: str) -> Evidence:
    return Evidence(
        id=f"{number:016x}",
        url=url,
        domain=MARKUP,
        title=f"{SCRIPT} {OVERRIDE}",
        snippet=MARKUP,
        published_at=datetime(2026, 6, 10, 12, tzinfo=UTC),
        published_precision="exact",
        origin="file:1",
    )


def _fact(item: Evidence) -> ReplacedFact:
    triple = Triple(head=SCRIPT, relation=OVERRIDE, tail=MARKUP)
    return ReplacedFact(
        sample_id=SAMPLE,
        field="text",
        before=triple,
        after=triple,
        evidence_id=item.id,
        quote=SCRIPT,
    )


def _step(fields: dict[str, str]) -> StepRecord:
    statement = {"text": SCRIPT, "quote": MARKUP, "evidence_ids": ["0" * 16]}
    return StepRecord(
        sample_id=SAMPLE,
        attempt=1,
        node="replace",
        started_at="2026-11-20T03:00:00+00:00",
        seconds=0.1,
        error=SCRIPT,
        detail={
            "plan": {"decision": SCRIPT, "reason": MARKUP, "statements": [statement]},
            "composed": fields,
            "evidence": {"0" * 16: "named"},
        },
        verdicts=(Verdict(name=MARKUP, attempt=1, passed=False, reason=SCRIPT),),
    )
