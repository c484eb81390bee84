"""`muntin trim` and `muntin compact`: conversations in every form, and where the result goes."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from muntin import count_messages, estimate_tokens
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from pathlib import Path

    from cli_runs import Muntin

BOTH = pytest.mark.parametrize(
    "command", [["trim", "--budget", "1200"], ["compact", "--trigger", "800", "--summary", "300"]],
    ids=["trim", "compact"],
)  # fmt: skip


def _paired(messages: list[dict[str, Any]]) -> bool:
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return calls == results


@BOTH
def test_the_result_has_the_form_of_the_file_and_is_smaller(
    command: list[str], muntin: Muntin, chat_file: Path, chat: list[dict[str, Any]]
) -> None:
    """Whoever pipes the result into a request needs messages, whole rounds, and the question."""
    ended = muntin(*command, chat_file)
    messages = json.loads(ended.out)

    assert ended.code == 0
    assert messages[0] == chat[0]
    assert messages[-1] == chat[-1]
    assert _paired(messages)
    assert count_messages(messages, counter=estimate_tokens) <= 1200
    assert "conversation:" in ended.err


@BOTH
def test_the_file_itself_is_only_changed_by_write(
    command: list[str], muntin: Muntin, chat_file: Path
) -> None:
    """A command that shortens by default would eat the only copy of a conversation."""
    before = chat_file.read_bytes()
    to_stdout = muntin(*command, chat_file).out
    assert chat_file.read_bytes() == before

    chat_file.chmod(0o640)
    ended = muntin(*command, chat_file, "--write")

    assert ended.out == ""
    assert chat_file.read_text("utf-8") == to_stdout
    assert chat_file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in chat_file.parent.iterdir()] == ["chat.json"]


@BOTH
@pytest.mark.parametrize(
    "extra", [["--output", "x.json"], ["--record", "1"]], ids=["output", "record"]
)
def test_targets_that_contradict_each_other_are_refused_before_any_work(
    command: list[str], extra: list[str], muntin: Muntin, chat_file: Path
) -> None:
    """Guessing which of two targets was meant overwrites the wrong one half of the time."""
    before = chat_file.read_bytes()
    ended = muntin(*command, chat_file, "--write", *extra)

    assert ended.code == 2
    assert "--output" in ended.err
    assert chat_file.read_bytes() == before


@BOTH
def test_stdin_is_asked_for_once(command: list[str], muntin: Muntin) -> None:
    """Whatever reads second gets nothing, and the question would be silently empty."""
    ended = muntin(*command, "-", "--question", "-", stdin="[]")

    assert ended.code == 2
    assert "only one of FILE and --question can be stdin" in ended.err


@BOTH
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "stdin is empty: give a conversation as JSON"),
        ("{", "stdin is not JSON: "),
        ('{"role": "user", "content": "Hi"}\n{"role"', "stdin, line 2 is not JSON, though line 1"),
        ('[{"role": "user", "content": "Hi"}]', "there is no conversation 2: the file holds 1 con"),
    ],
    ids=["empty", "torn", "torn line", "no such record"],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(
    content: str, said: str, command: list[str], muntin: Muntin
) -> None:
    """One torn line of ten thousand is found by its number, or not at all."""
    ended = muntin(*command, "-", "--record", "2", stdin=content)

    assert ended.code == 2
    assert ended.err.startswith(f"muntin: {said}")


def test_the_style_of_the_file_is_kept(
    muntin: Muntin, tmp_path: Path, chat: list[dict[str, Any]]
) -> None:
    """A diff of a trimmed file should show what was trimmed, not another indentation."""
    chat[-1]["content"] = "Und die nächste? 漢字"
    for indent in (None, 1, 4, "\t"):
        path = tmp_path / "chat.json"
        path.write_text(json.dumps(chat, indent=indent, ensure_ascii=False), encoding="utf-8")
        out = muntin("trim", path, "--budget", "100k", "--quiet").out
        assert out.rstrip("\n") == path.read_text("utf-8")


def test_a_conversation_that_fits_comes_back_unchanged(muntin: Muntin, chat_file: Path) -> None:
    """Trimming twice must not lose more than trimming once."""
    once = muntin("trim", chat_file, "-b", "1500").out
    twice = muntin("trim", "-", "-b", "1500", stdin=once).out

    assert json.loads(twice) == json.loads(once)


def test_what_must_be_kept_and_does_not_fit_is_exit_code_3_with_every_part(
    muntin: Muntin, chat_file: Path, tmp_path: Path
) -> None:
    """A script has to tell "too small" from "wrong usage"; a person needs the parts."""
    ended = muntin("trim", chat_file, "-b", "10", "-o", "out.json")

    assert ended.code == 3
    assert "raise the budget by" in ended.err
    assert "newest user message" in ended.err
    assert not (tmp_path / "out.json").exists()


def test_the_newest_messages_stay_on_request(
    muntin: Muntin, chat_file: Path, chat: list[dict[str, Any]]
) -> None:
    """Whoever asks for the last eight messages gets exactly them."""
    messages = json.loads(muntin("trim", chat_file, "-b", "1000", "--keep", "8").out)

    assert messages[-8:] == chat[-8:]
    assert muntin("trim", chat_file, "-b", "1000", "--keep", "60").code == 3


def test_the_question_brings_older_messages_back(muntin: Muntin, chat_file: Path) -> None:
    """An answer that was given long ago is the reason to name a question at all."""
    arguments = ("trim", chat_file, "-b", "1000", "--quiet")
    asked = muntin(*arguments, "--question", "order A-3 and house 3").out

    assert "Where is order A-3?" in asked
    assert "Where is order A-3?" not in muntin(*arguments).out


def test_tool_schemas_are_charged(muntin: Muntin, chat_file: Path, tmp_path: Path) -> None:
    """Schemas travel with every request; a budget that forgets them overruns."""
    tool = {"type": "function", "function": {"name": "find", "description": "Find. " * 100}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    ended = muntin("trim", chat_file, "-b", "1200", "--tools", tmp_path / "tools.json", "--json")
    report = ended.json["conversations"][0]["report"]

    assert report["fixed"]["tools"] > 100
    assert report["used"] <= 1200
    assert count_messages(ended.json["result"], [tool], counter=estimate_tokens) == report["used"]


@pytest.mark.parametrize("content", ["[1]", "{}", '{"name": 1}', "null"])
def test_a_file_of_other_tools_is_refused(
    content: str, muntin: Muntin, chat_file: Path, tmp_path: Path
) -> None:
    """Schemas that are none would be counted as nothing."""
    (tmp_path / "tools.json").write_text(content)
    ended = muntin("trim", chat_file, "-b", "8k", "--tools", tmp_path / "tools.json")

    assert ended.code == 2
    assert "tool schemas" in ended.err


def test_json_holds_the_result_and_the_report(muntin: Muntin, chat_file: Path) -> None:
    """With `--json` everything a program needs is in one object on stdout, and nothing else."""
    ended = muntin("trim", chat_file, "-b", "1200", "--json")
    told = ended.json

    assert ended.err == ""
    assert set(told) == {"output", "result", "conversations"}
    one = told["conversations"][0]
    assert (one["form"], one["messages_before"]) == ("openai", 122)
    assert one["messages_after"] == len(told["result"])
    assert one["report"]["format"] == "muntin.report/1"


def test_reports_are_written_for_explain_and_as_a_page(
    muntin: Muntin, chat_file: Path, tmp_path: Path
) -> None:
    """The report is why one can trust a shortened conversation."""
    for command in (["trim", "-b", "1200"], ["compact"]):
        ended = muntin(*command, chat_file, "--report", "r.json", "--html", "r.html", "--quiet")

        assert ended.code == 0
        assert muntin("explain", "r.json").out.startswith("conversation: ")
        assert "<html" in (tmp_path / "r.html").read_text("utf-8")


def test_a_file_of_many_conversations_is_trimmed_line_by_line(
    muntin: Muntin, tmp_path: Path, chat: list[dict[str, Any]]
) -> None:
    """Training and log files hold a conversation a line; what stands beside them stays."""
    lines = [{"id": f"talk-{n}", "messages": chat[: 9 + n * 28], "score": n} for n in range(4)]
    path = tmp_path / "talks.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(one)}\n" for one in lines).encode()))
    ended = muntin("trim", path, "-b", "1200", "-o", "out.jsonl.gz", "--report", "r.jsonl")
    out = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).decode().splitlines()
    found = [json.loads(line) for line in out]

    assert [(one["id"], one["score"]) for one in found] == [(f"talk-{n}", n) for n in range(4)]
    assert all(_paired(one["messages"]) for one in found)
    assert "4 conversations" in ended.err
    assert muntin("explain", "r.jsonl").out.count("conversation: ") == 4
    one = muntin("trim", path, "-b", "1200", "--record", "2", "--quiet").out
    assert json.loads(one) == found[1]
    assert muntin("trim", path, "-b", "1200", "--record", "5").code == 2
    assert muntin("trim", path, "-b", "1200", "--html", "x.html").code == 2


def test_a_message_a_line_is_one_conversation(muntin: Muntin, chat: list[dict[str, Any]]) -> None:
    """Logs append a message a line; they must not be taken for as many conversations."""
    lines = "".join(f"{json.dumps(message)}\n" for message in chat)
    out = muntin("trim", "-b", "1200", "--quiet", stdin=lines).out.splitlines()
    messages = [json.loads(line) for line in out]

    assert 3 < len(messages) < len(chat)
    assert messages[-1] == chat[-1]


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", 2, "is empty"),
        (b"not json", 2, "is not JSON"),
        (b'{"role": "user"}', 2, "holds no conversation"),
        (b'[{"role": "user", "content": "a"}, 7]', 2, "holds no conversation"),
        (b"[]", 2, "holds no conversation"),
        (b'{"a": 1}\n{"b"', 2, "line 2"),
        ("[{}]".encode("utf-16"), 2, "not UTF-8"),
        (b"\x1f\x8b\x08torn", 4, "damaged gzip"),
    ],
)
def test_a_file_that_holds_no_conversation_says_so_in_one_line(
    content: bytes, code: int, said: str, muntin: Muntin, tmp_path: Path
) -> None:
    """The file somebody really has is the wrong one now and then."""
    (tmp_path / "x.json").write_bytes(content)
    for command in (["trim", "-b", "8k"], ["compact"], ["count", "--chat"]):
        ended = muntin(*command, "x.json")

        assert ended.code == code
        assert said in ended.err
        assert ended.err.count("\n") == 1


def test_a_file_that_is_not_there_or_a_folder_is_said_plainly(
    muntin: Muntin, tmp_path: Path
) -> None:
    """The most frequent mistake of all."""
    missing = muntin("trim", "gone.json", "-b", "8k")
    folder = muntin("trim", tmp_path, "-b", "8k")

    assert (missing.code, folder.code) == (4, 2)
    assert "gone.json is not there" in missing.err
    assert "is a folder" in folder.err


def test_lone_surrogates_are_written_as_valid_json(
    muntin: Muntin, chat: list[dict[str, Any]]
) -> None:
    """Half a character, legal in a JSON escape, must not end the run or the next program."""
    chat[1]["content"] += " \ud83d"
    chat[2]["tool_calls"][0]["function"]["name"] += "\udc00"
    for budget in ("100k", "1200"):
        ended = muntin("trim", "-b", budget, stdin=json.dumps(chat))

        assert ended.code == 0
        json.loads(ended.out.encode("utf-8").decode("utf-8"))


def test_the_error_survives_with_its_type() -> None:
    """Whoever catches the error of the library finds the figures in it."""
    error = ContextWindowExceeded("the messages", needed=3, available=2)

    assert (error.needed, error.available) == (3, 2)


def test_compaction_says_why_it_left_a_conversation_alone(muntin: Muntin, chat_file: Path) -> None:
    """Nothing shorter came out: the reader wants to know whether that is right."""
    ended = muntin("compact", chat_file, "--trigger", "100k")

    assert ended.code == 0
    assert "under trigger" in ended.err


def test_a_conversation_of_which_nothing_is_left_is_not_written(
    muntin: Muntin, tmp_path: Path
) -> None:
    """A file without a message is not a file of its form any more, and everything would be lost."""
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "gone"} for n in range(20)]
    (tmp_path / "x.json").write_text(json.dumps(results))
    ended = muntin("trim", "x.json", "--budget", "60", "--output", "out.json")

    assert ended.code == 3
    assert "nothing of the conversation fits" in ended.err
    assert not (tmp_path / "out.json").exists()
