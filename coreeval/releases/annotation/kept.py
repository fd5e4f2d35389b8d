"""What people said of a run's texts, as its releases record it."""

from pathlib import Path

from pydantic import ValidationError

from coreeval.errors import ReleaseError
from coreeval.evaluation.annotation.ratings import Annotation
from coreeval.releases.manifest import Manifest
from coreeval.releases.release_manifest import PeopleSaid
from coreeval.tools.workspace import RunFiles


def said_of(files: RunFiles, run: Manifest) -> PeopleSaid | None:
    """Return what a release publishes of a run's ratings: no names, texts or single ratings.

    Raises:
        ReleaseError: the run's annotation.json is damaged, or of another run.
    """
    found = annotation_of(files, run)
    if found is None:
        return None
    shared = found.model_dump(include=PeopleSaid.model_fields.keys() - {"raters"})
    return PeopleSaid.model_validate(shared | {"raters": len(found.raters)})


def annotation_of(files: RunFiles, run: Manifest) -> Annotation | None:
    """Return what people said of a run's texts; None where nobody was asked.

    Raises:
        ReleaseError: the file is damaged, or of another run.
    """
    try:
        found = Annotation.model_validate_json(files.annotation.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise _unusable(files.annotation, f"it is damaged ({type(error).__name__})") from None
    if found.run != run.run:
        raise _unusable(files.annotation, f"it is about the run {found.run}")
    return found


def _unusable(path: Path, problem: str) -> ReleaseError:
    return ReleaseError(
        f"the ratings of people cannot go into the release: {problem}",
        where=str(path),
        hint="score the sheets again (coreeval annotate score), or remove the file",
    )
