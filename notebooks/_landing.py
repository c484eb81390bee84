"""Draw `docs/images/agent.svg`, the picture on the landing page.

python notebooks/_landing.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from langchain_muntin import ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from muntin.demo.pictures import BLUE, GREY, RED, canvas, ending

WINDOW, STEPS = 16_000, 24
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
    agent.invoke({"messages": [HumanMessage("Is anything odd?")]}, {"recursion_limit": 200})
    return [float(request.tokens) for request in model.sent]


def main() -> None:
    """Run the agent twice and draw what it sent."""
    with plt.rc_context({"svg.hashsalt": "muntin"}):
        (axes,) = canvas(9.0, 3.0)
        steps = list(range(1, STEPS + 2))
        ending(axes, (steps, run(1_000_000, [])), "sent as it is", RED)
        ending(axes, (steps, run(WINDOW, [ContextWindowMiddleware()])), "sent by muntin", BLUE)
        axes.axhline(WINDOW, color=GREY, ls="--", lw=1)
        axes.text(1, WINDOW * 1.02, f"the window: {WINDOW:,} tokens", va="bottom")
        axes.set(xlabel="step of the agent", ylabel="tokens of the request")
        plt.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
