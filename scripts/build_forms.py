"""Fill the table of `docs/guide/conversation-forms.md` from the registry and the samples.

    python scripts/build_forms.py           # rewrite the page
    python scripts/build_forms.py --check   # exit with 1 if the page is not what this writes

Every cell is a run of the command on the sample of the form: a form that stops working loses its
mark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "guide" / "conversation-forms.md"
sys.path.insert(0, str(ROOT / "tests"))

from form_samples import SAMPLES  # noqa: E402 - after the path of the samples
from muntin.cli import main  # noqa: E402
from muntin.cli.forms.registry import FORMS  # noqa: E402

if TYPE_CHECKING:
    from form_samples import Sample

_START, _END = "<!-- generated part -->", "<!-- end of generated part -->"
COMMANDS = {
    "count": ["count", "--chat", "--json"],
    "trim": ["trim", "--budget", "700", "--quiet", "--output", "out"],
    "compact": ["compact", "--trigger", "500", "--summary", "200", "--quiet", "--output", "out"],
    "assemble": ["assemble", "--question", "late orders", "--quiet", "--output", "out",
                 "--history"],
}  # fmt: skip


def _works(command: str, sample: Sample, folder: Path) -> bool:
    """Run a command on a sample; it works if it ends with 0 and its result is another file."""
    path, out = folder / f"in{sample.suffix}", folder / "out"
    path.write_bytes(sample.data)
    out.unlink(missing_ok=True)
    arguments = [str(out) if one == "out" else one for one in COMMANDS[command]]
    stdout, stderr = sys.stdout, sys.stderr
    with (folder / "said").open("w") as said:
        sys.stdout = sys.stderr = said
        try:
            code = main([*arguments, str(path)])
        finally:
            sys.stdout, sys.stderr = stdout, stderr
    if command == "count":
        return code == 0
    return code == 0 and out.exists() and out.read_bytes() != sample.data


def table() -> str:
    """Return the table of forms and commands."""
    lines = ["| form | what it is | " + " | ".join(COMMANDS) + " |", "|---|---|" + "---|" * 4]
    with tempfile.TemporaryDirectory() as name:
        for form in FORMS:
            samples = [one for one in SAMPLES if one.form == form.name]
            marks = [
                "yes"
                if samples and all(_works(one, each, Path(name)) for each in samples)
                else "no"
                for one in COMMANDS
            ]
            title = form.title.replace("|", "\\|")
            lines.append(f"| `{form.name}` | {title} | {' | '.join(marks)} |")
    return "\n".join(lines)


def page() -> str:
    """Return the page with the table written anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_START)
    after = rest.split(_END)[1]
    return f"{before}{_START}\n\n{table()}\n\n{_END}{after}"


def _main() -> int:
    made = page()
    if "--check" in sys.argv:
        return int(made != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
