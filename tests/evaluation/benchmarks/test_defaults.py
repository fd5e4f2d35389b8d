from coreeval.evaluation.benchmarks.defaults import defaults
from coreeval.evaluation.benchmarks.items import LAYOUTS, item_splits
from coreeval.evaluation.modifications import BY_RULE
from coreeval.evaluation.scoring import CONSISTENCY, PERFORMANCE, THRESHOLD
from tests.evaluation.recorded import CAP, beside


def test_every_default_names_what_there_is() -> None:
    assert defaults().keys() == LAYOUTS.keys() - {"jsonl"}
    for chosen in defaults().values():
        assert chosen.performance in PERFORMANCE
        assert chosen.consistency in {*CONSISTENCY, "cosine"}
        assert chosen.modification in {*BY_RULE, "paraphrase"}
        assert chosen.threshold == THRESHOLD


@beside
def test_the_splits_are_those_of_the_papers_files() -> None:
    for name, chosen in defaults().items():
        assert {chosen.train_split, chosen.test_split} <= {*item_splits(name, CAP / name)}
