"""Whether a benchmark's own texts may be passed on: as its owner says, else as a table has it."""

from pydantic import TypeAdapter

from coreeval.config import DatasetConfig
from coreeval.releases.release_manifest import Licence
from coreeval.tools.catalogs import load_built_in_table

_TABLE = TypeAdapter(dict[str, Licence])
UNKNOWN = Licence(name="not stated", source="neither the config nor the built-in table names one")


def licence_of(dataset: DatasetConfig) -> Licence:
    """Return the licence of a benchmark; what nobody has stated may not be passed on."""
    if dataset.licence:
        return Licence(**dataset.licence.model_dump(), source="config: dataset.licence")
    return load_built_in_table("licences.yaml", _TABLE).get(dataset.format, UNKNOWN)
