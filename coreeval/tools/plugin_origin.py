"""The origin of a plugin's code, as recorded in manifests and documents."""

from coreeval.config.plugins import PluginGroup
from coreeval.schema import Value


class PluginOrigin(Value):
    """The origin of a plugin's code."""

    group: PluginGroup
    name: str
    """The plugin's name, without `plugin:`."""
    target: str
    """The plugin object: `module:Class`."""
    api: int
    """The version of the protocol."""
    distribution: str = ""
    """The installed package; empty if the module belongs to none."""
    version: str = ""
    digest: str = ""
    """The SHA-256 of the module's code if no package has a version for it."""

    @property
    def identity(self) -> str:
        """Return what the user agrees to: the package with its version, or the code's digest."""
        if self.distribution:
            return f"{self.distribution}=={self.version} {self.target}"
        return f"{self.target} sha256:{self.digest}"

    def __str__(self) -> str:
        whence = f"{self.distribution} {self.version}" if self.distribution else "no package"
        return f"plugin:{self.name} ({self.target}, {whence})"
