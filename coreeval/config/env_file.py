"""The file `.env`, which keeps keys out of configs."""

from pathlib import Path

from dotenv import load_dotenv

from coreeval.errors import ConfigError


def load_env_file(folder: Path) -> None:
    """Put what `.env` in a folder names into the environment, where it is not named there already.

    Raises:
        ConfigError: it cannot be read; the error does not repeat what is in it.
    """
    path = folder / ".env"
    try:
        load_dotenv(path)
    except UnicodeDecodeError:
        raise ConfigError(
            "the file is not UTF-8", where=str(path), hint="save it as UTF-8: NAME=VALUE in a line"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            hint="let this user read it, or export the variables that it names",
        ) from None
