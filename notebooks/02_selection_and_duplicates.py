# %% [markdown]
# # What near-duplicates cost
#
# Splitters overlap, pages are mirrored, documents are versioned:
# a retriever returns the same words several times, and each time you pay.
# Below, the same document is cut into windows that overlap more and more.
# Grey is what a prompt of everything costs; blue is what is left when each thing is said once.

# %%
import inspect
import json
import shutil
import string
import subprocess

import numpy as np
from _style import AMBER, BLUE, GREY, RED, canvas, ending, headline

from muntin import Candidate, count_tokens, mmr_select, select
from muntin.similarity import WordOverlap

DOCUMENT = " ".join((inspect.getdoc(subprocess) or "").split())
WORDS = (DOCUMENT + " " + " ".join((inspect.getdoc(shutil.copytree) or "").split())).split()


def pieces(overlap, size=60):
    """Cut the document into windows of `size` words that share `overlap` of them."""
    step = max(1, round(size * (1 - overlap)))
    starts = range(0, len(WORDS) - size + 1, step)
    return [Candidate(" ".join(WORDS[at : at + size]), 1 - at / 1e5) for at in starts]


def tokens(candidates):
    return sum(count_tokens(one.content) for one in candidates)


overlaps = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
found = [pieces(overlap) for overlap in overlaps]
percent = [round(100 * overlap) for overlap in overlaps]
(axes,) = canvas()
ending(axes, (percent, [tokens(one) for one in found]), "all of it", GREY)
distinct = [tokens(select(one, lambda_=1.0).kept) for one in found]
ending(axes, (percent, distinct), "said once", BLUE)
headline(axes, "Overlap is paid for again and again", x="overlap of the windows, %", y="tokens")

# %% [markdown]
# The documents are the docstrings of your own Python,
# so your figures may differ by a few tokens from the picture.
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
axes.imshow(likeness, cmap="Blues", vmin=0, vmax=1)
for (row, column), value in np.ndenumerate(likeness):
    axes.text(column, row, f"{value:.2f}", ha="center", va="center",
              color="white" if value > 0.6 else "black", fontsize=8)  # fmt: skip
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
for axes, weight in zip(canvas(height=3.4, columns=3), (1.0, 0.7, 0.3), strict=True):
    picked = {one.content for one in mmr_select(points, top_k=4, lambda_=weight)}
    axes.grid(visible=False)
    axes.set(xlim=(0, 1.25), ylim=(-1.1, 1.2), xticks=[], yticks=[])
    axes.scatter(1.1, 0, marker="*", s=120, color=AMBER)
    for one, (x, y) in zip(points, vectors, strict=True):
        axes.scatter(x, y, s=60, color=RED if one.content in picked else "white", edgecolor=GREY)
    headline(axes, f"lambda {weight}")
    print(weight, json.dumps(sorted(name[-1] for name in picked)))

# %% [markdown]
# Inside a builder the default is 1: once duplicates are gone,
# every step towards diversity lost passages that held the answer.
#
# ## Try this on yours
#
# `select([Candidate(text, score) for text,
# score in your_retriever(question)])` and look at `.dropped`.
# Count the tokens of what was dropped:
# that is what the question has been costing you for nothing.
