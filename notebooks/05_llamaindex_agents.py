# %% [markdown]
# # LlamaIndex: what no memory sees
#
# A memory limits the chat. An agent's steps are in its scratchpad,
# which is appended to whatever the memory returned, and nothing limits that.
# The memory below has a limit of 3,000 tokens, and the prompt grows all the same.
# `with_window(agent)` fits every request.

# %%
import importlib.util
import subprocess
import sys

PACKAGE = "muntin[notebooks] @ git+https://github.com/muntin/muntin"
if importlib.util.find_spec("muntin") is None:  # copied alone, in a fresh environment
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %%
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_muntin import BudgetPostprocessor, CompactingMemory, WindowLedger, with_window
from llama_index_muntin.testing import StrictLLM, call
from muntin.demo.pictures import BLUE, GREY, RED, canvas, ending, headline

WINDOW, STEPS = 16_000, 24


def read_log(part: int) -> str:
    """Read a part of the log."""
    lines = (
        f"10:{n % 60:02} part {part} worker {n % 7} took {n * part % 90} ms" for n in range(90)
    )
    return "\n".join(lines)


def scripted(window: int) -> StrictLLM:
    """Return a model that reads every part of the log, then answers; no provider is asked."""
    calls = [call("read_log", part=n) for n in range(STEPS)]
    return StrictLLM([*calls, "All quiet."], window=window)


def agent_of(llm: StrictLLM) -> FunctionAgent:
    return FunctionAgent(llm=llm, tools=[read_log])


async def run(agent: FunctionAgent, memory: BaseMemory) -> str:
    handler = agent.run(user_msg="Is anything odd in the log?", memory=memory, max_iterations=100)
    return str(await handler)


free = scripted(1_000_000)  # a window so large that the double does not refuse
await run(agent_of(free), ChatMemoryBuffer.from_defaults(token_limit=3000))

fitting = scripted(WINDOW)
memory = CompactingMemory.from_defaults(llm=fitting)
answer = await run(with_window(agent_of(fitting)), memory)

steps = list(range(1, STEPS + 2))
(axes,) = canvas()
ending(axes, (steps, free.tokens), "a memory of 3,000 tokens", RED)
ending(axes, (steps, fitting.tokens), "with_window", BLUE)
axes.axhline(WINDOW, color=GREY, ls="--", lw=1)
axes.text(1, WINDOW, f"window {WINDOW:,}", va="bottom", color=GREY)
headline(axes, "An agent's prompt, step by step", x="step", y="tokens")

# %% [markdown]
# The model is a double that counts exactly and refuses what a provider would refuse.
# It answered every step, and the memory still has every step whole:

# %%
print("largest request:", f"{max(fitting.tokens):,} of {WINDOW:,};", "answer:", answer)
print(len(memory.get_all()), "messages in the memory")

# %% [markdown]
# ## The last request, message by message
#
# Old steps gave way and left a note of facts; the newest ones are word for word,
# each result behind its call.

# %%
for message in fitting.requests[-1]:
    text = " ".join((message.content or "").split())
    print(f"{message.role.value:10}{len(text):6,} characters  {text[:58] or '(calls a tool)'}")

# %% [markdown]
# ## One account for nodes, chat and steps
#
# A `WindowLedger` is shared: what the memory takes, the nodes cannot take.

# %%
ledger = WindowLedger(window=2000, output_reserve=400)
chat = CompactingMemory.from_defaults(ledger=ledger)
budget = BudgetPostprocessor(ledger=ledger)
texts = [f"Rule {n}: a journey of {n} days is paid up to {n * 80} euros." for n in range(1, 60)]
nodes = [NodeWithScore(node=TextNode(text=text), score=1 - n / 99) for n, text in enumerate(texts)]
kept = budget.postprocess_nodes(nodes, query_str="What is paid for 12 days?")
report = budget.last_report
assert report is not None
print(f"{len(kept)} of {len(nodes)} nodes, {report.used} tokens")

# %%
report

# %% [markdown]
# ## Try this on yours
#
# Wrap your agent: `agent = with_window(agent)`; nothing else changes.
# Before that, print `len(str(event.input))` of each `AgentInput` event of one of your runs:
# that is your red line.
