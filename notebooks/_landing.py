"""Draw `docs/images/agent.svg`, the picture on the landing page; it suits light and dark pages.

python notebooks/_landing.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from _style import canvas, ending
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel

WINDOW, STEPS = 16_000, 24
QUIET, SKY, CORAL = "#8593a1", "#4a90c4", "#d0605f"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "agent.svg"


def read_log(part: int) -> str:
    """Read a part of the log."""
    return "\n".join(f"10:{n % 60:02} part {part} worker {n % 7} took {n} ms" for n in range(90))


def run(window: int, middleware: list[ContextWindowMiddleware]) -> list[float]:
    """Return the tokens of each request of an agent that reads the whole log."""
    calls = [{"name": "read_log", "args": {"part": n}, "id": f"call-{n}"} for n in range(STEPS)]
    replies = [*(AIMessage("", tool_calls=[one]) for one in calls), "All quiet."]
    model = StrictChatModel(window=window, replies=replies)
    agent = create_agent(model, tools=[read_log], middleware=middleware)
    agent.invoke({"messages": [("user", "Is anything odd?")]}, {"recursion_limit": 200})
    return [float(request.tokens) for request in model.sent]


def main() -> None:
    """Run the agent twice and draw what it sent."""
    names = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    quiet = dict.fromkeys(names, QUIET)
    with plt.rc_context({**quiet, "grid.color": "#8593a133", "svg.hashsalt": "muntin"}):
        (axes,) = canvas(9.0, 3.0)
        steps = list(range(1, STEPS + 2))
        ending(axes, (steps, run(1_000_000, [])), "sent as it is", CORAL)
        ending(axes, (steps, run(WINDOW, [ContextWindowMiddleware()])), "sent by muntin", SKY)
        axes.axhline(WINDOW, color=QUIET, ls="--", lw=1)
        axes.text(1, WINDOW * 1.02, f"the window: {WINDOW:,} tokens", va="bottom")
        axes.set(xlabel="step of the agent", ylabel="tokens of the request")
        axes.figure.savefig(PICTURE, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
