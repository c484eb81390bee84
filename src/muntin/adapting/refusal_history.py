"""Texts about the shape of a history: broken pairs, missing reasoning, thinking of another thread.

A smaller request would be refused for the same reason.
"""

from __future__ import annotations

from muntin.adapting.refusal_wording import row

__all__ = ("HISTORY",)

HISTORY = (
    row(
        "Anthropic, preserved thinking",
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation prefix.",
        r"invalid\W{1,3}signature\W{1,3}in\W{1,3}(?:redacted_)?thinking",
        kind="thinking",
    ),
    row(
        "Anthropic, edited thinking",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response.",
        r"thinking\W{1,3}blocks in the latest assistant message cannot be modified",
        kind="thinking",
    ),
    row(
        "OpenAI Responses, encrypted reasoning",
        "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not "
        "be decrypted or parsed.",
        r"encrypted content\b.{0,80}could not be verified",
        kind="thinking",
    ),
    row(
        "Gemini, foreign signature",
        "Corrupted thought signature.",
        r"(?:corrupted|invalid) thought[ _]?signature",
        kind="thinking",
    ),
    row(
        "DeepSeek",
        "The reasoning_content in the thinking mode must be passed back to the API",
        r"reasoning_content\W{0,2} in the thinking mode must be passed back",
        kind="history",
    ),
    row(
        "Moonshot, reasoning",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 4",
        r"reasoning_content is missing in assistant tool call message",
        kind="history",
    ),
    row(
        "Gemini, missing signature",
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly.",
        r"missing a thought_signature",
        kind="history",
    ),
    row(
        "OpenAI Responses, parted reasoning",
        "Item 'fc_68' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_68'.",
        r"was provided without its required",
        kind="history",
    ),
    row(
        "OpenAI, calls without results",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
        r"must be followed by tool messages|did not have response messages",
        kind="history",
    ),
    row(
        "OpenAI, results without a call",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        r"must be a response to a prece?eding message",
        kind="history",
    ),
    row(
        "OpenAI Responses, calls without results",
        "No tool output found for function call call_1.",
        r"no tool (?:output|call) found for function call",
        kind="history",
    ),
    row(
        "Anthropic, calls without results",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_1. Each `tool_use` block must have a corresponding `tool_result` block.",
        r"tool_use\W{1,3}ids were found without",
        kind="history",
    ),
    row(
        "Anthropic, results without a call",
        "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
        r"unexpected\W{1,3}tool_use_id",
        kind="history",
    ),
    row(
        "Templates with strict alternation",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        r"roles must alternate",
        kind="history",
    ),
)
