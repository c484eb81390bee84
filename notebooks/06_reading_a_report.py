# %% [markdown]
# # Reading a report
#
# "Why did it not know that?" has three answers: it was not found, it was dropped,
# or it was there and not used.
# A report tells the first two apart, for every passage, with the reason.
# First the budget: how much window do the passages that hold the answer need?

# %%
import importlib.util
import subprocess
import sys

PACKAGE = "muntin[notebooks] @ git+https://github.com/muntin/muntin"
if importlib.util.find_spec("muntin") is None:  # copied alone, in a fresh environment
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %%
import inspect
import json
import shutil
import statistics
import textwrap
from collections.abc import Callable

from muntin import AssemblyReport, CallableSource, Candidate, ContextBuilder, ContextConfig
from muntin.demo.pictures import BLUE, canvas, headline, windows
from muntin.text import bm25_scores

Search = Callable[[str], list[Candidate]]
MODULES = (inspect, json, shutil, statistics, textwrap)
ASKED = {
    "recursively copy an entire directory tree": "shutil.copytree",
    "free disk space usage of a path": "shutil.disk_usage",
    "parse a JSON document from a string": "json.loads",
    "serialize an object to a JSON formatted stream": "json.dump",
    "median of data when it is grouped into continuous intervals": "statistics.median_grouped",
    "remove common leading whitespace from every line": "textwrap.dedent",
    "fit a straight line by least squares regression": "statistics.linear_regression",
}
DOCS = {
    f"{module.__name__}.{name}": inspect.getdoc(value) or ""
    for module in MODULES
    for name, value in inspect.getmembers(module, inspect.isroutine)
    if not name.startswith("_") and len(inspect.getdoc(value) or "") > 60
}


def search(question: str) -> list[Candidate]:
    """Return the 40 best docstrings of your Python by BM25."""
    scores = bm25_scores(question, list(DOCS.values()))
    ranked = sorted(zip(DOCS, scores, strict=True), key=lambda pair: -pair[1])
    return [Candidate(DOCS[name], float(score), id=name) for name, score in ranked[:40]]


def build(
    question: str, fetch: Callable[[str], list[Candidate]], max_tokens: int
) -> AssemblyReport:
    config = ContextConfig(max_tokens=max_tokens, source_ratios={"rag": 1}, min_chunk_tokens=8)
    sources = [CallableSource("rag", fetch)]
    system = "You answer from what stands below."
    return ContextBuilder(config).assemble(question, sources=sources, system_prompt=system).report


def answered(report: AssemblyReport, name: str) -> bool:
    return any(one.id == name and one.kind != "dropped" for one in report.decisions)


budgets = [100, 200, 300, 500, 800, 1200, 2000, 3000]
reports = {question: build(question, search, budgets[-1]) for question in ASKED}
shares = [
    100 * statistics.mean(answered(reports[q].what_if(max_tokens=b), ASKED[q]) for q in ASKED)
    for b in budgets
]
(axes,) = canvas()
axes.plot(budgets, shares, color=BLUE, marker="o")
axes.set_ylim(0, 105)
axes.xaxis.set_major_formatter("{x:,.0f}")
headline(axes, "Questions whose answer is in the prompt, %", x="budget, tokens")

# %% [markdown]
# Seven questions about the docstrings of your own Python; nothing to download.
# Each budget is a `what_if` of the same report, so the search ran once a question.
#
# ## Why is it not there?

# %%
NOTES = [
    Candidate("Refunds take five working days.", 0.9, id="faq-1"),
    Candidate("Refunds take five working days!", 0.8, id="faq-1-copy"),
    Candidate("A refund needs the number of the order and of the invoice.", 0.7, id="faq-2"),
    Candidate("Terms. " + "The parties agree that the following shall apply. " * 12, 0.6, id="law"),
    Candidate("Vouchers are not refunded.", 0.5, id="faq-3"),
]


def notes(question: str) -> list[Candidate]:
    return NOTES


first = build("How long does a refund take?", notes, 80)
for one in first.decisions:
    print(f"{one.id:12}{one.kind:9}{one.reason:16}{one.tokens:4} tokens")

# %%
first

# %%
windows({f"{size}": first.what_if(max_tokens=size) for size in (80, 160, 320)}, "Three budgets")

# %% [markdown]
# ## What changed since the last request?
#
# A prompt cache reuses a prompt up to its first changed token.

# %%
second = build("And what about a voucher?", notes, 80)
print(second.diff(first))

# %% [markdown]
# ## Keep it
#
# A report shows itself in a notebook and has a documented JSON form;
# `first.to_html("report.html")` writes one page that needs no network.

# %%
print(first.to_json()[:130], "…")

# %% [markdown]
# ## Try this on yours
#
# Write down ten questions and the id of the passage that answers each,
# and draw the first picture with your retriever in place of `search`.
# Where the line becomes flat, more window buys nothing;
# what is still missing there was never found.
