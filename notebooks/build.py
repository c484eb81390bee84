"""Execute the notebooks: `NN_name.py` is written and reviewed, `NN_name.ipynb` is shown.

    python notebooks/build.py                execute all, write the .ipynb beside each .py
    python notebooks/build.py 01_budgets     one of them
    python notebooks/build.py --check        write nothing; say which .ipynb is out of date

What is written depends on the source alone: cell ids are numbers, and times are left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SECONDS_PER_CELL = 120


def sources(names: list[str] | None = None) -> list[Path]:
    """Return the notebooks' sources in order, or those that are named."""
    found = sorted(HERE.glob("[0-9]*.py"))
    if not names:
        return found
    chosen = [path for path in found if path.stem in names]
    if len(chosen) != len(set(names)):
        raise SystemExit(f"there are: {', '.join(path.stem for path in found)}")
    return chosen


def unexecuted(source: Path) -> Any:
    """Read a source as a notebook without outputs."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02}"
        cell.metadata.clear()
    return notebook


def executed(source: Path) -> Any:
    """Run a source in a fresh kernel and return the notebook with its outputs."""
    notebook = unexecuted(source)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(HERE)}},
        record_timing=False,
    )
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output.data["text/plain"] = "<report>"  # its `repr` has every field
    return notebook


def text_of(notebook: Any) -> list[tuple[str, str, str]]:
    """Return each cell's kind, source and printed text: what must not differ unnoticed.

    Pictures are left out, since their bytes change with the version of the drawing library.
    """
    rows: list[tuple[str, str, str]] = []
    for cell in notebook.cells:
        shown: list[str] = []
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                shown.append(output.text)
            elif output.output_type in {"display_data", "execute_result"}:
                data = output.data
                is_drawn = "image/png" in data or "text/html" in data
                shown.append("<picture>" if is_drawn else data.get("text/plain", ""))
        rows.append((cell.cell_type, cell.source, "".join(shown)))
    return rows


def shown(source: Path) -> Path:
    """Return the path of the .ipynb that belongs to a source."""
    return source.with_suffix(".ipynb")


def is_current(source: Path, notebook: Any) -> bool:
    """Tell whether the committed .ipynb says what `notebook` says."""
    path = shown(source)
    return path.exists() and text_of(nbformat.read(path, as_version=4)) == text_of(notebook)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; the exit code is 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(prog="notebooks", description="Execute the notebooks.")
    parser.add_argument("names", nargs="*", help="stems such as 01_token_budgets; all by default")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    stale = 0
    for source in sources(options.names):
        notebook = executed(source)
        if options.check:
            current = is_current(source, notebook)
            stale += not current
            print(f"{source.stem}: {'current' if current else 'NOT CURRENT'}")
        else:
            nbformat.write(notebook, shown(source))
            print(f"{source.stem}: written")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
