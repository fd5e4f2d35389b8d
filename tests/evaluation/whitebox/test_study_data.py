"""What is leaked and measured: shares, clean samples, and samples that cannot be used."""

from dataclasses import replace

import pytest

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.whitebox.cells import Cell
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import (
    LabelledText,
    StudyData,
    choose_training,
    make_study,
    make_text,
)
from coreeval.evaluation.whitebox.time_estimate import (
    PASS_OPERATIONS,
    STEP_PASSES,
    Workload,
    count_steps,
    estimate_memory,
    estimate_time,
)
from coreeval.schema import Sample
from coreeval.tasks import load_task
from tests.evaluation.whitebox.test_cells import result

TASK = load_task("irony")
TRAINING = TrainingSettings()


def texts(kind: str, number: int, *, labels: int = 2) -> list[LabelledText]:
    """Return texts whose labels take turns."""
    return [
        LabelledText(
            f"{kind}{at}", (f"Q: {kind} {at}?", f"{kind} {at}:"), f"{kind} {at}", at % labels
        )
        for at in range(number)
    ]


def study(number: int = 10, **more: int) -> StudyData:
    """Return a study of two arms that share their samples."""
    arms = {"original": texts("old", number), "updated": texts("new", number)}
    wanted = {"train": 6, "held_out": 4, **more}
    return make_study(TASK.labels, arms, texts("pool", 20), **wanted)  # type: ignore[arg-type]


def test_a_text_has_every_template_and_the_number_of_its_label() -> None:
    label = TASK.labels[1]
    sample = Sample(
        id="a", split="test", fields={"text": "so it is"}, label=label.id, label_text=label.name
    )
    made = make_text(sample, TASK)
    assert len(made.prompts) == len(TASK.templates)
    assert all("so it is" in prompt for prompt in made.prompts)
    assert (made.text, made.label) == ("so it is", 1)


def test_clean_and_train_samples_are_neither_leaked_nor_each_other() -> None:
    arms = {"original": texts("old", 10), "updated": texts("new", 10)}
    pool = [*texts("OLD ", 3), *texts("pool", 20)]
    made = make_study(TASK.labels, arms, pool, train=6, held_out=4)  # type: ignore[arg-type]
    assert [one.id for one in made.held_out] == [f"pool{at}" for at in range(4)]
    assert [one.id for one in made.train] == [f"pool{at}" for at in range(4, 10)]
    assert list(made.parts) == ["original", "updated", "held_out"]


def test_samples_of_one_label_are_refused() -> None:
    same = {"original": texts("old", 9, labels=1), "updated": texts("new", 9, labels=1)}
    with pytest.raises(DatasetError, match="all 9 samples that the arms share have the label"):
        make_study(TASK.labels, same, [], train=0, held_out=0)  # type: ignore[arg-type]


def test_a_share_is_of_the_test_part_alone_or_of_the_train_part_beside_it() -> None:
    data = study()
    alone = choose_training(data, Cell(scenario="test", arm="updated", percent=20))
    more = choose_training(data, Cell(scenario="test", arm="updated", percent=60))
    assert (len(alone), len(more)) == (2, 6)
    assert {item.text.id for item in alone} < {item.text.id for item in more}
    assert all(item.with_label and item.text.id.startswith("new") for item in more)
    both = choose_training(data, Cell(scenario="train_test", arm="original", percent=50))
    assert [item.text.id[:3] for item in both] == ["poo"] * 3 + ["old"] * 10
    only = choose_training(data, Cell(scenario="train", percent=50))
    assert only == both[:3]
    assert choose_training(data, Cell(scenario="zero")) == []
    hidden = choose_training(data, Cell(scenario="train_text", arm="original"))
    assert [item.with_label for item in hidden] == [True] * 6 + [False] * 10


def test_samples_of_a_cluster_are_counted_as_one_and_others_for_themselves() -> None:
    data = study(10)
    assert data.measured_parts["original"].clusters is None
    some = [replace(one, cluster="d" if at < 3 else "") for at, one in enumerate(data.train)]
    part = replace(data, held_out=some).measured_parts["held_out"]
    assert part.clusters == (0, 0, 0, 1, 2, 3)


def test_without_a_train_part_delta_2_is_refused() -> None:
    with pytest.raises(UsageError, match="no train part"):
        choose_training(study(train=0), Cell(scenario="train"))


def test_the_same_samples_have_the_same_fingerprint_and_others_another() -> None:
    assert study().fingerprint == study().fingerprint != study(11).fingerprint


def test_the_time_left_rests_on_cells_that_are_done() -> None:
    work = Workload(study(), parameters=1000, training=TRAINING, device="cpu")
    cells = [Cell(scenario="zero"), Cell(scenario="test", arm="original")]
    assert work.of_cell(cells[1]) > work.of_cell(cells[0]) > 0
    guess = estimate_time(cells, {}, work, "cuda:0")
    assert (guess.left, guess.measured) == (2, False) and guess.low < guess.seconds < guess.high
    done = {cells[0]: result(cells[0])}
    known = estimate_time(cells, done, work, "cpu")
    assert known.seconds == pytest.approx(work.of_cell(cells[1]) / 4)
    assert (known.left, known.measured) == (1, True)


def test_a_gpu_waits_for_each_pass_beside_the_arithmetic() -> None:
    cell = Cell(scenario="test", arm="original")
    cpu, gpu = (
        Workload(study(), parameters=1000, training=TRAINING, device=device).of_cell(cell)
        for device in ("cpu", "cuda:1")
    )
    steps = count_steps(len(choose_training(study(), cell)), TRAINING)
    assert gpu - cpu > steps * STEP_PASSES * PASS_OPERATIONS["cuda"] > 0


def test_memory_depends_on_what_is_trained_and_where() -> None:
    assert estimate_memory(10, "bfloat16") == 20
    assert estimate_memory(10, "float32") == 40
    assert estimate_memory(10, "bfloat16", full=True) == 160
