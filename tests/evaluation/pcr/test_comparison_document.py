"""Pictures: whole, identical bytes each time, and safe with any name."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread

from coreeval.errors import ReleaseError, UsageError
from coreeval.evaluation.pcr import Comparison, PcrSettings, study
from coreeval.evaluation.pcr.comparison_document import (
    ablation_path,
    draw_ablation,
    draw_comparisons,
)
from coreeval.evaluation.pcr.study import Ablation, ablate, resample_files
from coreeval.evaluation.pictures import require_picture
from tests.evaluation.pcr.kit import two_splits

BOTH = ("train", "test")
FILES = {
    "a $x_1$ <b> & 模型 " + "long " * 9: two_splits((60, 50, 50), (60, 20, 40)),
    "refuses": two_splits((60, 0, 60), (60, 0, 60)),
    "undefined": [replace(each, reference="") for each in two_splits((30, 3, 3), (30, 3, 3))],
}
ASKED = PcrSettings(metric="exact_match", consistency="exact", draws=200)


@pytest.fixture(scope="module")
def found() -> dict[str, Comparison]:
    """Comparisons of a clear model, one that refuses and one that cannot be compared."""
    return study(FILES, ASKED)


@pytest.fixture(scope="module")
def ablation(found: dict[str, Comparison]) -> Ablation:
    """An ablation with thresholds, which only cosine consistency has."""
    by_form = ablate(FILES, resample_files(FILES, ASKED), ASKED)
    return replace(by_form, thresholds=[(0.8, found), (0.9, found)])


def draw(path: Path, found: dict[str, Comparison], ablation: Ablation) -> list[Path]:
    """Draw both pictures."""
    first = draw_comparisons(path, found, compared=BOTH, margin=0.03, title="$M$ over C")
    return [first, draw_ablation(ablation_path(path), ablation, compared=BOTH, title="M over C")]


def test_svg_is_whole_and_the_same_again(
    tmp_path: Path, found: dict[str, Comparison], ablation: Ablation
) -> None:
    for one, again in zip(
        draw(tmp_path / "x" / "pcr.svg", found, ablation),
        draw(tmp_path / "y.svg", found, ablation),
        strict=True,
    ):
        assert ElementTree.parse(one).getroot().tag.endswith("svg")
        assert one.read_bytes() == again.read_bytes()
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "pcr-ablation.svg",
        "pcr.svg",
    ]


def test_png_has_something_on_it(
    tmp_path: Path, found: dict[str, Comparison], ablation: Ablation
) -> None:
    for path in draw(tmp_path / "pcr.PNG", found, ablation):
        pixels = imread(path, format="png")
        assert min(pixels.shape[:2]) > 300 and pixels[..., :3].std() > 0.05


def test_no_picture_is_drawn_into_a_release(tmp_path: Path) -> None:
    for name in ("release.json", "release.sha256"):
        (tmp_path / name).touch()
    with pytest.raises(ReleaseError, match="nothing can be written into it"):
        require_picture(tmp_path / "figures" / "pcr.svg")


@pytest.mark.parametrize("name", ["pcr.pdf", "pcr"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot write a figure as") as refused:
        require_picture(Path(name))
    assert refused.value.hint == "use a name ending in .svg or .png"
