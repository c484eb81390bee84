# %% [markdown]
# # A window is a budget
#
# Instructions, the question, retrieval, memory and tool results share one window,
# and the answer has to fit in as well.
# muntin divides it and says where every token went.
# The bar below is one window, to scale.

# %%
import importlib.util
import subprocess
import sys

PACKAGE = "muntin[notebooks] @ git+https://github.com/muntin/muntin"
if importlib.util.find_spec("muntin") is None:  # copied alone, in a fresh environment
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %%
from matplotlib.axes import Axes

from muntin import (
    AssembledContext,
    AssemblyReport,
    CallableSource,
    Candidate,
    ContextBuilder,
    ContextConfig,
)
from muntin.demo.pictures import AMBER, BLUE, GREY, canvas, headline, windows

RULES = (
    "Letters weigh up to 80 grams each, and no form is asked for below that.",
    "Parcels weigh up to 180 grams each; in Paris and London up to 240. Keep the invoice.",
    "Trains are booked in second class. First class needs the word of your manager beforehand.",
    "Whoever drives a car of their own gets 30 cents a kilometre, whatever the car may use.",
    "A taxi is paid when no train or bus has left for an hour, or when you carry equipment.",
    "Claims are due within 30 days of the return; later ones need the signature of a director.",
    "Flights under four hours are booked in economy, and at least two weeks ahead if possible.",
    "A phone call home of up to ten minutes a day is paid; data abroad is in the contract.",
)


def rules(question: str) -> list[Candidate]:
    return [Candidate(text, 0.9 - n / 20) for n, text in enumerate(RULES)]


def memory(question: str) -> list[Candidate]:
    return [Candidate("The user travels to Paris on Monday, for three days.", 0.8)]


def calendar(question: str) -> list[Candidate]:
    return [Candidate(f"Day {day}: meeting at {day}0:00 in room {day}.", 0.5) for day in (1, 2, 3)]


SOURCES = [
    CallableSource("rag", rules),
    CallableSource("memory", memory),
    CallableSource("tool", calendar),
]


def assemble(max_tokens: int, *, allow_borrow: bool = True) -> AssembledContext:
    config = ContextConfig(
        max_tokens=max_tokens,
        min_chunk_tokens=16,
        source_ratios={"rag": 5, "memory": 3, "tool": 2},
        allow_borrow=allow_borrow,
    )
    return ContextBuilder(config).assemble(
        "What will Paris cost me, and what do I get back?",
        sources=SOURCES,
        system_prompt="You answer about postage. Say which rule you used.",
    )


context = assemble(320)
windows({"one prompt": context.report}, "320 tokens, and where each of them went")

# %% [markdown]
# Hatched is the reserve: tokens withheld for the answer.
# The same in text, for a terminal or a log:

# %%
print(context.report)

# %%
context.report

# %% [markdown]
# ## Quotas, and what borrowing does
#
# Ratios grant each source a quota.
# Memory had one short note, so most of its quota would lie idle;
# it is lent to whoever still has something to place.
# Without borrowing the same passages are refused beside empty space.


# %%
def shares(axes: Axes, report: AssemblyReport, title: str) -> None:
    for at, source in enumerate(report.sources):
        quota = source.quota or 0
        own = min(source.used, quota)
        axes.bar(at, quota, 0.7, fill=False, ec=GREY, ls="--")
        axes.bar(at, own, 0.5, color=BLUE)
        axes.bar(at, source.used - own, 0.5, own, color=AMBER)
        axes.text(at, source.used + 2, f"{source.used}", ha="center")
    axes.set_xticks(range(len(report.sources)), [source.name for source in report.sources])
    headline(axes, title, y="tokens")


walls = assemble(320, allow_borrow=False)
left, right = canvas(columns=2)
right.sharey(left)
shares(left, walls.report, f"Quotas as walls: {walls.report.idle} tokens idle")
shares(right, context.report, f"With borrowing: {context.report.idle} tokens idle")

# %% [markdown]
# Dashed is the quota, blue what was used of it, amber what was borrowed.

# %%
for name, built in {"walls": walls, "borrowing": context}.items():
    kept = sum(one.kind == "kept" for one in built.report.decisions)
    print(f"{name:10} {kept} of {len(built.report.decisions)} passages, {built.report.idle} idle")

# %% [markdown]
# ## Another window, without asking the sources again

# %%
tried = {f"{tokens}": context.report.what_if(max_tokens=tokens) for tokens in (200, 260, 320, 480)}
windows(tried, "The same candidates in four windows")

# %% [markdown]
# ## Try this on yours
#
# Replace `rules` by your retriever: any function from a question to strings or candidates.
# `ContextConfig.for_window(your_window)` takes the budget from your model, and
# `context.report.to_html("report.html")` writes the bar and every decision into one page.
