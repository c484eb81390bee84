"""Texts with which providers refuse a request, as a table with one row for each text.

A pattern names the numbers it reads: `{limit}` (tokens allowed), `{prompt}` (tokens of the prompt),
`{total}` (prompt and answer together), `{answer}` (tokens reserved for the answer) and `{over}`
(tokens above the limit). Rows are tried in order and the first match is used.
`refusals` decides what a row means for the next request.
"""

from __future__ import annotations

from muntin.adapting.refusal_history import HISTORY
from muntin.adapting.refusal_wording import row

__all__ = ("WORDINGS",)

_MODEL_LIMIT = r"maximum (?:context|model|prompt) length is {limit}"

_HOSTED = (
    row(
        "OpenAI, messages, functions and completion",
        "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens "
        "(8000 in the messages, 300 in the functions, and 1000 in the completion). Please reduce "
        "the length of the messages, functions, or completion.",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens"
        r"[^)]{0,60}in the functions, and {answer} in the completion",
    ),
    row(
        "OpenAI, completion",
        "This model's maximum context length is 128000 tokens. However, you requested 130000 "
        "tokens (114000 in the messages, 16000 in the completion).",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens"
        r".{0,80}?{answer} in the completion",
    ),
    row(
        "OpenRouter",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "140000 tokens (130000 of text input, 2000 of tool input, 8000 in the output).",
        _MODEL_LIMIT + r" tokens\W+however, you requested about {total} tokens"
        r".{0,120}?{answer} in the output",
    ),
    row(
        "Azure",
        "This model's maximum context length is 4097 tokens, however you requested 5360 tokens "
        "(1360 in your prompt; 4000 for the completion). Please reduce your prompt; or completion "
        "length.",
        _MODEL_LIMIT + r" tokens, however you requested {total} tokens"
        r".{0,60}?{answer} for the completion",
    ),
    row(
        "OpenAI, messages",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9041 tokens (8000 in the messages, 1041 in the functions). Please reduce the length of "
        "the messages.",
        _MODEL_LIMIT + r" tokens\W+however, your messages resulted in {prompt} tokens",
    ),
    row(
        "OpenAI, one number for all",
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
        _MODEL_LIMIT + r" tokens\W+however, you requested {total} tokens",
    ),
    row(
        "OpenAI Responses",
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        r"input exceeds the context window of this model",
    ),
    row(
        "OpenAI, length of one text",
        "Invalid 'messages[0].content': string too long. Expected a string with maximum length "
        "10485760, but got a string with length 12000000 instead.",
        r"string too long. expected a string with maximum length",
    ),
    row(
        "OpenAI and Groq, quota of a minute",
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, "
        "Requested 51207. The input or output tokens must be reduced in order to run successfully.",
        r"tokens per (?:min|minute|day)\b.{0,20}:? limit:? {limit},.{0,40}?requested:? {total}",
        kind="rate",
    ),
    row(
        "Anthropic, quota of a minute",
        "This request would exceed your organization's rate limit of 30,000 input tokens per "
        "minute.",
        r"rate limit of {limit} (?:input )?tokens per minute",
        kind="rate",
    ),
    row(
        "Gemini, quota of a minute",
        "You exceeded your current quota. Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, "
        "limit: 250000, model: gemini-3.5-flash",
        r"quota exceeded for metric: \S*input_token_count, limit: {limit}",
        kind="rate",
    ),
    row(
        "Anthropic",
        "prompt is too long: 210043 tokens > 200000 maximum",
        r"prompt is too long: {prompt} tokens > {limit} maximum",
    ),
    row(
        "Anthropic, with answer",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        r"exceed context limit: {prompt} \+ {answer} > {limit}",
    ),
    row(
        "Anthropic, 413",
        "Request exceeds the maximum size",
        r"request_too_large|request exceeds the maximum (?:size|allowed number of bytes)",
    ),
    row(
        "Gemini",
        "The input token count (1,200,000) exceeds the maximum number of tokens allowed "
        "(1,048,576).",
        r"input token count \(?{prompt}\)? exceeds the maximum number of tokens allowed "
        r"\(?{limit}\)?",
    ),
    row(
        "Gemini, limit alone",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        r"input token count exceeds the maximum number of tokens allowed \(?{limit}\)?",
    ),
    row(
        "Vertex",
        "Unable to submit request because the input token count is 1200000 but model only "
        "supports up to 1048576. Reduce the input token count and try again.",
        r"input token count is {prompt} but (?:the )?model only supports up to {limit}",
    ),
    row(
        "Bedrock, figures",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9041",
        r"max input tokens: {limit}, request input token count: {prompt}",
    ),
    row(
        "Bedrock, characters",
        "Malformed input request: expected maxLength: 42000, actual: 50000, please reformat your "
        "input and try again.",
        r"expected maxlength: \d+, actual: \d+",
    ),
    row(
        "Bedrock, Nova",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the "
        "input to try again.",
        r"number of input tokens exceeds (?:the )?maximum length",
    ),
    row(
        "Bedrock",
        "The model returned the following errors: Input is too long for requested model.",
        r"input is too long for (?:the )?requested model",
    ),
    row(
        "Mistral",
        "Prompt contains 40234 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        r"prompt contains {prompt} tokens.{0,40}?too large for model with {limit} maximum",
    ),
    row(
        "Cohere",
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received "
        "130000. Try using a shorter prompt.",
        r"number of tokens in the prompt cannot exceed {limit} - received {prompt}",
    ),
    row(
        "Cohere, excess",
        "too many tokens: size limit exceeded by 2000 tokens. Try using shorter or fewer inputs, "
        "or setting prompt_truncation='AUTO'. The limit for this model is 128000 tokens.",
        r"size limit exceeded by {over} tokens.{0,160}?limit for this model is {limit} tokens",
    ),
    row(
        "Moonshot",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        r"exceeded model token limit: {limit} \(requested: {total}\)",
    ),
    row(
        "Moonshot, limit alone",
        "Invalid request: Your request exceeded model token limit: 8192",
        r"exceeded model token limit: {limit}",
    ),
    row(
        "MiniMax",
        "invalid params, context window exceeds limit (2013)",
        r"context window exceeds limit \(2013\)",
    ),
    row(
        "Qwen",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        r"range of input length should be \[\d+, {limit}\]",
    ),
    row(
        "Zhipu",
        "Error code: 400 - {'error': {'code': '1261', 'message': 'Prompt exceeds max length'}}",
        r"prompt exceeds max length|prompt 超长",
    ),
    row(
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        r"maximum prompt length is {limit} but the request contains {prompt} tokens",
    ),
    row(
        "Cerebras",
        "Please reduce the length of the messages or completion. Current length is 9041 while "
        "limit is 8192",
        r"current length is {total} while limit is {limit}",
    ),
    row(
        "Fireworks",
        "The prompt is too long: 140000, model maximum context length: 131071",
        r"prompt is too long: {prompt}, model maximum context length: {limit}",
    ),
    row(
        "GitHub Models",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        r"request body too large for .{1,80}? model. max size: {limit} tokens",
    ),
    row(
        "GitHub Copilot",
        "prompt token count of 140000 exceeds the limit of 128000",
        r"prompt token count of {prompt} exceeds the limit of {limit}",
    ),
    row(
        "watsonx",
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
        r"number of input tokens {prompt} cannot exceed the total tokens limit {limit}",
    ),
)

_SERVERS = (
    row(
        "vLLM",
        "You passed 40001 input tokens and requested 512 output tokens. However, the model's "
        "context length is only 32768 tokens, resulting in a maximum input length of 32256 tokens.",
        r"you passed {prompt} input tokens and requested {answer} output tokens.{0,60}?"
        r"context length is only {limit} tokens",
    ),
    row(
        "vLLM, answer too large",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
        "length is 4096 tokens and your request has 120 input tokens (4096 > 4096 - 120).",
        r"is too large: {answer}\. .{0,20}?" + _MODEL_LIMIT + r" tokens and your request has "
        r"{prompt} input tokens",
    ),
    row(
        "vLLM, input alone",
        "This model's maximum context length is 4096 tokens. However, your request has 4500 input "
        "tokens. Please reduce the length of the input messages.",
        _MODEL_LIMIT + r" tokens\W+however, your request has {prompt} input tokens",
    ),
    row(
        "vLLM, decoder",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        r"prompt \((?:total )?length {prompt}\) is longer than the maximum model length of {limit}",
    ),
    row(
        "vLLM, old",
        "The prompt (total length 5000) is too long to fit into the model (context length 4096).",
        r"prompt \(total length {prompt}\) is too long to fit into the model "
        r"\(context length {limit}\)",
    ),
    row(
        "SGLang",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        r"input \({prompt} tokens\) is longer than the model.s context length \({limit} tokens\)",
    ),
    row(
        "SGLang, with answer",
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You "
        "requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for "
        "the completion.",
        r"context length of {limit} tokens\. you requested a total of {total} tokens.{0,80}?"
        r"{answer} tokens for the completion",
    ),
    row(
        "TGI",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 "
        "`inputs` tokens and 1000 `max_new_tokens`",
        r"max_new_tokens\W{1,3}must be <= {limit}\. given: {prompt} \W?inputs\W? tokens and "
        r"{answer} \W?max_new_tokens",
    ),
    row(
        "llama.cpp",
        "request (5360 tokens) exceeds the available context size (4096 tokens), try increasing it",
        r"request \({prompt} tokens\) exceeds the available context size \({limit} tokens\)",
    ),
    row(
        "llama.cpp, fields",
        "{'code': 400, 'message': 'the request exceeds the available context size', 'type': "
        "'exceed_context_size_error', 'n_prompt_tokens': 5360, 'n_ctx': 4096}",
        r"n_prompt_tokens\W{1,4}{prompt}\b.{0,20}n_ctx\W{1,4}{limit}",
    ),
    row(
        "llama.cpp, no figures",
        "the request exceeds the available context size. try increasing the context size or enable "
        "context shift",
        r"exceeds the available context size",
    ),
    row(
        "llama-cpp-python",
        "Requested tokens (5360) exceed context window of 4096",
        r"requested tokens \({total}\) exceed context window of {limit}",
    ),
    row(
        "Ollama, excess",
        "prompt too long; exceeded max context length by 4 tokens",
        r"exceeded max context length by {over} tokens",
    ),
    row(
        "Ollama",
        "the input length exceeds the context length",
        r"input length exceeds (?:the |maximum )?context length",
    ),
    row(
        "LM Studio",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens, which is not enough.",
        r"keep the first {prompt} tokens when.{0,80}?context length of only {limit} tokens",
    ),
    row(
        "LM Studio, initial prompt",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        r"tokens to keep from the initial prompt is greater than the context length",
    ),
    row(
        "Groq",
        "Please reduce the length of the messages or completion.",
        r"please reduce the length of the messages or completion",
    ),
    row(
        "Error codes",
        "litellm.ContextWindowExceededError: code context_length_exceeded",
        r"context_length_exceeded|model_context_window_exceeded|ContextWindowExceededError",
    ),
)

WORDINGS = (*HISTORY, *_HOSTED, *_SERVERS)
"""All texts; the first that matches is used."""
