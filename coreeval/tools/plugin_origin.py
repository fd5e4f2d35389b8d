"""Where the code of a plugin comes from, as manifests and documents record it."""

from coreeval.config.plugins import PluginGroup
from coreeval.schema import Value


class PluginOrigin(Value):
    """Where the code of a plugin comes from."""

    group: PluginGroup
    name: str
    """As it is named, without `plugin:`."""
    target: str
    """The object: `module:Class`."""
    api: int
    """The version of the protocol."""
    distribution: str = ""
    """The installed package; empty if the module belongs to none."""
    version: str = ""
    digest: str = ""
    """The SHA-256 of the module's code if no package has a version for it."""

    @property
    def identity(self) -> str:
        """Return what a person agrees to: the package with its version, or the code itself."""
        if self.distribution:
            return f"{self.distribution}=={self.version} {self.target}"
        return f"{self.target} sha256:{self.digest}"

    def __str__(self) -> str:
        whence = f"{self.distribution} {self.version}" if self.distribution else "no package"
        return f"plugin:{self.name} ({self.target}, {whence})"
