"""The contamination test as a detector: how much is a leak of the benchmark's arms worth?

It judges the arms, not a target: `coreeval detect finetune` trains a model on them.
"""

from collections.abc import Sequence
from typing import Final

from coreeval.evaluation.detectors.base import Detector, Json
from coreeval.tools.tables import Table


def _make_tables(document: Json) -> Sequence[Table]:
    from coreeval.evaluation.whitebox.contamination_tables import make_contamination_tables

    return make_contamination_tables(document)


FINETUNE: Final = Detector(
    name="finetune",
    title="contamination test",
    question="Does leaking the originals raise scores on them more than on the other arms?",
    access="weights",
    about_targets=False,
    keeps_document=True,
    verdicts={
        "resists": "not_measured",
        "not_told_apart": "not_measured",
        "rises_more": "not_measured",
        "no_rise": "not_measured",
        "too_few": "not_measured",
    },
    tables=_make_tables,
)
