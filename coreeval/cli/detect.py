"""`coreeval detect pcr`: is a score memory? Answered from recorded outputs, without asking."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coreeval.cli.output import AsJson, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.cli.pcr_words import Told
    from coreeval.evaluation.pcr.study import Settings
    from coreeval.tools.embeddings import Embeds

detect = typer.Typer(name="detect", help="Find out how much of a score is memory.")
METRICS = "exact_match, exact_match_squad, accuracy, rouge_1, rouge_2, rouge_l, bleu, macro_f1"
CONSISTENCIES = "exact, option, jaccard, cosine"
WHERE = "coreeval detect pcr"


@detect.command("pcr")
def pcr(
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs",
            metavar="[NAME=]FILE",
            help="JSON lines, an item with both answers each; repeatable, one for each model.",
        ),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", metavar="M", help=f"One of {METRICS}.")] = "",
    consistency: Annotated[
        str, typer.Option("--consistency", metavar="C", help=f"One of {CONSISTENCIES}.")
    ] = "",
    alpha: Annotated[
        float,
        typer.Option(min=0.0, help="What keeps the ratio finite; 0.001 where consistency is tiny."),
    ] = 0.01,
    scale: Annotated[
        Literal["tanh", "linear", "sigmoid"], typer.Option(help="What the ratio goes through.")
    ] = "tanh",
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Cosine similarity that counts as the same.")
    ] = 0.95,
    embeddings: Annotated[
        str, typer.Option(metavar="MODEL", help="For cosine: minilm, minilm:PATH, provider:name.")
    ] = "minilm",
    train: Annotated[
        str, typer.Option("--train-split", metavar="NAME", help="The split that may be trained on.")
    ] = "train",
    test: Annotated[
        str, typer.Option("--test-split", metavar="NAME", help="The split that must be unseen.")
    ] = "test",
    margin: Annotated[
        float | None,
        typer.Option(min=0.0, help="Differences within it count as none; else 0.03 (of tanh)."),
    ] = None,
    interval: Annotated[
        Literal["percentile", "bca"], typer.Option(help="Which bootstrap interval.")
    ] = "percentile",
    draws: Annotated[int, typer.Option(min=100, help="Bootstrap draws and permutations.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Again under other alphas, scales, thresholds.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result as .svg or .png.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare performance over consistency in training with that in test (the CAP paper's PCR)."""
    from coreeval.evaluation.pcr.comparison import Form
    from coreeval.evaluation.pcr.study import Settings

    settings = Settings(
        metric=_given(metric, "--metric", METRICS),
        consistency=_given(consistency, "--consistency", CONSISTENCIES),
        threshold=threshold,
        form=Form(alpha=alpha, scale=scale, interval=interval, margin=margin),
        draws=draws,
        seed=seed,
        train=train,
        test=test,
    )
    _report(_files(pairs or []), settings, embeddings, ablation, plot, as_json)


def _report(
    files: Mapping[str, Path],
    settings: "Settings",
    embeddings: str,
    ablation: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    from coreeval.cli.pcr_words import Told, told_document, told_lines
    from coreeval.evaluation.pcr.ablation import ablate
    from coreeval.evaluation.pcr.comparison import compare
    from coreeval.evaluation.pcr.pairs import read_pairs
    from coreeval.evaluation.pcr.plots import require_picture
    from coreeval.evaluation.pcr.study import resampled

    if plot:
        require_picture(plot)
    read = {name: read_pairs(path) for name, path in files.items()}
    good = {name: each.good for name, each in read.items()}
    with _opened(settings, embeddings) as embeds:
        found = resampled(good, settings, embeds=embeds)
        again = ablate(good, found, settings, embeds=embeds) if ablation else None
    told = Told(
        files=files,
        read=read,
        settings=settings,
        embeddings=embeds.name if embeds else None,
        comparisons=compare(found, (settings.train, settings.test), settings.form),
        ablation=again,
    )
    document = told_document(told, _drawn(told, plot) if plot else [])
    show(document, as_json, lambda: "\n".join(told_lines(document)))


def _given(text: str, option: str, known: str) -> str:
    """Return an option that has no default: what a score is must be said, not guessed."""
    if not text:
        raise UsageError(f"{option} is missing", where=WHERE, hint=f"give one of {known}")
    return text


def _files(pairs: Sequence[str]) -> dict[str, Path]:
    """Return each file by its name: what stands before `=`, else the file's own."""
    named = [_named(text) for text in pairs]
    files = dict(named)
    if not named:
        raise UsageError("--pairs is missing", where=WHERE, hint="give --pairs FILE.jsonl")
    if len(files) < len(named):
        raise UsageError(
            "two files have the same name", where=WHERE, hint="write --pairs NAME=FILE for each"
        )
    return files


def _named(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if Path(text).exists() or not equals:
        return Path(text).stem, Path(text)
    if not name.strip() or not file:
        raise UsageError(f"{text!r} is no NAME=FILE", where="--pairs")
    return name, Path(file)


@contextmanager
def _opened(settings: "Settings", model: str) -> "Iterator[Embeds | None]":
    """Open the embeddings that cosine consistency needs, kept in the cache of this workspace."""
    from coreeval.evaluation.pcr.study import COSINE

    if settings.consistency != COSINE:
        yield None
        return
    from coreeval.tools.embeddings import CachedEmbeddings, open_embeddings
    from coreeval.tools.json_cache import JsonCache
    from coreeval.tools.workspace import workspace_for

    embeds = open_embeddings(model)
    with JsonCache(workspace_for(Path.cwd()).cache / "embeddings") as cache:
        yield CachedEmbeddings(embeds, cache)


def _drawn(told: "Told", plot: Path) -> list[Path]:
    """Draw the result, and the ablation in a file beside it."""
    from coreeval.evaluation.pcr.plots import ablation_path, draw_ablation, draw_comparisons

    asked, form = told.settings, told.settings.form
    compared, title = (asked.train, asked.test), f"{asked.metric} over {asked.consistency}"
    first = draw_comparisons(
        plot,
        told.comparisons,
        compared=compared,
        margin=form.near,
        title=f"{title}, alpha {form.alpha:g}, {form.scale}: PCR with 95 % intervals",
    )
    if not told.ablation:
        return [first]
    second = ablation_path(plot)
    return [first, draw_ablation(second, told.ablation, compared=compared, title=title)]
