"""A German benchmark with German news, from its files to accepted texts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml

from coreeval.config import load_config
from coreeval.errors import ConfigError
from coreeval.graph.inputs import open_news
from coreeval.graph.run import refresh
from coreeval.graph.setup import check_models, set_up
from coreeval.tools.clock import utc_now
from coreeval.tools.workspace import Workspace
from tests.support.llm_server import LLMServer, Request
from tests.support.wire import Prompted


class Case(NamedTuple):
    """One sample, the news for it, and what the models answer."""

    text: str
    label: str
    span: str
    search: str
    title: str
    quote: str
    head: str
    reworded: str
    composed: str


CASES = (
    Case(
        "Endlich ist mein Zug mal pünktlich, ich freue mich so über den Feierabend",
        "joy",
        "Zug",
        "Fähre Nordinsel fährt",
        "Fähre zur Nordinsel fährt ab Montag wieder nach Fahrplan",
        "Fähre zur Nordinsel fährt ab Montag wieder",
        "Fähre",
        "Was für ein Feierabend: Mein Zug kam ganz ohne Verspätung, und ich freue mich riesig",
        "Ab Montag fährt die Fähre zur Nordinsel wieder, was freue ich mich auf die Tage dort",
    ),
    Case(
        "Mein Verein hat schon wieder verloren und ich sitze traurig vor dem Fernseher",
        "sadness",
        "Verein",
        "Freibad Sommer geschlossen",
        "Freibad Lindental bleibt den ganzen Sommer über geschlossen",
        "Freibad Lindental bleibt den ganzen Sommer über geschlossen",
        "Freibad Lindental",
        "Traurig hocke ich vor dem Fernseher, denn der Verein verliert ein weiteres Mal",
        "Das Freibad im Lindental bleibt den Sommer über geschlossen, da werde ich ganz traurig",
    ),
    Case(
        "Die Stadt will das Parken teurer machen, das macht mich einfach nur wütend",
        "anger",
        "Stadt",
        "Stadtwerke Gaspreis Erhöhung",
        "Stadtwerke Bergfeld erhöhen den Gaspreis um 12,5 Prozent",
        "Stadtwerke Bergfeld erhöhen den Gaspreis um 12,5 Prozent",
        "Stadtwerke Bergfeld",
        "Mehr Geld fürs Parken will diese Stadt nun haben, da werde ich wirklich wütend",
        "Die Stadtwerke erhöhen den Gaspreis gleich um 12,5 Prozent, wie wütend soll man da werden",
    ),
    Case(
        "Das neue Stadion wird sicher schön, wir schaffen das mit dem Umbau noch",
        "optimism",
        "Stadion",
        "Brücke Neubau eröffnet",
        "Neue Brücke über die Ahle soll schon im Herbst eröffnet werden",
        "Brücke über die Ahle soll schon im Herbst eröffnet werden",
        "Brücke über die Ahle",
        "Mit dem Umbau kommen wir noch hin, und am Ende steht da sicher ein schönes Stadion",
        "Im Herbst soll die Brücke über die Ahle eröffnet werden, das wird sicher schön für uns",
    ),
)


def answer(request: Request) -> str:
    """Play all roles for the case whose words stand in the prompt."""
    prompted = Prompted(request)
    case = next(one for one in CASES if any(text in prompted.user for text in
                (one.text, one.reworded, one.composed)))  # fmt: skip
    return json.dumps(ROLES[prompted.shape](case, prompted), ensure_ascii=False)


def extraction(case: Case, _: Prompted) -> dict[str, object]:
    entity = {
        "span": case.span, "field": "text", "kind": "concept", "type": "topic",
        "query_name": case.search, "aliases": [],
    }  # fmt: skip
    triple = {"head": case.span, "relation": "ist", "tail": "so", "field": "text"}
    return {
        "entities": [entity], "triples": [triple], "locked": [], "sensitive": [],
        "queries": [case.search], "siblings": [], "structures": [], "need": "",
        "deixis_only": False,
    }  # fmt: skip


def plan(case: Case, prompted: Prompted) -> dict[str, object]:
    news = prompted.block("news", list[dict[str, object]])
    number = next(item["number"] for item in news if item["title"] == case.title)
    change = {
        "before": {"head": case.span, "relation": "ist", "tail": "so"},
        "after": {"head": case.head, "relation": "ist", "tail": case.quote},
        "field": "text", "statement": 1,
    }  # fmt: skip
    statement = {
        "text": case.quote, "evidence": [number], "quote": case.quote, "translation": "",
        "modality": "asserted", "speaker": "",
    }  # fmt: skip
    return {
        "sketch": "", "reason": "", "decision": "use", "statements": [statement],
        "replacements": [change], "delete": [], "persons": [], "claims": {},
        "replaces_all": False,
    }  # fmt: skip


def facts(case: Case, prompted: Prompted) -> dict[str, object]:
    news = prompted.block("news", list[dict[str, object]])
    number = next(item["number"] for item in news if item["title"] == case.title)
    claim = {
        "text": case.quote, "field": "text", "words": case.head, "kind": "fact",
        "supported": "yes", "evidence": number, "quote": case.quote, "defect": "none",
    }  # fmt: skip
    return {"statements": [claim]}


def labels(_: Case, prompted: Prompted) -> dict[str, object]:
    by_text = {one.text: one.label for one in CASES}
    shown = prompted.block("texts", list[dict[str, object]])
    return {
        "texts": [
            {"number": one["number"], "cue": "", "label": by_text[str(one["text"])],
             "confidence": "high", "odd": "", "fluency": 3}
            for one in shown
        ]
    }  # fmt: skip


ROLES: dict[str, Callable[[Case, Prompted], dict[str, object]]] = {
    "extraction": extraction,
    "plan": plan,
    "fact_check": facts,
    "rewrite": lambda case, _: {
        "declined": False, "reason": "", "reworded": True, "fields": {"text": case.reworded},
    },
    "composition": lambda case, _: {
        "moment": "", "draft": "", "stumble": "", "fields": {"text": case.composed},
        "used_replacements": [1], "dropped": [],
    },
    "labels": labels,
    "label": lambda case, _: {
        "cue": "", "label": case.label, "confidence": "high", "odd": "", "fluency": 3,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[LLMServer]:
    with LLMServer(answer).in_thread() as serving:
        yield serving


def written(folder: Path, server: LLMServer, **changes: object) -> Path:
    """Write the benchmark, the news and the config."""
    rows = ({"text": one.text, "label": one.label} for one in CASES)
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    titles = [*((one.title, "de") for one in CASES), ("Ferry to the island runs again soon", "en")]
    news = [
        {"url": f"https://zeitung.example/{place}", "title": title, "lang": language,
         "date": f"2026-06-{place + 1:02}T08:00:00Z", "desc": ""}
        for place, (title, language) in enumerate(titles)
    ]  # fmt: skip
    (folder / "news").mkdir()
    (folder / "news" / "news.gal.json").write_text("\n".join(map(json.dumps, news)))
    said: dict[str, object] = {
        "name": "gefühle",
        "task": "emotion",
        "dataset": {"format": "jsonl", "path": "test.jsonl", "language": "de"},
        "knowledge": {"path": "news", "window": {"start": "2026-06-01", "end": "2026-07-01"}},
        "models": {"default": {"model": "openai:scripted", "base_url": server.url}},
    }
    config = folder / "german.yaml"
    config.write_text(yaml.safe_dump(said | changes | {"name": "emotionen"}))
    return config


def test_a_german_benchmark_is_refreshed_with_german_news(
    tmp_path: Path, server: LLMServer
) -> None:
    server.requests.clear()
    summary = refresh(written(tmp_path, server), run_dir=tmp_path / "run")
    assert summary.manifest.counts["accepted"] == len(CASES)
    (file,) = (tmp_path / "run" / "dataset" / "updated").glob("*.parquet")
    assert {row["text"] for row in pq.read_table(file).to_pylist()} == {
        one.composed for one in CASES
    }
    shapes = {Prompted(one).shape for one in server.requests}
    assert shapes == set(ROLES)
    assert all("German" in str(one["messages"]) for one in server.requests)
    assert not any("Ferry to the island" in str(one["messages"]) for one in server.requests)
    card = (tmp_path / "run" / "dataset" / "README.md").read_text()
    assert "language:\n- de\n" in card
    assert (
        "Language: German (de); checks and measures not "
        "available: names that are not in the news" in card
    )


def test_rules_do_not_play_roles_in_german(tmp_path: Path, server: LLMServer) -> None:
    config = load_config(written(tmp_path, server, models={"default": "offline"}))
    with pytest.raises(ConfigError, match="in German, but the rules that play") as no:
        check_models(set_up(config, utc_now()), Workspace(tmp_path / ".coreeval"))
    assert "set a model" in no.value.hint


def test_remote_backends_do_not_search_german_news(tmp_path: Path, server: LLMServer) -> None:
    config = load_config(written(tmp_path, server), ["knowledge.backends=[local, doc]"])
    with pytest.raises(ConfigError, match="doc search only English news, but the benchmark is in"):
        open_news(set_up(config, utc_now()), Workspace(tmp_path / ".coreeval"))
