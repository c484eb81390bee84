"""The command `muntin`: its subcommands, and how an error becomes one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from muntin.cli.commands.assemble import assemble
from muntin.cli.commands.compact import compact
from muntin.cli.commands.count import count
from muntin.cli.commands.demo import demo
from muntin.cli.commands.diff import diff
from muntin.cli.commands.explain import explain
from muntin.cli.commands.forms import forms
from muntin.cli.commands.schema import schema
from muntin.cli.commands.trim import trim
from muntin.cli.failures import FAILED, INTERRUPTED, USAGE, Failure, code_of
from muntin.cli.terminal.output import safe
from muntin.errors import ContextError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("app", "run")

# Its class moved from click into typer; every version derives from it what it does export.
_ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class _Muntin(TyperGroup):
    """A group of commands whose errors are one line on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - the signature is typer's
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002 - the signature is typer's
        **extra: Any,
    ) -> Any:
        """Run a command; ends the process with its exit code, or returns it."""
        try:
            given = super().main(
                args=args,
                prog_name=prog_name or "muntin",
                complete_var=complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
            code = given if isinstance(given, int) else 0
        except (Failure, ContextError) as error:
            code = _told(str(error), code_of(error))
        except _ClickException as error:
            code = _told(_usage(error), USAGE)
        except typer.Abort:
            code = INTERRUPTED
        if code == INTERRUPTED:
            _told("interrupted; nothing was left half-written", code)
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; a reader that closes the pipe (`| head`) is not an error."""
        try:
            return super().invoke(ctx)
        except _ClickException as error:
            command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
            raise Failure(_usage(error, command)) from None
        except BrokenPipeError:
            # Python flushes stdout once more at its end and would complain there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            raise Failure(f"{what}{error.strerror or error}", code=FAILED) from error


def _told(message: str, code: int) -> int:
    sys.stderr.write(f"muntin: {safe(message)}\n".encode("utf-8", "replace").decode())
    return code


def _usage(error: Any, command: str = "muntin") -> str:
    """Return what is wrong with the command line, and how to get its help."""
    said = " ".join(str(error.format_message()).split()).replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    command = command if context is None else context.command_path
    if not said:  # no command was given: the help has been shown instead
        return f"give a command; see {command} --help"
    if said.endswith("?"):
        return f"{said} See {command} --help"
    return f"{said.rstrip('.')}; see {command} --help"


app = typer.Typer(
    name="muntin",
    cls=_Muntin,
    no_args_is_help=False,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 done, 1 failed (or diff --exit-code found a change), 2 wrong usage, "
    "3 does not fit the budget, 4 a source could not be read, 5 some of several files failed, "
    "6 all of them failed, 130 interrupted.",
)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked:
        from muntin import __version__

        sys.stdout.write(f"muntin {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Divide the context window of a language model, and see where every token went.

    Files may be - for stdin, results go to stdout, and notes about them to stderr, so
    commands can be piped. No key and no network is needed, and `muntin demo` needs no file either.
    """
    if ctx.invoked_subcommand is None:
        sys.stdout.write(f"{ctx.get_help()}\n")
        raise typer.Exit(USAGE)


for _command in (count, assemble, trim, compact, explain, diff, forms, schema, demo):
    app.command()(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return int(app(args=arguments, prog_name="muntin", standalone_mode=False))
