"""The command `zerogap run`."""

import argparse
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from zerogap.cli.packages import needed_packages
from zerogap.errors import InputError

Profile = Annotated[
    str, typer.Option(metavar="NAME", help="A folder of profiles/: quick, full, slurm, ...")
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        show_default=False,
        help="What to make (docs/workflow.md); default: all. What follows -- is passed on to "
        "Snakemake, for example -- --cores 4.",
    ),
]
Overlays = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="FILE...", help="Overlays of your own, on top of the profile's."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Count the jobs without running them.")
]


@needed_packages("evaluate,training,workflow")
def run(
    profile: Profile,
    targets: Targets = None,
    overlays: Overlays = None,
    dry_run: DryRun = False,
) -> None:
    """Run the workflow under a profile, with overlays of your own.

    Checks the configuration, prints the call of Snakemake and makes it, in the root of the
    checkout (docs/workflow.md).
    """
    from zerogap import config as configuration  # imported late: it takes half a second
    from zerogap.config.files import read_overlays

    root = _root()
    own = [_from_root(path, root) for path in overlays or []]
    os.chdir(root)
    names = sorted(path.parent.name for path in Path().glob("profiles/*/config.yaml"))
    if profile not in names:
        raise InputError(f"--profile must be one of {', '.join(names)} (got {profile})")
    files = [*read_overlays(f"profiles/{profile}"), *own]
    arguments = [*(targets or []), "--profile", f"profiles/{profile}"]
    if "" in arguments:
        raise InputError("TARGET must not be empty")
    # Snakemake's --config may complete the configuration; the Snakefile then checks it.
    if not _has_config_values(arguments):
        settings = configuration.load(["config.yaml", *files])
        _note_shared_folder(settings.run, own)
    arguments += ["--dry-run"] if dry_run else []
    arguments += ["--configfile", *files] if overlays else []
    _become_snakemake(arguments)


def _root() -> Path:
    """The folder of the Snakefile: the checkout of this package, or the working directory.

    Raises:
        InputError: there is none, or the working directory is in another checkout.
    """
    from zerogap.config.files import project_file

    snakefile = project_file("Snakefile")
    if snakefile is None:
        raise InputError(
            "the Snakefile is part of a checkout of the project, and this is an installed package; "
            "run the command in a checkout"
        )
    root, here = snakefile.parent.resolve(), Path.cwd()
    around = next(filter(_is_checkout, (here, *here.parents)), root)
    if around != root:
        raise InputError(
            f"{around} is a checkout of its own, but this zerogap is installed from {root}; "
            "activate the environment of the checkout that you want to run"
        )
    return root


def _is_checkout(folder: Path) -> bool:
    return (folder / "Snakefile").is_file() and (folder / "workflow/zerogap").is_dir()


def _from_root(path: Path, root: Path) -> str:
    """The path of an overlay as seen from the root.

    Raises:
        InputError: it is not a file.
    """
    if not path.is_file():
        raise InputError(f"--with {path}: no such file; targets come before --with")
    return os.path.relpath(path.resolve(), root)


def _has_config_values(arguments: list[str]) -> bool:
    """Whether some of Snakemake's arguments are values of the configuration.

    Raises:
        InputError: they are whole files, or not of the form that Snakemake reads.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", "-C", nargs="*")
    parser.add_argument("--configfile", "--configfiles", nargs="*")
    given, _ = parser.parse_known_args(arguments)
    if given.configfile is not None:
        raise InputError("--configfile cannot be used here; pass overlays with --with")
    for value in given.config or []:
        if not re.match(r"[a-zA-Z_][\w-]*\w=", value):
            raise InputError(
                f"--config {value}: write KEY=VALUE with a key of the first level, such as "
                "'sampling={num_samples: 20}', or give the values in a file with --with"
            )
    return given.config is not None


def _note_shared_folder(run: str, own: list[str]) -> None:
    """Say so if overlays change a scale but not the name of its folders."""
    from zerogap.config.files import read_mapping

    if own and not any("run" in read_mapping(Path(file)) for file in own):
        print(
            f"note: the overlays do not set `run`; results replace those in results/{run} and "
            f"reports/{run}",
            file=sys.stderr,
        )


def _become_snakemake(arguments: list[str]) -> None:
    """Replace this process, so that Ctrl-C and the exit status are Snakemake's."""
    print(shlex.join(["snakemake", *arguments]), file=sys.stderr, flush=True)
    # The jobs call programs of this environment, which may not be activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])  # noqa: S606
