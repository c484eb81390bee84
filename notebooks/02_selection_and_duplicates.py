# %% [markdown]
# # What near-duplicates cost
#
# Pages are mirrored, documents are versioned, splitters overlap:
# a retriever returns the same words several times, and each copy takes the place of something new.
# Below, the same budget is filled from a store that holds every page once, twice, and so on.

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
import string

import numpy as np

from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, mmr_select, select
from muntin.demo.pictures import AMBER, BLUE, GREY, INK, RED, SHADES, canvas, ending, headline
from muntin.passages import WordOverlap

PAGES = [
    " ".join((inspect.getdoc(function) or "").split())[:400]
    for _, function in inspect.getmembers(shutil, inspect.isfunction)
    if len(inspect.getdoc(function) or "") > 100
]


def pages_in_prompt(copies: int, threshold: float) -> int:
    """Return how many different pages a prompt of 1,500 tokens holds."""
    found = [
        Candidate(f"Revision {copy}. {page}", 1 - n / 99, id=str(n))
        for n, page in enumerate(PAGES)
        for copy in range(copies)
    ]
    config = ContextConfig(
        max_tokens=1500, source_ratios={"rag": 1}, dedup_threshold=threshold, mmr_lambda=1.0
    )
    sources = [CallableSource("rag", lambda question: found)]
    report = ContextBuilder(config).assemble("How do I copy a tree?", sources=sources).report
    return len({one.id for one in report.decisions if one.kind != "dropped"})


copies = [1, 2, 3, 4, 5, 6]
(axes,) = canvas()
ending(axes, (copies, [pages_in_prompt(n, 0.95) for n in copies]), "each said once", BLUE)
ending(axes, (copies, [pages_in_prompt(n, 1.1) for n in copies]), "as retrieved", RED)
axes.set_yticks(range(0, 25, 5))
headline(axes, "What 1,500 tokens know", x="copies of each page in the store", y="different pages")

# %% [markdown]
# The pages are docstrings of your own Python, so your picture may differ a little from this one.
#
# ## How a near-duplicate is found without vectors
#
# Most stores return no vectors.
# muntin then compares words: the share of three-word shingles that the shorter text has in
# common with the longer one.
# That also finds a passage inside a longer one, which a cosine does not.

# %%
PASSAGES = [
    "The export job runs every night at two and may take twenty minutes.",
    "The export job runs every night at two and may take 20 minutes.",
    "Note from March: the export job runs every night at two and may take twenty minutes, says IT.",
    "Rows without a customer number are skipped and counted, never guessed.",
    "Rows without any customer number are skipped.",
    "The server has two gigabytes of memory.",
]
candidates = [Candidate(text, 0.9 - n / 10) for n, text in enumerate(PASSAGES)]
chosen = select(candidates, lambda_=1.0)
for dropped in chosen.dropped:
    print(f"{dropped.candidate.content[:52]:54}{dropped.similarity:.2f} to {dropped.nearest}")

# %%
overlap = WordOverlap(PASSAGES)
likeness = np.array([overlap.row(n) for n in range(len(PASSAGES))])
(axes,) = canvas(5.0, 4.0)
axes.grid(visible=False)
axes.imshow(likeness, cmap=SHADES, vmin=0, vmax=1)
for (row, column), value in np.ndenumerate(likeness):
    axes.text(column, row, f"{value:.2f}", ha="center", va="center",
              color="white" if value > 0.6 else INK, fontsize=8)  # fmt: skip
headline(axes, "Which passages repeat each other", x="passage", y="passage")

# %% [markdown]
# ## Relevance against diversity
#
# `lambda_` is the weight of relevance in maximal marginal relevance (Carbonell and Goldstein
# 1998).
# At 1 it is the order of the retriever; lower values look for something new.
# Each column is a candidate around the question (the star); filled ones are picked.

# %%
angles = np.array([2, 4, 6, 9, 24, 27, 48, 52, 75, -22, -26, -55])
vectors = np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
points = [
    Candidate(f"passage {letter}", float(x), embedding=[float(x), float(y)])
    for letter, (x, y) in zip(string.ascii_uppercase, vectors, strict=False)
]
for axes, weight in zip(canvas(height=3.4, columns=3), (1.0, 0.5, 0.2), strict=True):
    picked = {one.content for one in mmr_select(points, top_k=4, lambda_=weight)}
    axes.grid(visible=False)
    axes.set(xlim=(0, 1.25), ylim=(-1.1, 1.2), xticks=[], yticks=[])
    axes.scatter(1.1, 0, marker="*", s=120, color=AMBER)
    for one, (x, y) in zip(points, vectors, strict=True):
        axes.scatter(x, y, s=70, color=BLUE if one.content in picked else "none", edgecolor=GREY)
    headline(axes, f"λ = {weight}")
    print(weight, json.dumps(sorted(name[-1] for name in picked)))

# %% [markdown]
# ## The second passage of a two-step answer
#
# The passage with the answer shares no word with this question:
# it is about a person whom another passage names.
# Links between names find it; the report says why each passage was chosen.

# %%
FOUND = [
    Candidate("Winter Harbour is a novel by Ada Berg about two sisters.", 0.9, id="novel"),
    Candidate("A harbour is icebound in winter when the sea freezes.", 0.7, id="ice"),
    Candidate("A novel is a long work of prose; in winter more are sold.", 0.6, id="prose"),
    Candidate("Ada Berg (born 1961) grew up in Lund and lives there today.", 0.2, id="author"),
]
without = ContextConfig(link_weight=0.0, coverage_weight=0.0)
for label, config in (("before", without), ("after", ContextConfig())):
    context = ContextBuilder(config).assemble(
        "Where does the author of Winter Harbour live?",
        sources=[CallableSource("rag", lambda query: FOUND)],
        budget=58,
    )
    for one in context.report.decisions:
        print(f"{label:8}{one.id:8}{one.kind:9}{one.reason:18}{one.nearest or ''}".rstrip())

# %%
context.report

# %% [markdown]
# Inside a builder the default of `lambda_` is 1: once duplicates are gone,
# every step towards diversity lost passages that held the answer.
#
# ## Try this on yours
#
# `select([Candidate(text, score) for text,
# score in your_retriever(question)])` and look at `.dropped`.
# Count the tokens of what was dropped:
# that is what the question has been costing you for nothing.
