# %% [markdown]
# # LangChain: the prompt, and the agent
#
# An agent sends its whole trajectory again at every step.
# Nobody sees it grow, until the provider refuses the request.
# One middleware keeps every request inside the window, and leaves the state whole.

# %%
import importlib.util
import subprocess
import sys

PACKAGE = "muntin[notebooks] @ git+https://github.com/muntin/muntin"
if importlib.util.find_spec("muntin") is None:  # copied alone, in a fresh environment
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %%
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from langchain_muntin import ContextAssembler, ContextWindowMiddleware
from langchain_muntin.testing import StrictChatModel
from muntin.demo.pictures import BLUE, GREY, RED, canvas, ending, headline, windows

WINDOW, STEPS = 16_000, 24


def read_log(part: int) -> str:
    """Read a part of the log."""
    lines = (
        f"10:{n % 60:02} part {part} worker {n % 7} took {n * part % 90} ms" for n in range(90)
    )
    return "\n".join(lines)


def scripted(window: int) -> StrictChatModel:
    """Return a model that reads every part of the log, then answers; no provider is asked."""
    calls = [{"name": "read_log", "args": {"part": n}, "id": f"call-{n}"} for n in range(STEPS)]
    replies = [AIMessage("", tool_calls=[call]) for call in calls]
    return StrictChatModel(window=window, replies=[*replies, "All quiet."])


def run(
    window: int, middleware: list[ContextWindowMiddleware]
) -> tuple[list[int], list[BaseMessage]]:
    model = scripted(window)
    agent = create_agent(model, tools=[read_log], middleware=middleware)
    question = HumanMessage("Is anything odd in the log?")
    state = agent.invoke({"messages": [question]}, {"recursion_limit": 200})
    return [request.tokens for request in model.sent], state["messages"]


grown, _ = run(1_000_000, [])  # a window so large that the double does not refuse
fitted, messages = run(WINDOW, [ContextWindowMiddleware()])

steps = list(range(1, STEPS + 2))
(axes,) = canvas()
ending(axes, (steps, grown), "as it is", RED)
ending(axes, (steps, fitted), "with the middleware", BLUE)
axes.axhline(WINDOW, color=GREY, ls="--", lw=1)
axes.text(1, WINDOW, f"window {WINDOW:,}", va="bottom", color=GREY)
headline(axes, "An agent's prompt, step by step", x="step", y="tokens")

# %% [markdown]
# The model is a double that counts exactly and refuses what a provider would refuse:
# too many tokens, a result without its call.
# It answered every request, and nothing was lost from the agent's state:

# %%
print("largest request:", f"{max(fitted):,} of {WINDOW:,};", "answer:", messages[-1].text)
print(len(messages), "messages in the state, the first result still", len(messages[2].text), "long")
print(f"tokens sent over the run: {sum(grown):,} as it is, {sum(fitted):,} with the middleware")

# %% [markdown]
# ## A chain
#
# `ContextAssembler` stands where the prompt stands.
# It takes the window from the model's profile, charges instructions and question,
# and fills the rest.

# %%
model = StrictChatModel(window=600, replies=["Up to 240 euros a night."])
texts = [
    "Parcels weigh up to 180 grams each; in Paris and London up to 240. Keep the invoice.",
    "Parcels weigh up to 180 grams each; in Paris and London up to 240, keep the invoice.",
    "Letters weigh up to 80 grams each, and no form is asked for below that.",
    "Trains are booked in second class. First class needs the word of your manager beforehand.",
]
retriever = RunnableLambda(lambda question: texts)
assembler = ContextAssembler(model=model, system_prompt="You answer about postage.")
prompt = {"rag": retriever, "question": RunnablePassthrough()} | assembler
print((prompt | model | StrOutputParser()).invoke("What may a parcel to Paris weigh?"))

# %%
report = prompt.invoke("What may a parcel to Paris weigh?").report
windows({"the prompt": report}, "The prompt the model got")
for one in report.decisions:
    print(f"{one.kind:8}{one.reason:16}{one.preview[:60]}")

# %%
report

# %% [markdown]
# ## Try this on yours
#
# Add `middleware=[ContextWindowMiddleware()]` to your `create_agent`,
# and put the assembler between your retriever and your model.
# Before that, collect `usage_metadata["input_tokens"]` of each step of one of your runs and
# draw it: that is your red line.
