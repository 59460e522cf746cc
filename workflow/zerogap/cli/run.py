"""The command `zerogap run`: `snakemake --profile`, with overlays added to the profile's."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli.options import option
from zerogap.errors import InputError, needed_packages


@needed_packages("evaluate,training,workflow")
def run(
    profile: Annotated[str, option("NAME", "A folder of profiles/: quick, smollm2, slurm, ...")],
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            show_default=False,
            help="What to make; default: all. What follows -- is passed on to Snakemake.",
        ),
    ] = None,
    overlays: Annotated[
        list[Path] | None,
        option("FILE...", "Overlays on top of the profile's.", "--with", exists=True),
    ] = None,
    dry_run: Annotated[bool, option("", "Only count the jobs.", "--dry-run", "-n")] = False,
) -> None:
    """Run the workflow under a profile, with overlays of your own.

    Prints the call of Snakemake and makes it, in the root of the checkout (docs/workflow.md).
    """
    from zerogap.config.files import checkout, read_mapping, read_overlays

    root = checkout()
    own = [os.path.relpath(path, root) for path in overlays or []]
    os.chdir(root)
    names = sorted(path.parent.name for path in Path().glob("profiles/*/config.yaml"))
    if profile not in names:
        raise InputError(f"--profile must be one of {', '.join(names)} (got {profile})")
    if any(word.startswith("--configfile") for word in targets or []):
        raise InputError("--configfile cannot be used here; pass overlays with --with")
    # Read before Snakemake does, which has no limits.
    values = [read_mapping(Path(path)) for path in own]
    if own and not any("run" in each for each in values):
        print("note: no overlay sets `run`; results replace those of the profile", file=sys.stderr)
    arguments = [*(targets or []), "--profile", f"profiles/{profile}"]
    arguments += ["--dry-run"] if dry_run else []
    if own:
        arguments += ["--configfile", *read_overlays(f"profiles/{profile}"), *own]
    print(shlex.join(["snakemake", *arguments]), file=sys.stderr, flush=True)
    # The jobs call programs of this environment, which may not be activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # In place of this process, so that Ctrl-C and the exit status are Snakemake's.
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])  # noqa: S606
