"""Layout is data: orders, styles, orderings, and which part a prompt cache can keep."""

from __future__ import annotations

import pytest

from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, Layout, PromptRegistry

CONFIG = ContextConfig(
    max_tokens=4000,
    source_ratios={"memory": 1, "rag": 1, "history": 1, "tool": 1, "tickets": 1},
)


def source(name: str, *contents: str) -> CallableSource:
    found = [Candidate(text, 1 - at / 10, id=f"{name}-{at}") for at, text in enumerate(contents)]
    return CallableSource(name, lambda _query: found)


def text(layout: Layout, *sources: CallableSource, system: str = "Be brief.") -> str:
    builder = ContextBuilder(CONFIG, layout=layout)
    return builder.build("why?", sources=list(sources), system_prompt=system)


def test_tags_carry_where_a_passage_is_from_and_content_is_escaped() -> None:
    assert text(Layout.xml(), source("rag", 'a < b & "c"'), source("tickets", "t")) == (
        "Be brief.\n\n"
        '<rag>\n<item id="rag-0" source="rag" score="1">a &lt; b &amp; "c"</item>\n</rag>\n\n'
        '<tickets>\n<item id="tickets-0" source="tickets" score="1">t</item>\n</tickets>\n\n'
        "<question>\nwhy?\n</question>"
    )


def test_a_cache_friendly_layout_puts_what_changes_last() -> None:
    layout = Layout().cache_friendly()
    assert layout.order == ("system", "memory", "history", "rag", "tool", "*", "question")
    built = text(layout, source("rag", "r"), source("history", "h"), source("memory", "m"))
    headings = [line for line in built.splitlines() if line.startswith("[")]
    assert headings == ["[Memory]", "[Conversation history]", "[Knowledge]", "[Current question]"]


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [("selection", "abcde"), ("lost-in-the-middle", "acedb"), ("document", "abcde")],
)
def test_the_order_within_a_section(ordering: str, expected: str) -> None:
    layout = Layout(ordering=ordering)  # pyright: ignore[reportArgumentType] - one of the three
    built = text(layout, source("rag", *"abcde"))
    assert "".join(line[2:] for line in built.splitlines() if line.startswith("- ")) == expected


def test_document_order_is_the_sources_own() -> None:
    found = [Candidate("first page", 0.1), Candidate("second page", 0.9)]
    builder = ContextBuilder(CONFIG, layout=Layout(ordering="document"))
    block = builder.build_block("q", sources=[CallableSource("rag", lambda _q: found)])
    assert block == "[Knowledge]\n- first page\n- second page"


def test_headings_come_from_the_layout_then_the_registry_then_the_name() -> None:
    layout = Layout(headings={"rag": "## Handbook", "question": "## Question"})
    prompts = PromptRegistry("zh")
    builder = ContextBuilder(CONFIG, layout=layout, prompts=prompts)
    built = builder.build(
        "为什么?", sources=[source("rag", "r"), source("memory", "m"), source("tickets", "t")]
    )
    assert built == ("[记忆]\n- m\n\n## Handbook\n- r\n\n[tickets]\n- t\n\n## Question\n为什么?")


def test_the_same_passage_from_two_sources_stands_once_and_says_where_else_it_was() -> None:
    """D-27: the same fact from memory and retrieval was paid for twice."""
    fact = "The deadline for the migration of the billing service is the 14th of March."
    builder = ContextBuilder(CONFIG)
    context = builder.assemble(
        "when?",
        sources=[
            CallableSource("memory", lambda _q: [Candidate(fact, 0.4)]),
            CallableSource("rag", lambda _q: [Candidate(fact, 0.9), Candidate(fact + " ", 0.8)]),
        ],
    )
    assert [c.source for c in context.candidates] == ["rag"]
    assert context.candidates[0].metadata["also_in"] == ("memory",)
    reasons = {(d.source, d.reason, d.nearest) for d in context.report.decisions[:2]}
    kept = next(one.id for one in context.report.decisions if one.source == "rag")
    assert ("memory", "exact_duplicate", kept) in reasons


def test_the_reference_configuration_keeps_sources_apart() -> None:
    fact = "The deadline for the migration is the 14th of March."
    builder = ContextBuilder(ContextConfig.reference(max_tokens=4000))
    sources = [source("memory", fact), source("rag", fact)]
    assert builder.build_block("when?", sources=sources).count(fact) == 2


def test_an_item_is_cut_at_a_sentence_border_on_request() -> None:
    long = "One fact stands here. " * 30
    for shorten in (False, True):
        builder = ContextBuilder(ContextConfig(shorten=shorten, never_empty=False, windows=False))
        context = builder.assemble("q", sources=[source("rag", long.strip())], budget=80)
        kinds = [d.kind for d in context.report.decisions]
        assert kinds == (["shortened"] if shorten else ["dropped"])
        if shorten:
            assert context.candidates[0].content.endswith("here.")
            assert long.startswith(context.candidates[0].content)
            assert context.report.idle < 10


def test_messages_keep_the_roles_apart() -> None:
    builder = ContextBuilder(CONFIG)
    context = builder.assemble("why?", sources=[source("rag", "r")], system_prompt="Be brief.")
    assert [(m.role, m.content) for m in context.messages()] == [
        ("system", "Be brief.\n\n[Knowledge]\n- r"),
        ("user", "why?"),
    ]
    assert [m.role for m in builder.assemble("why?", sources=[]).messages()] == ["user"]


def test_sections_and_candidates_are_there_to_look_at() -> None:
    builder = ContextBuilder(CONFIG)
    context = builder.assemble("why?", sources=[source("rag", "r", "s"), source("memory", "m")])
    assert [section.name for section in context.sections] == ["memory", "rag"]
    assert [c.content for c in context.candidates] == ["m", "r", "s"]
    assert str(context) == context.text
    found = context.candidate_at(context.text.index("- s") + 2)
    assert found is not None
    assert found.content == "s"
    assert context.candidate_at(-1) is None
