"""Messages of every provider and framework: one neutral view, turns, repair.

It decides how a message is read, which calls and results belong together, and how broken pairs are
repaired. It does not count tokens; it imports `errors`, `prompts` and `text`.
"""

from __future__ import annotations

from muntin.messages.blanks import is_blank, without_blanks
from muntin.messages.bound import (
    Unsigned,
    binds,
    bound_places,
    checks_prefix,
    first_change,
    holds_bound,
    reads,
    unreadable_places,
    without_signed_thinking,
)
from muntin.messages.compacted import (
    Compacted,
    compaction_alone,
    from_compaction,
    newest_compaction,
    opening,
)
from muntin.messages.encodable import cleaned
from muntin.messages.framework_messages import (
    is_framework_text,
    register_framework_messages,
)
from muntin.messages.marks import cache_marks, keep_cache_marks
from muntin.messages.message import UNNAMED, Block, Message, Role, ToolCall
from muntin.messages.repair import Mended, needs_repair, repair
from muntin.messages.result_order import straight_order
from muntin.messages.roles import (
    AS_THEY_ARE,
    RoleRules,
    alternating,
    arrange_roles,
    must_alternate,
    role_rules,
)
from muntin.messages.shapes import (
    MessageShape,
    MessageView,
    ToolResult,
    register_shape,
    shape_of,
    view,
)
from muntin.messages.shapes.blocks import (
    BlockReader,
    as_block,
    canonical_json,
    replace_result,
    replace_text,
    without_text,
)
from muntin.messages.shapes.frameworks.pydantic_ai import PYDANTIC_AI
from muntin.messages.shapes.frameworks.vercel import VERCEL
from muntin.messages.shapes.media import media_of
from muntin.messages.shapes.neutral import MESSAGE
from muntin.messages.shapes.providers.anthropic import ANTHROPIC
from muntin.messages.shapes.providers.gemini import GEMINI
from muntin.messages.shapes.providers.openai_chat import OPENAI_CHAT, role_of
from muntin.messages.shapes.providers.openai_responses import OPENAI_RESPONSES
from muntin.messages.shapes.views import Media, MediaKind
from muntin.messages.turns import (
    Division,
    Unit,
    cut_points,
    divide,
    in_flight,
    leading_system,
    newest_user,
    pairing_problems,
    units,
)

__all__ = (
    "ANTHROPIC",
    "AS_THEY_ARE",
    "GEMINI",
    "MESSAGE",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "PYDANTIC_AI",
    "UNNAMED",
    "VERCEL",
    "Block",
    "BlockReader",
    "Compacted",
    "Division",
    "Media",
    "MediaKind",
    "Mended",
    "Message",
    "MessageShape",
    "MessageView",
    "Role",
    "RoleRules",
    "ToolCall",
    "ToolResult",
    "Unit",
    "Unsigned",
    "alternating",
    "arrange_roles",
    "as_block",
    "binds",
    "bound_places",
    "cache_marks",
    "canonical_json",
    "checks_prefix",
    "cleaned",
    "compaction_alone",
    "cut_points",
    "divide",
    "first_change",
    "from_compaction",
    "holds_bound",
    "in_flight",
    "is_blank",
    "is_framework_text",
    "keep_cache_marks",
    "leading_system",
    "media_of",
    "must_alternate",
    "needs_repair",
    "newest_compaction",
    "newest_user",
    "opening",
    "pairing_problems",
    "reads",
    "register_framework_messages",
    "register_shape",
    "repair",
    "replace_result",
    "replace_text",
    "role_of",
    "role_rules",
    "shape_of",
    "straight_order",
    "units",
    "unreadable_places",
    "view",
    "without_blanks",
    "without_signed_thinking",
    "without_text",
)
