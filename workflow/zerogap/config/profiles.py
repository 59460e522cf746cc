"""A profile's own overlays, which `--configfile` on the command line replaces.

Snakemake takes an option of the command line instead of the profile's, and says nothing: with
`--profile profiles/quick --configfile mine.yaml`, the paper would run in place of the quick scale.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from zerogap.config.load import read_mapping
from zerogap.errors import InputError


def read_overlays(profile: str) -> list[str]:
    """The overlays that a profile, a folder, lists; none if it is not in the checkout.

    Raises:
        InputError: the profile's config.yaml is not a YAML mapping.
    """
    path = Path(profile, "config.yaml")
    if not path.is_file():
        return []
    overlays = read_mapping(path).get("configfile", [])
    return [overlays] if isinstance(overlays, str) else overlays


def check_overlays(arguments: Sequence[str], files: Sequence[str | Path]) -> None:
    """Check that a run under a profile has the profile's scale: the first of its overlays.

    The other overlays of a profile may be replaced, as those with the questions of a scale.

    Args:
        arguments: Snakemake's command line.
        files: The configuration files of the run.

    Raises:
        InputError: It does not; the message has the option that fixes it.
    """
    used = [Path(file).resolve() for file in files]
    for profile in _profiles(arguments):
        overlays = read_overlays(profile)
        if overlays and Path(overlays[0]).resolve() not in used:
            own = [str(file) for file in files[:-1]]  # the last is config.yaml
            raise InputError(
                f"--configfile replaces the overlays of {profile}; give both: "
                f"--configfile {' '.join([*overlays, *_relative(own)])}"
            )


def _profiles(arguments: Sequence[str]) -> Iterator[str]:
    """The values of `--profile`, also as `--profile=…`."""
    for option, value in pairwise([*arguments, ""]):
        if option == "--profile":
            yield value
        elif option.startswith("--profile="):
            yield option.partition("=")[2]


def _relative(paths: Sequence[str]) -> list[str]:
    """The paths as seen from the working directory, if they are in it."""
    here = Path.cwd()
    return [
        str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
        for path in paths
    ]
