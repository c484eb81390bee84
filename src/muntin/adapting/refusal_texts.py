"""Texts with which providers refuse a request, as a table with one row for each text.

A pattern names the numbers it reads: `{limit}` (tokens allowed), `{prompt}` (tokens of the prompt),
`{total}` (prompt and answer together), `{answer}` (tokens reserved for the answer) and `{over}`
(tokens above the limit). Rows are tried in order and the first match is used.
`refusals` decides what a row means for the next request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

__all__ = ("WORDINGS", "RefusalKind", "Wording")

RefusalKind = Literal["window", "rate", "thinking", "history"]
"""Why a request was refused: it is larger than the window or than the whole quota of a minute, its
signed thinking belongs to another conversation, or its messages break a rule of the provider."""

_NUMBER = r"(?<![\w.\-/])(?P<{}>\d[\d,_]*)(?![\w]|[-/.]\w)"
_NAMES = ("limit", "prompt", "total", "answer", "over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One text of one provider."""

    provider: str
    """Provider or server that writes it."""
    kind: RefusalKind = "window"
    """What it means."""
    says: str
    """Regular expression in which `{limit}` and the like match numbers."""
    example: str
    """The text as the provider sends it."""
    pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    """`says`, compiled."""

    def __post_init__(self) -> None:
        says = self.says
        for name in _NAMES:
            says = says.replace("{" + name + "}", _NUMBER.format(name))
        object.__setattr__(self, "pattern", re.compile(says, re.IGNORECASE | re.DOTALL))


def _row(provider: str, example: str, says: str, *, kind: RefusalKind = "window") -> Wording:
    return Wording(provider=provider, kind=kind, says=says, example=example)


_MODEL_LIMIT = r"maximum (?:context|model|prompt) length is {limit}"

_HISTORY = (
    _row(
        "Anthropic, preserved thinking",
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation prefix.",
        r"invalid\W{1,3}signature\W{1,3}in\W{1,3}(?:redacted_)?thinking",
        kind="thinking",
    ),
    _row(
        "Anthropic, edited thinking",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response.",
        r"thinking\W{1,3}blocks in the latest assistant message cannot be modified",
        kind="thinking",
    ),
    _row(
        "OpenAI Responses, encrypted reasoning",
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not "
        "be decrypted or parsed.",
        r"encrypted content\b.{0,80}could not be verified",
        kind="thinking",
    ),
    _row(
        "Gemini, foreign signature",
        "Corrupted thought signature.",
        r"(?:corrupted|invalid) thought[ _]?signature",
        kind="thinking",
    ),
    _row(
        "DeepSeek",
        "The reasoning_content in the thinking mode must be passed back to the API",
        r"reasoning_content\W{0,2} in the thinking mode must be passed back",
        kind="history",
    ),
    _row(
        "Moonshot, reasoning",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 4",
        r"reasoning_content is missing in assistant tool call message",
        kind="history",
    ),
    _row(
        "Gemini, missing signature",
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly.",
        r"missing a thought_signature",
        kind="history",
    ),
    _row(
        "OpenAI Responses, parted reasoning",
        "Item 'fc_68' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_68'.",
        r"was provided without its required",
        kind="history",
    ),
    _row(
        "OpenAI, calls without results",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
        r"must be followed by tool messages|did not have response messages",
        kind="history",
    ),
    _row(
        "OpenAI, results without a call",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        r"must be a response to a prece?eding message",
        kind="history",
    ),
    _row(
        "OpenAI Responses, calls without results",
        "No tool output found for function call call_1.",
        r"no tool (?:output|call) found for function call",
        kind="history",
    ),
    _row(
        "Anthropic, calls without results",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_1. Each `tool_use` block must have a corresponding `tool_result` block.",
        r"tool_use\W{1,3}ids were found without",
        kind="history",
    ),
    _row(
        "Anthropic, results without a call",
        "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
        r"unexpected\W{1,3}tool_use_id",
        kind="history",
    ),
    _row(
        "Templates with strict alternation",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        r"roles must alternate",
        kind="history",
    ),
)

_HOSTED = (
    _row(
        "OpenAI, messages, functions and completion",
        "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens "
        "(8000 in the messages, 300 in the functions, and 1000 in the completion). Please reduce "
        "the length of the messages, functions, or completion.",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens"
        r"[^)]{0,60}in the functions, and {answer} in the completion",
    ),
    _row(
        "OpenAI, completion",
        "This model's maximum context length is 128000 tokens. However, you requested 130000 "
        "tokens (114000 in the messages, 16000 in the completion).",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens"
        r".{0,80}?{answer} in the completion",
    ),
    _row(
        "OpenRouter",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "140000 tokens (130000 of text input, 2000 of tool input, 8000 in the output).",
        _MODEL_LIMIT + r" tokens\W+however, you requested about {total} tokens"
        r".{0,120}?{answer} in the output",
    ),
    _row(
        "Azure",
        "This model's maximum context length is 4097 tokens, however you requested 5360 tokens "
        "(1360 in your prompt; 4000 for the completion). Please reduce your prompt; or completion "
        "length.",
        _MODEL_LIMIT + r" tokens, however you requested {total} tokens"
        r".{0,60}?{answer} for the completion",
    ),
    _row(
        "OpenAI, messages",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9041 tokens (8000 in the messages, 1041 in the functions). Please reduce the length of "
        "the messages.",
        _MODEL_LIMIT + r" tokens\W+however, your messages resulted in {prompt} tokens",
    ),
    _row(
        "OpenAI, one number for all",
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens",
    ),
    _row(
        "OpenAI Responses",
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        r"input exceeds the context window of this model",
    ),
    _row(
        "OpenAI, length of one text",
        "Invalid 'messages[0].content': string too long. Expected a string with maximum length "
        "10485760, but got a string with length 12000000 instead.",
        r"string too long. expected a string with maximum length",
    ),
    _row(
        "OpenAI and Groq, quota of a minute",
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, "
        "Requested 51207. The input or output tokens must be reduced in order to run successfully.",
        r"tokens per (?:min|minute|day)\b.{0,20}:? limit:? {limit},.{0,40}?requested:? {total}",
        kind="rate",
    ),
    _row(
        "Anthropic, quota of a minute",
        "This request would exceed your organization's rate limit of 30,000 input tokens per "
        "minute.",
        r"rate limit of {limit} (?:input )?tokens per minute",
        kind="rate",
    ),
    _row(
        "Gemini, quota of a minute",
        "You exceeded your current quota. Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, "
        "limit: 250000, model: gemini-3.5-flash",
        r"quota exceeded for metric: \S*input_token_count, limit: {limit}",
        kind="rate",
    ),
    _row(
        "Anthropic",
        "prompt is too long: 210043 tokens > 200000 maximum",
        r"prompt is too long: {prompt} tokens > {limit} maximum",
    ),
    _row(
        "Anthropic, with answer",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        r"exceed context limit: {prompt} \+ {answer} > {limit}",
    ),
    _row(
        "Anthropic, 413",
        "Request exceeds the maximum size",
        r"request_too_large|request exceeds the maximum (?:size|allowed number of bytes)",
    ),
    _row(
        "Gemini",
        "The input token count (1,200,000) exceeds the maximum number of tokens allowed "
        "(1,048,576).",
        r"input token count \(?{prompt}\)? exceeds the maximum number of tokens allowed "
        r"\(?{limit}\)?",
    ),
    _row(
        "Gemini, limit alone",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        r"input token count exceeds the maximum number of tokens allowed \(?{limit}\)?",
    ),
    _row(
        "Vertex",
        "Unable to submit request because the input token count is 1200000 but model only "
        "supports up to 1048576. Reduce the input token count and try again.",
        r"input token count is {prompt} but (?:the )?model only supports up to {limit}",
    ),
    _row(
        "Bedrock, figures",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9041",
        r"max input tokens: {limit}, request input token count: {prompt}",
    ),
    _row(
        "Bedrock, characters",
        "Malformed input request: expected maxLength: 42000, actual: 50000, please reformat your "
        "input and try again.",
        r"expected maxlength: \d+, actual: \d+",
    ),
    _row(
        "Bedrock, Nova",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the "
        "input to try again.",
        r"number of input tokens exceeds (?:the )?maximum length",
    ),
    _row(
        "Bedrock",
        "The model returned the following errors: Input is too long for requested model.",
        r"input is too long for (?:the )?requested model",
    ),
    _row(
        "Mistral",
        "Prompt contains 40234 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        r"prompt contains {prompt} tokens.{0,40}?too large for model with {limit} maximum",
    ),
    _row(
        "Cohere",
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received "
        "130000. Try using a shorter prompt.",
        r"number of tokens in the prompt cannot exceed {limit} - received {prompt}",
    ),
    _row(
        "Cohere, excess",
        "too many tokens: size limit exceeded by 2000 tokens. Try using shorter or fewer inputs, "
        "or setting prompt_truncation='AUTO'. The limit for this model is 128000 tokens.",
        r"size limit exceeded by {over} tokens.{0,160}?limit for this model is {limit} tokens",
    ),
    _row(
        "Moonshot",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        r"exceeded model token limit: {limit} \(requested: {total}\)",
    ),
    _row(
        "Moonshot, limit alone",
        "Invalid request: Your request exceeded model token limit: 8192",
        r"exceeded model token limit: {limit}",
    ),
    _row(
        "MiniMax",
        "invalid params, context window exceeds limit (2013)",
        r"context window exceeds limit \(2013\)",
    ),
    _row(
        "Qwen",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        r"range of input length should be \[\d+, {limit}\]",
    ),
    _row(
        "Zhipu",
        "Error code: 400 - {'error': {'code': '1261', 'message': 'Prompt exceeds max length'}}",
        r"prompt exceeds max length|prompt 超长",
    ),
    _row(
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        r"maximum prompt length is {limit} but the request contains {prompt} tokens",
    ),
    _row(
        "Cerebras",
        "Please reduce the length of the messages or completion. Current length is 9041 while "
        "limit is 8192",
        r"current length is {total} while limit is {limit}",
    ),
    _row(
        "Fireworks",
        "The prompt is too long: 140000, model maximum context length: 131071",
        r"prompt is too long: {prompt}, model maximum context length: {limit}",
    ),
    _row(
        "GitHub Models",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        r"request body too large for .{1,80}? model. max size: {limit} tokens",
    ),
    _row(
        "GitHub Copilot",
        "prompt token count of 140000 exceeds the limit of 128000",
        r"prompt token count of {prompt} exceeds the limit of {limit}",
    ),
    _row(
        "watsonx",
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
        r"number of input tokens {prompt} cannot exceed the total tokens limit {limit}",
    ),
)

_SERVERS = (
    _row(
        "vLLM",
        "You passed 40001 input tokens and requested 512 output tokens. However, the model's "
        "context length is only 32768 tokens, resulting in a maximum input length of 32256 tokens.",
        r"you passed {prompt} input tokens and requested {answer} output tokens.{0,60}?"
        r"context length is only {limit} tokens",
    ),
    _row(
        "vLLM, answer too large",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
        "length is 4096 tokens and your request has 120 input tokens (4096 > 4096 - 120).",
        r"is too large: {answer}\. .{0,20}?" + _MODEL_LIMIT + r" tokens and your request has "
        r"{prompt} input tokens",
    ),
    _row(
        "vLLM, input alone",
        "This model's maximum context length is 4096 tokens. However, your request has 4500 input "
        "tokens. Please reduce the length of the input messages.",
        _MODEL_LIMIT + r" tokens\W+however, your request has {prompt} input tokens",
    ),
    _row(
        "vLLM, decoder",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        r"prompt \((?:total )?length {prompt}\) is longer than the maximum model length of {limit}",
    ),
    _row(
        "vLLM, old",
        "The prompt (total length 5000) is too long to fit into the model (context length 4096).",
        r"prompt \(total length {prompt}\) is too long to fit into the model "
        r"\(context length {limit}\)",
    ),
    _row(
        "SGLang",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        r"input \({prompt} tokens\) is longer than the model.s context length \({limit} tokens\)",
    ),
    _row(
        "SGLang, with answer",
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You "
        "requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for "
        "the completion.",
        r"context length of {limit} tokens\. you requested a total of {total} tokens.{0,80}?"
        r"{answer} tokens for the completion",
    ),
    _row(
        "TGI",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 "
        "`inputs` tokens and 1000 `max_new_tokens`",
        r"max_new_tokens\W{1,3}must be <= {limit}\. given: {prompt} \W?inputs\W? tokens and "
        r"{answer} \W?max_new_tokens",
    ),
    _row(
        "llama.cpp",
        "request (5360 tokens) exceeds the available context size (4096 tokens), try increasing it",
        r"request \({prompt} tokens\) exceeds the available context size \({limit} tokens\)",
    ),
    _row(
        "llama.cpp, fields",
        "{'code': 400, 'message': 'the request exceeds the available context size', 'type': "
        "'exceed_context_size_error', 'n_prompt_tokens': 5360, 'n_ctx': 4096}",
        r"n_prompt_tokens\W{1,4}{prompt}\b.{0,20}n_ctx\W{1,4}{limit}",
    ),
    _row(
        "llama.cpp, no figures",
        "the request exceeds the available context size. try increasing the context size or enable "
        "context shift",
        r"exceeds the available context size",
    ),
    _row(
        "llama-cpp-python",
        "Requested tokens (5360) exceed context window of 4096",
        r"requested tokens \({total}\) exceed context window of {limit}",
    ),
    _row(
        "Ollama, excess",
        "prompt too long; exceeded max context length by 4 tokens",
        r"exceeded max context length by {over} tokens",
    ),
    _row(
        "Ollama",
        "the input length exceeds the context length",
        r"input length exceeds (?:the |maximum )?context length",
    ),
    _row(
        "LM Studio",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens, which is not enough.",
        r"keep the first {prompt} tokens when.{0,80}?context length of only {limit} tokens",
    ),
    _row(
        "LM Studio, initial prompt",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        r"tokens to keep from the initial prompt is greater than the context length",
    ),
    _row(
        "Groq",
        "Please reduce the length of the messages or completion.",
        r"please reduce the length of the messages or completion",
    ),
    _row(
        "Error codes",
        "litellm.ContextWindowExceededError: code context_length_exceeded",
        r"context_length_exceeded|model_context_window_exceeded|ContextWindowExceededError",
    ),
)

WORDINGS = (*_HISTORY, *_HOSTED, *_SERVERS)
"""All texts; the first that matches is used."""
