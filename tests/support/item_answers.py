"""Benchmarks of questions and summaries, their news, and the six roles, played from a table."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.llm_server import Request
from tests.support.wire import Fields, LastPlan, Prompted, ShownItem, ShownNews

Said = dict[str, object]
NEWS = (
    ("Norvik", "Oslo", 14),
    ("Velmar", "Lyon", 17),
    ("Tarsen", "Porto", 19),
)
"""A firm, a city and a figure for each event."""


def write_news(folder: Path, month: str = "2026-06") -> None:
    """Write an article list with two reports of each event, of the second week of a month."""
    folder.mkdir(exist_ok=True)
    lines = []
    for firm, city, ships in NEWS:
        told = (
            (
                f"{firm} opens a ferry line to {city} this spring",
                f"The firm {firm} said on Monday that {ships} ships sail from Bergen to {city} "
                f"each week. The line is the first of the firm, and three of the ships have left.",
            ),
            (
                f"Ferry line of {firm} to {city} opens with {ships} ships",
                f"Travellers reach {city} by sea from Bergen. {firm} runs {ships} ships each week "
                "on the new line, which mayors on both coasts had wanted for years.",
            ),
        )
        for number, (title, text) in enumerate(told):
            host = f"paper{number}.example"
            lines.append(
                {
                    "date": f"{month}-{10 + number}T12:00:00Z",
                    "url": f"https://{host}/{month}/{firm.lower()}",
                    "domain": host,
                    "title": title,
                    "desc": text,
                    "lang": "en",
                }
            )
    (folder / f"{month.replace('-', '')}11000000.gal.json").write_text(
        "\n".join(map(json.dumps, lines))
    )


@dataclass(frozen=True, kw_only=True)
class Script:
    """A benchmark: its task, its rows, and by row what is written from its news."""

    task: Mapping[str, object]
    rows: list[Said]
    reworded: list[Fields]
    written: list[Fields]
    truth: dict[str, str]
    """The gold by question, or by document, of every version that a judge may be shown."""


def _choice(context: bool) -> Script:
    rows, reworded, written, truth = list[Said](), list[Fields](), list[Fields](), dict[str, str]()
    for place, (firm, city, ships) in enumerate(NEWS):
        old = f"Which of the following firms built the tower at port number {place + 3}?"
        row: Said = {
            "id": f"q{place}", "question": old, "answer": place,
            "choices": ["Acme", "Hooli", "Stark", "Wayne"],
        }  # fmt: skip
        again = {"question": f"Port {place + 3} has a tower. Who among these put it up?"}
        new = {"question": f"Which of the following firms opens a ferry line to {city}?"}
        if context:
            row["context"] = f"In the year {1990 + place} somebody put a tower up there."
            again["context"] = f"Somebody has erected one tower in that place ({1990 + place})."
            new["context"] = f"A line of {ships} ships opens to {city}, says {firm}."
        others = iter(["Globex", "Initech", "Umbra"])
        new |= {letter: firm if at == place else next(others) for at, letter in enumerate("ABCD")}
        for one in (old, again["question"], new["question"]):
            truth[one] = "ABCD"[place]
        rows.append(row)
        reworded.append(again)
        written.append(new)
    fields = ["context", "question"] if context else ["question"]
    task = {"name": "quiz", "kind": "choice", "description": "Questions.", "fields": fields}
    return Script(task=task, rows=rows, reworded=reworded, written=written, truth=truth)


def _answer(context: bool) -> Script:
    rows, reworded, written, truth = list[Said](), list[Fields](), list[Fields](), dict[str, str]()
    for place, (firm, city, ships) in enumerate(NEWS):
        number, floors = place == 1, str(30 + place)
        gold = floors if number else "Acme"
        port = f"at port {place + 3}"
        old = f"How many floors has the tower {port}?" if number else f"Who built the tower {port}?"
        asked = "what is its number of storeys" if number else "who put it up"
        row: Said = {"id": f"a{place}", "question": old, "answers": [gold], "unit": None}
        row |= {"answer_type": "number", "tolerance": "1%"} if number else {}
        again = {"question": f"Port {place + 3} has a tower: {asked}?"}
        new = {"question": f"Which firm now runs {ships} ferries to {city}?"}
        new["answers"] = f"{firm}\n\n{firm} "
        if number:
            new = {"question": f"How many ships sail to {city} each week?", "answers": str(ships)}
        if context:
            row["context"] = f"| Port | Floors\nTower | {floors}\nAcme built it in 1990."
            again["context"] = f"| Dock | Storeys\nTower | {floors}\nIt was put up by Acme (1990)."
            new["context"] = f"| City | Ships\n{city} | {ships}\n{firm} opens a line to {city}."
        truth |= {old: gold, again["question"]: gold}
        truth[new["question"]] = new["answers"].split("\n")[0]
        rows.append(row)
        reworded.append(again)
        written.append(new)
    fields = ["context", "question"] if context else ["question"]
    task = {"name": "trivia", "kind": "answer", "description": "Questions.", "fields": fields}
    return Script(task=task, rows=rows, reworded=reworded, written=written, truth=truth)


def _summary() -> Script:
    rows, reworded, written = list[Said](), list[Fields](), list[Fields]()
    for place, (firm, city, ships) in enumerate(NEWS):
        document = " ".join(
            f"The tower at port {place + 3} has a room on floor {floor}." for floor in range(3, 9)
        )
        summary = f"The tower at port {place + 3} has six rooms in all."
        rows.append({"id": f"s{place}", "document": document, "summary": summary})
        again = document.replace("has a room on floor", "offers one chamber at level")
        reworded.append(
            {"document": again.replace("The tower at port", "Inside harbour tower no.")}
        )
        written.append({"summary": f"{firm} has {ships} ships sail from Bergen to {city}."})
    task = {"name": "reports", "kind": "summary", "description": "Reports."}
    return Script(task=task, rows=rows, reworded=reworded, written=written, truth={})


SCRIPTS: Mapping[str, Script] = {
    "choice": _choice(False),
    "choice with a context": _choice(True),
    "answer": _answer(False),
    "answer with a context": _answer(True),
    "summary": _summary(),
}


@dataclass
class ItemAnswers:
    """Plays the roles of one benchmark; judges look at words that a test has put into a text.

    A question with `perhaps` has no sure answer, one with `obviously` can be guessed; an option
    `Rival` is right as well, one `Joke` convinces nobody; a summary with `maybe` is unfaithful.
    """

    script: Script
    spoil: Callable[[int, Fields], Fields] = lambda place, fields: fields
    """Changes a text of the item in this row: its first one, or each."""
    always: bool = False
    spoilt: set[int] = field(default_factory=set)
    shapes: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> str:
        """Answer a request."""
        prompted = Prompted(request)
        self.shapes.append(prompted.shape)
        play: Callable[[Prompted], Said] = getattr(self, f"_{prompted.shape}")
        return json.dumps(play(prompted))

    # -- who writes -----------------------------------------------------------------------------

    def _place(self, prompted: Prompted) -> int:
        fields = prompted.block("item", ShownItem).fields
        shown = fields.get("question") or fields["document"]
        known = [row.get("question") or row["document"] for row in self.script.rows]
        return known.index(shown)

    def _extraction(self, prompted: Prompted) -> Said:
        firm = NEWS[self._place(prompted)][0]
        return {
            "entities": [], "triples": [], "locked": [], "sensitive": [],
            "queries": [f"{firm} ferry line"], "siblings": [], "structures": [],
            "need": "a ferry line", "deixis_only": False,
        }  # fmt: skip

    def _extraction_and_rewrite(self, prompted: Prompted) -> Said:
        return self._extraction(prompted) | self._rewrite(prompted)

    def _rewrite(self, prompted: Prompted) -> Said:
        fields = self.script.reworded[self._place(prompted)]
        return {"declined": False, "reworded": True, "fields": fields, "reason": ""}

    def _plan(self, prompted: Prompted) -> Said:
        shown = prompted.block("news", tuple[ShownNews, ...])
        firm = NEWS[self._place(prompted)][0]
        own = [one for one in shown if firm in one.title]
        if prompted.block("feedback", LastPlan).defects:
            own.reverse()
        base: Said = {"sketch": "", "claims": {}, "reason": "", "replaces_all": True, "delete": [],
                      "persons": []}  # fmt: skip
        if not own:
            return base | {"decision": "none_fits", "statements": [], "replacements": []}
        statements = [
            {"text": one.title, "evidence": [one.number], "quote": one.title, "translation": "",
             "modality": "asserted", "speaker": ""}
            for one in own
        ]  # fmt: skip
        name = "summary" if "summary" in prompted.block("item", ShownItem).fields else "question"
        after = {"head": firm, "relation": "opens", "tail": "a ferry line"}
        change = {"before": None, "after": after, "field": name, "statement": 1}
        return base | {"decision": "use", "statements": statements, "replacements": [change]}

    def _plan_and_text(self, prompted: Prompted) -> Said:
        planned = self._plan(prompted)
        for extra in ("sketch", "claims"):
            planned.pop(extra)
        return planned | {"fields": self._text(prompted)}

    def _composition(self, prompted: Prompted) -> Said:
        return {"moment": "", "draft": "", "stumble": "", "used_replacements": [1], "dropped": [],
                "fields": self._text(prompted)}  # fmt: skip

    def _text(self, prompted: Prompted) -> Fields:
        place = self._place(prompted)
        fields = dict(self.script.written[place])
        if place in self.spoilt and not self.always:
            return fields
        self.spoilt.add(place)
        return self.spoil(place, fields)

    # -- who judges -----------------------------------------------------------------------------

    def _fact_check(self, prompted: Prompted) -> Said:
        quote = prompted.block("news", tuple[ShownNews, ...])[0].title
        return {
            "statements": [
                {"text": quote, "field": name, "words": text[:40], "kind": "fact",
                 "supported": "yes", "evidence": 1, "quote": quote, "defect": "none"}
                for name, text in prompted.block("text", Fields).items() if text
            ]
        }  # fmt: skip

    def _answer(self, prompted: Prompted) -> Said:
        item = prompted.block("item", Fields)
        assert {"answers", "unit", "tolerance", "program"}.isdisjoint(item), "the gold is hidden"
        news = prompted.block("news", object)
        question = _plain(item["question"])
        knows = news is not None or "context" in item or "obviously" in item["question"]
        said = self.script.truth[question] if knows and "perhaps" not in item["question"] else ""
        return {"cue": "", "label": said or "unclear", "confidence": "high" if said else "low",
                "odd": "", "fluency": 3}  # fmt: skip

    def _options(self, prompted: Prompted) -> Said:
        item = prompted.block("item", Fields)
        right = self.script.truth[_plain(item["question"])]
        return {
            "options": [
                {"letter": letter, "why": "so", "same_type": True, "plausible": text != "Joke",
                 "truth": "right" if letter == right or text == "Rival" else "wrong"}
                for letter, text in item.items() if len(letter) == 1
            ]
        }  # fmt: skip

    def _summary(self, prompted: Prompted) -> Said:
        item = prompted.block("item", Fields)
        wrong = "maybe" in item["summary"]
        return {"missing": "", "added": "maybe" if wrong else "", "confidence": "high", "odd": "",
                "label": "unfaithful" if wrong else "faithful", "fluency": 3}  # fmt: skip


def _plain(question: str) -> str:
    return question.replace(" obviously", "").replace(" perhaps", "")
