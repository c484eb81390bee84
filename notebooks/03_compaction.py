# %% [markdown]
# # Two hundred turns
#
# A chat sends its whole history with every message,
# so its cost grows with the square of its length.
# Two cures are common: cut the oldest messages, or summarise.
# The first is worse than it looks,
# because a prompt cache reuses a prompt only up to its first changed token,
# and cutting at the front changes the first one every time.

# %%
import importlib.util
import subprocess
import sys

PACKAGE = "muntin[notebooks] @ git+https://github.com/muntin/muntin"
if importlib.util.find_spec("muntin") is None:  # copied alone, in a fresh environment
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %%
from collections.abc import Callable
from itertools import pairwise, takewhile

from muntin import HistoryCompactor, count_messages, fit_messages
from muntin.demo.pictures import AMBER, BLUE, GREY, RED, canvas, ending, headline

Message = dict[str, str]
TURNS = 200
SYSTEM = {"role": "system", "content": "You help with orders. Be brief and name the order. " * 8}
PLACES = ("Lyon", "Porto", "Ghent", "Turin", "Graz")


def turn(n: int) -> list[Message]:
    """Return what is said in one turn: a question about an order, and its answer."""
    order, place = f"A-{1000 + n}", PLACES[n % 5]
    return [
        {"role": "user", "content": f"Where is order {order}, and who signed for it in {place}?"},
        {
            "role": "assistant",
            "content": f"Order {order} left {place} at {n % 24}:05, weighs {n % 9 + 1} kg and was "
            f"signed for by desk {n % 7}. The invoice follows on day {n % 28 + 1}.",
        },
    ]


def newest(history: list[Message]) -> list[Message]:
    return [history[0], *history[max(1, len(history) - 24) :]]


def requests(fitted: Callable[[list[Message]], list[Message]]) -> list[list[Message]]:
    """Send a request a turn, each with the whole story so far."""
    history, sent = [SYSTEM], list[list[Message]]()
    for n in range(TURNS):
        question, answer = turn(n)
        history.append(question)
        sent.append(list(fitted(history)))
        history.append(answer)
    return sent


compactor = HistoryCompactor(trigger_tokens=2000)  # summarises by extraction; give it a model
STRATEGIES = {
    "whole history": (list, GREY),
    "newest 24 messages": (newest, RED),
    "compaction": (compactor.compact, BLUE),
}
runs = {name: requests(fitted) for name, (fitted, _) in STRATEGIES.items()}
sizes = {name: [count_messages(one) for one in sent] for name, sent in runs.items()}

turns = list(range(1, TURNS + 1))
(axes,) = canvas()
for name, (_, color) in STRATEGIES.items():
    ending(axes, (turns, sizes[name]), name, color)
headline(axes, "Tokens of each request", x="turn", y="tokens")

# %% [markdown]
# ## What the prompt cache sees
#
# A request shares its beginning with the one before it, and only that part is cheap.
# Blue is what a cache can reuse, amber what is read anew.


# %%
def reused(sent: list[list[Message]]) -> list[int]:
    """Return for each request the tokens it shares with the beginning of the one before."""
    shared = [0]
    for before, after in pairwise(sent):
        pairs = zip(before, after, strict=False)
        same = [message for message, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        shared.append(count_messages(same) if same else 0)
    return shared


cached = {name: reused(sent) for name, sent in runs.items()}
for axes, name in zip(canvas(columns=3), STRATEGIES, strict=True):
    fresh = [size - old for size, old in zip(sizes[name], cached[name], strict=True)]
    axes.stackplot(turns, cached[name], fresh, colors=[BLUE, AMBER], lw=0)
    axes.set_ylim(0, 3200)
    headline(axes, name, x="turn", y="tokens (cut off at 3,200)" if name == "whole history" else "")

# %% [markdown]
# The steps in the last picture are the passes: only then is a summariser asked,
# and only then does the cache begin anew.
#
# ## The bill
#
# Cached tokens are taken to cost a tenth; providers differ.


# %%
def bill(name: str) -> float:
    return sum(size - 0.9 * old for size, old in zip(sizes[name], cached[name], strict=True))


print(f"{'':20}{'tokens sent':>12}{'cached':>9}{'paid as':>10}")
for name in STRATEGIES:
    sent, old = sum(sizes[name]), sum(cached[name])
    print(f"{name:20}{sent:12,}{old / sent:9.0%}{bill(name):10,.0f}")

# %%
passes = sum(a[1] != b[1] for a, b in zip(runs["compaction"], runs["compaction"][1:], strict=False))
print(passes, "passes in", TURNS, "turns; the recap now begins:")
print(runs["compaction"][-1][1]["content"][:180], "…")

# %% [markdown]
# One call fits the whole history into a budget, with the report of each message:

# %%
fit_messages(runs["whole history"][-1], budget=2000).report

# %% [markdown]
# ## Try this on yours
#
# `HistoryCompactor(your_model, trigger_tokens=...)` takes anything with `chat`,
# `complete` or a function `(text, instruction) -> str`.
# Lower `trigger_tokens` makes requests smaller and passes more frequent;
# draw both with the loop above and your own log of a chat.
