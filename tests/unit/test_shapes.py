"""Every provider's messages through one view, and changed copies in their own shape."""

from __future__ import annotations

import base64
import copy
import struct
from typing import Any

import pytest

from muntin.conversations.fit import fit_messages
from muntin.counting.message_counts import count_message
from muntin.errors import ConfigurationError
from muntin.messages.message import Message, ToolCall
from muntin.messages.shapes import MessageView, register_shape, shape_of, view
from muntin.messages.shapes.media import image_size
from muntin.messages.turns import pairing_problems

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
CHAT_CALL = {"role": "assistant", "content": None, "tool_calls": [CALL]}
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a door"}
ANTHROPIC_CALL = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ],
}
ANTHROPIC_RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a door"}],
}
RESPONSES_CALL = {
    "type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":1}'
}  # fmt: skip
RESPONSES_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "a door"}
GEMINI_CALL = {
    "role": "model",
    "parts": [
        {"text": "hm", "thought": True},
        {"text": "I look."},
        {"function_call": {"id": "c1", "name": "look", "args": {"at": 1}}},
    ],
}
GEMINI_RESULT = {
    "role": "user",
    "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"result": "a door"}}}],
}
MESSAGE_CALL = Message("", "assistant", tool_calls=[ToolCall("c1", "look", '{"at":1}')])
MESSAGE_RESULT = Message("a door", "tool", tool_call_id="c1")

ROUNDS = {
    "openai-chat": (CHAT_CALL, CHAT_RESULT),
    "anthropic": (ANTHROPIC_CALL, ANTHROPIC_RESULT),
    "openai-responses": (RESPONSES_CALL, RESPONSES_RESULT),
    "gemini": (GEMINI_CALL, GEMINI_RESULT),
    "message": (MESSAGE_CALL, MESSAGE_RESULT),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_a_tool_round_reads_the_same_in_every_shape(name: str) -> None:
    """If one shape hid its calls, its results would be cut off as orphans."""
    call, result = ROUNDS[name]
    assert shape_of(call).name == shape_of(result).name == name
    assert view(call).role == "assistant"
    assert view(call).calls == (ToolCall("c1", "look", '{"at":1}'),)
    assert view(result).role == "tool"
    assert [(one.call_id, one.text) for one in view(result).results] == [("c1", "a door")]


@pytest.mark.parametrize("name", ROUNDS)
def test_a_result_is_rewritten_without_touching_anything_else(name: str) -> None:
    """A changed input poisons the caller's history; a lost id makes an orphan."""
    _, result = ROUNDS[name]
    before = copy.deepcopy(result)
    shape = shape_of(result)
    short = shape.with_results(result, {"c1": "cut"})
    assert result == before
    assert [(one.call_id, one.text) for one in view(short).results] == [("c1", "cut")]
    assert type(short) is type(result)
    assert shape.with_results(result, {"other": "cut"}) == result


_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 200},
}
_RICH = {
    "openai-chat": {
        **CHAT_RESULT,
        "content": [
            {"type": "text", "text": "a door"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 200}},
        ],
    },
    "anthropic": {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [{"type": "text", "text": "a door"}, _IMAGE],
            }
        ],
    },
    "openai-responses": {
        **RESPONSES_RESULT,
        "output": [
            {"type": "input_text", "text": "a door"},
            {"type": "input_image", "image_url": "data:image/png;base64," + "QUJD" * 200},
        ],
    },
    "message": Message([{"type": "text", "text": "a door"}, _IMAGE], "tool", tool_call_id="c1"),
}


@pytest.mark.parametrize("name", _RICH)
def test_an_image_in_a_result_stays_unless_it_is_told_to_go(name: str) -> None:
    """A picture that goes with a caption that was cut is lost without a mark."""
    result: Any = _RICH[name]
    shape, (read,) = shape_of(result), view(result).results
    assert shape.name == name
    assert [thing.kind for thing in read.media] == ["image"]
    kept = view(shape.with_results(result, {"c1": "cut"}))
    assert [(one.text, one.media) for one in kept.results] == [("cut", read.media)]
    assert kept.media == read.media
    gone = view(shape.with_results(result, {"c1": "cut"}, bare={"c1"}))
    assert [(one.text, one.media) for one in gone.results] == [("cut", ())]
    assert gone.media == ()
    silent = shape.with_results(shape.with_results(result, {"c1": ""}), {"c1": ""})
    assert view(silent).results[0].media == read.media


def test_a_document_of_words_in_a_result_is_its_text() -> None:
    """Kept beside the text that stands for it, it would keep a result from ever being cut."""
    source = {"type": "text", "media_type": "text/plain", "data": "word " * 500}
    block = {"type": "tool_result", "tool_use_id": "c1"}
    result = {
        "role": "user",
        "content": [{**block, "content": [{"type": "document", "source": source}]}],
    }
    cut = shape_of(result).with_results(result, {"c1": "cut"})
    assert cut == {"role": "user", "content": [{**block, "content": "cut"}]}


@pytest.mark.parametrize("name", ROUNDS)
def test_an_answer_answers_its_call_in_its_own_shape(name: str) -> None:
    call, _ = ROUNDS[name]
    made = shape_of(call).answer(view(call).calls[0], "interrupted")
    assert [(one.call_id, one.text) for one in view(made).results] == [("c1", "interrupted")]


def test_a_legacy_function_call_pairs_by_name() -> None:
    """Histories stored years ago still come in."""
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    result = {"role": "function", "name": "f", "content": "42"}
    assert view(call).calls[0].id == view(result).results[0].call_id
    assert shape_of(result).with_results(result, {view(result).results[0].call_id: "4"}) == {
        "role": "function", "name": "f", "content": "4"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "developer", "content": "rules"}, {"role": "system", "text": "rules"}),
        ({"role": "user", "content": "hi", "name": "ann"}, {"role": "user", "name": "ann"}),
        ({"role": "assistant", "content": None, "refusal": "no"}, {"text": "no"}),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}, {"text": "a\nb"}),
        ({"role": "assistant", "content": "", "reasoning_content": "so"}, {"reasoning": "so"}),
        ({"role": "user", "content": None}, {"role": "user", "text": ""}),
        ({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "why"}],
          "encrypted_content": "x"}, {"reasoning": "why", "signed": True, "leads": True}),
        ({"type": "message", "role": "assistant", "id": "m",
          "content": [{"type": "output_text", "text": "yes"}]}, {"text": "yes", "id": "m"}),
    ],
)  # fmt: skip
def test_what_a_message_says_is_read(message: Any, expected: dict[str, Any]) -> None:
    read = view(message)
    assert {key: getattr(read, key) for key in expected} == expected


def test_server_side_tools_stay_inside_their_message() -> None:
    """They are answered in place: waiting for a result would hold the message for ever."""
    message = {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                {"url": "u", "encrypted_content": "Z" * 4000}]},
            {"type": "text", "text": "found"},
        ],
    }  # fmt: skip
    read = view(message)
    assert read.calls == read.results == ()
    assert len(read.server) == 2
    assert "ZZZ" not in "".join(read.server)


def test_calls_that_live_twice_are_read_once() -> None:
    """A framework keeps them in a field and in a block; the provider sees them once."""
    message = {**ANTHROPIC_CALL, "tool_calls": [CALL]}
    assert len(view(message).calls) == 1


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}, "image"),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, "image"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
         "image"),
        ({"type": "document", "source": {"type": "base64", "data": "A" * 400}}, "document"),
        ({"type": "file", "file": {"file_data": "A" * 400, "filename": "a.pdf"}}, "document"),
        ({"type": "input_audio", "input_audio": {"data": "A" * 400, "format": "wav"}}, "audio"),
        ({"type": "video", "base64": "A" * 400, "mime_type": "video/mp4"}, "video"),
    ],
)  # fmt: skip
def test_media_are_recognised_and_never_read_as_text(block: dict[str, Any], kind: str) -> None:
    """Base64 that counts as text makes one picture look like a million tokens."""
    read = view({"role": "user", "content": [{"type": "text", "text": "see"}, block]})
    assert [thing.kind for thing in read.media] == [kind]
    assert read.text == "see"
    assert read.unknown == ()


def test_a_document_that_is_text_is_read_as_text() -> None:
    block = {"type": "document", "title": "T", "source": {"type": "text", "data": "body"}}
    assert view({"role": "user", "content": [block]}).text == "T\nbody"


def test_an_unknown_block_is_kept_for_counting() -> None:
    block = {"type": "hologram", "b": 1, "a": "x", "payload": "QUJD" * 300}
    read = view({"role": "user", "content": [block]})
    assert read.unknown == (("hologram", '{"a":"x","b":1,"payload":"(base64)","type":"hologram"}'),)
    assert read.media[0].size == 900


def _png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"\x00" * 16).decode()


def _jpeg(width: int, height: int) -> str:
    preview = b"\xff\xe1" + struct.pack(">H", 2000) + b"\x00" * 1998
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\x00" * 20
    return base64.b64encode(b"\xff\xd8" + preview + frame).decode()


def _gif(width: int, height: int) -> str:
    return base64.b64encode(b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 9).decode()


@pytest.mark.parametrize("write", [_png, _jpeg, _gif])
def test_pixels_are_read_from_the_header(write: Any) -> None:
    assert image_size(write(640, 480)) == (640, 480)


@pytest.mark.parametrize("data", ["", "AAAA", "not base64 at all!", "iVBORw0KGgo="])
def test_a_broken_image_has_no_size_and_no_error(data: str) -> None:
    assert image_size(data) is None


def test_with_text_keeps_pictures_and_calls() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    message = {"role": "user", "content": [picture, {"type": "text", "text": "old"}], "name": "n"}
    changed = shape_of(message).with_text(message, "new")
    assert changed == {**message, "content": [picture, {"type": "text", "text": "new"}]}


def test_an_unknown_type_is_named_with_what_to_do() -> None:
    """An error without a remedy sends people into the debugger."""

    class Strange:
        pass

    with pytest.raises(ConfigurationError, match=r"Strange.*register_shape"):
        shape_of(Strange())
    with pytest.raises(ConfigurationError, match="'role'"):
        shape_of({"text": "no role"})


def test_a_registered_shape_is_used() -> None:
    class Letter:
        body = "dear"

    class LetterShape:
        name = "letter"

        def reads(self, message: Any) -> bool:
            return isinstance(message, Letter)

        def parts(self, message: Any) -> Any:
            return message.body

        def view(self, message: Any) -> MessageView:
            return MessageView(role="user", text=message.body)

        def with_text(self, message: Any, text: str) -> Any:
            return message

        def with_results(self, message: Any, texts: Any, *, bare: Any = ()) -> Any:
            return message

        def note(self, text: str, role: Any) -> Any:
            return Letter()

        def answer(self, call: ToolCall, text: str) -> Any:
            return Letter()

    register_shape(LetterShape())
    assert view(Letter()).text == "dear"


def test_ids_are_text_on_both_sides_whatever_they_are_written_as() -> None:
    """Some frameworks number their calls; a result must still find the call it answers."""
    for identifier in (0, 1, 1.5, "1"):
        call = {"id": identifier, "function": {"name": "look", "arguments": "{}"}}
        asked = view({"role": "assistant", "content": None, "tool_calls": [call]})
        answered = view({"role": "tool", "tool_call_id": identifier, "content": "a door"})
        assert answered.results[0].call_id == asked.calls[0].id == str(identifier)


@pytest.mark.parametrize("odd", [1, None, True, "look", ["look", 1]])
def test_a_call_that_says_nothing_about_itself_is_still_charged(odd: Any) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [odd]}
    assert view(message).calls[0].arguments
    assert count_message(message) > count_message({"role": "assistant", "content": None})
    assert fit_messages([message, {"role": "user", "content": "hi"}], budget=100).messages


def _gemini(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def test_calls_of_gemini_without_ids_are_answered_by_name_and_order() -> None:
    """The service gives no ids, and two calls of one function are two calls."""
    calls = _gemini(
        "model", *({"function_call": {"name": "look", "args": {"n": n}}} for n in (1, 2))
    )
    answers = [
        {"function_response": {"name": "look", "response": {"output": f"room {n}"}}} for n in (1, 2)
    ]
    result = _gemini("user", *answers)
    asked, answered = view(calls), view(result)
    assert [call.id for call in asked.calls] == [one.call_id for one in answered.results]
    second = asked.calls[1].id
    cut = shape_of(result).with_results(result, {second: "cut"})
    assert [one.text for one in view(cut).results] == ["room 1", "cut"]
    assert cut["parts"][1]["function_response"]["response"] == {"output": "cut"}
    assert shape_of(result).with_results(result, {second: None})["parts"] == answers[:1]
    made = shape_of(calls).answer(asked.calls[0], "interrupted")
    assert "id" not in made["parts"][0]["function_response"]


def test_every_part_of_gemini_is_charged() -> None:
    """What is not read is still sent."""
    pixel = {"inline_data": {"mime_type": "image/png", "data": "A" * 400}}
    file = {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://bucket/q3.pdf"}}
    said = view(_gemini("user", {"text": "see"}, pixel, file))
    assert (said.role, said.text) == ("user", "see")
    assert [(one.kind, one.size) for one in said.media] == [("image", 300), ("document", None)]
    failed = _gemini("user", {"functionResponse": {"name": "f", "response": {"error": "gone"}}})
    assert view(failed).results[0].is_error
    other = _gemini("user", {"function_response": {"name": "f", "response": {"rows": [1, 2]}}})
    assert view(other).results[0].text == '{"rows":[1,2]}'
    code = _gemini("model", {"executable_code": {"code": "print(1)" * 50}})
    with pytest.warns(UserWarning, match="executable_code"):
        assert count_message(code) > 100


def test_a_conversation_of_gemini_is_fitted_in_its_own_shape() -> None:
    history: list[Any] = [_gemini("user", {"text": "Find order A-77."})]
    for at in range(30):
        answer = {"name": "find", "response": {"result": f"row {at} " * 60}}
        history += [
            _gemini("model", {"function_call": {"name": "find", "args": {"page": at}}}),
            _gemini("user", {"function_response": answer}),
        ]
    history.append(_gemini("user", {"text": "And where is it?"}))
    fitted = fit_messages(history, budget=800)
    assert fitted.report.used <= 800
    assert fitted.messages[-1] == history[-1]
    assert all(set(message) == {"role", "parts"} for message in fitted.messages)
    assert not pairing_problems([view(message) for message in fitted.messages])
