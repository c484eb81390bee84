"""A worker process that reads, puts and folds one conversation in a chat store it shares.

Run as `python chat_workers.py KIND URL SESSION NAME COUNT MODE`; it prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from llama_index.core.llms import ChatMessage
from llama_index.storage.chat_store.postgres import PostgresChatStore
from llama_index.storage.chat_store.redis import RedisChatStore
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import NullPool

from llama_index_muntin import CompactingMemory
from muntin import count_messages, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("LIMIT", "chat_memory", "work")

LIMIT = 400
"""Tokens of what a worker reads; a hundred messages exceed them."""
_READ_EVERY = 5
"""Puts between two reads."""


@contextlib.contextmanager
def chat_memory(kind: str, url: str, session: str) -> Generator[CompactingMemory]:
    """Open the memory of a conversation in a PostgreSQL or a Redis chat store."""
    if kind == "redis":
        store: Any = RedisChatStore(redis_url=url)
    else:
        # Sessions over engines that keep no connection, which nothing would close.
        plain = create_engine(url.replace("://", "+psycopg://", 1), poolclass=NullPool)
        asynchronous = create_async_engine(url.replace("://", "+asyncpg://", 1), poolclass=NullPool)
        sessions: Any = async_sessionmaker(asynchronous)
        store = PostgresChatStore(sessionmaker(plain), sessions, table_name="chats")
    yield CompactingMemory.from_defaults(token_limit=LIMIT, chat_store=store, session_id=session)
    if kind == "redis":
        store._redis_client.close()


def said(name: str, number: int) -> ChatMessage:
    """Make the message of one put."""
    role = "user" if number % 2 == 0 else "assistant"
    return ChatMessage(role=role, content=f"{name} {number}: order A-{number} is on its way.")


async def work(
    memory: CompactingMemory, name: str, count: int, *, is_async: bool
) -> dict[str, Any]:
    """Put messages one at a time, and read in between."""
    largest = folds = lost = 0
    for number in range(count):
        message = said(name, number)
        if is_async:
            await memory.aput(message)
        else:
            memory.put(message)
        if number % _READ_EVERY:
            continue
        sent = await memory.aget() if is_async else memory.get()
        largest = max(largest, count_messages(sent, counter=estimate_tokens))
        folds += memory.last_outcome is not None and memory.last_outcome.compacted
        every = await memory.aget_all() if is_async else memory.get_all()
        lost += all(one.content != message.content for one in every)
    return {"largest": largest, "folds": folds, "lost": lost}


if __name__ == "__main__":
    given_kind, given_url, given_session, given_name, given_count, mode = sys.argv[1:]
    with chat_memory(given_kind, given_url, given_session) as opened:
        seen = asyncio.run(work(opened, given_name, int(given_count), is_async=mode == "async"))
    sys.stdout.write(json.dumps(seen))
