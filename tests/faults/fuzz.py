"""A grammar of mutations of real records, and what holds of whatever comes of them.

Run as a program it goes on until it is interrupted: `python -m faults.fuzz [first seed]` in `tests`, with `lib` on the
path. A seed that fails is kept in test_fuzz.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from total_recall.bounds import clamped
from total_recall.dialogue import said
from total_recall.notices import Notices, Unreadable
from total_recall.passages import passages, searched
from total_recall.profile import numbered, profiled
from total_recall.questions import pairs
from total_recall.record import AUTHORSHIPS, CLASSES, ROLES, encoded, packed, unpacked
from total_recall.render import Page, rendered
from total_recall.stores.base import Reference, Store
from total_recall.todos import NoTodoTool, events

from .layouts import LAYOUTS, Laid
from .programs import MOMENT, json_of

Chance = random.Random
Mutation = Callable[[Chance, list[Any]], Any]

ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 7.5, 1e300, 2**53, 2**63, -(2**63), "", " ", "x", "\0", "\ud800", "\u202e\x1b[31m"),
    *(
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"type": "text"},
        [{"type": "text", "text": 7}],
        {"text": {"text": []}},
        "null",
    ),
    *(
        "2026-11-30T21:20:38.123Z",
        "9999-99-99",
        1796073638,
        1796073638123,
        "..",
        "/",
        "a\nb",
        "[]",
        "{",
        '{"a":',
        "\u2028",
    ),
    *("user", "assistant", "tool", "system", "message", "function_call", "tool_use", "tool_result", "compaction"),
]


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"deeper": value}
    return value


def _odd(chance: Chance) -> Any:
    kind = chance.random()
    if kind < 0.9:
        return chance.choice(ODD)
    return deep(chance.choice((3, 200, 300, 900))) if kind < 0.95 else "long " * chance.choice((10, 1000, 60_000))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as (holder, key)."""
    found, waiting = [], [value]
    while waiting:
        here = waiting.pop()
        members = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        for key, member in members:
            found.append((here, key))
            waiting.append(member)
    return found


def _replace(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    holder[key] = _odd(chance)


def _delete(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    del holder[key]


def _wrap(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    value = holder[key]
    holder[key] = chance.choice(([value], {"value": value}, encoded(value).decode()))


def _borrow(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    """Another value of the same key, or of any other, from elsewhere in the session."""
    found = places(chance.choice(others))
    alike = [place for place in found if place[1] == key]
    if found:
        other, name = chance.choice(alike or found)
        holder[key] = orjson.loads(encoded(other[name]))


def _rename(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(("", "type", "id", "content", "text", "x", key + "s", key.upper()))] = holder.pop(key)


def _double(chance: Chance, holder: Any, key: Any, others: list[Any]) -> None:
    if isinstance(holder, list):
        holder.insert(key, holder[key])


IN_RECORDS = (_replace, _replace, _replace, _delete, _delete, _wrap, _borrow, _borrow, _rename, _double)


def _in_bytes(chance: Chance, unit: bytes) -> bytes:
    start = chance.randrange(len(unit) + 1)
    end = min(len(unit), start + chance.choice((0, 1, 1, 2, 20, 400)))
    put = chance.choice(
        (b"", b"", bytes([chance.randrange(256)]), b"\0", b'"', b"}", b"\\", b"\xff", b"{}", b"\r", b"[" * 50)
    )
    return unit[:start] + put + unit[end:]


def mutated(units: list[bytes], chance: Chance, *, whole_file: bool = True) -> list[bytes]:
    """The units after a few mutations; with `whole_file` units may also be lost, doubled, moved and glued."""
    units = list(units)
    for _ in range(chance.randint(1, 8)):
        if not units:
            break
        place = chance.randrange(len(units))
        kind = chance.random()
        if kind < 0.75:
            units[place] = _in_record(units[place], chance, units)
        elif kind < 0.88 or not whole_file:
            units[place] = _in_bytes(chance, units[place])
        elif kind < 0.91:
            del units[place]
        elif kind < 0.94:
            units.insert(chance.randrange(len(units) + 1), units[place])
        elif kind < 0.97:
            units.insert(chance.randrange(len(units)), units.pop(place))
        else:
            units[place : place + 2] = [b"".join(units[place : place + 2])]
    return units


def _in_record(unit: bytes, chance: Chance, units: list[bytes]) -> bytes:
    try:
        value = orjson.loads(unit)
        others = [orjson.loads(other) for other in chance.sample(units, min(3, len(units)))]
    except ValueError:
        return unit
    for _ in range(chance.choice((1, 1, 2, 5))):
        found = places(value)
        if not found:
            break
        # The upper places are what a reader looks at first.
        holder, key = found[min(chance.randrange(len(found)), chance.randrange(len(found)))]
        chance.choice(IN_RECORDS)(chance, holder, key, others)
    return encoded(value) if chance.random() < 0.9 else _ascii(value)


def _ascii(value: Any) -> bytes:
    """As programs in other languages write it: lone surrogates escaped, blanks after colons."""
    import json

    try:
        return json.dumps(value).encode()
    except RecursionError:
        return encoded(value)


# -- what holds ------------------------------------------------------------------------------------------------

KEYS = (
    *("harness", "session_id", "id", "role", "ts", "content", "thinking", "tool_calls", "tool_call_id", "tool_name"),
    *("is_error", "injected", "authorship", "class"),
)


def check_message(message: dict) -> None:
    """A message record has its keys in their order and values of their types."""
    assert tuple(message)[: len(KEYS)] == KEYS, list(message)
    assert isinstance(message["id"], int)
    assert message["role"] in ROLES, message["role"]
    assert message["authorship"] in AUTHORSHIPS
    assert message["class"] in CLASSES, message["class"]
    assert message["ts"] is None or MOMENT.match(message["ts"]), message["ts"]
    assert isinstance(message["content"], str)
    for key in ("thinking", "tool_call_id", "tool_name", "model", "agent", "branch", "trigger"):
        assert message.get(key) is None or isinstance(message[key], str), (key, message[key])
    for key in ("is_error", "injected", "replayed"):
        assert message.get(key) in (None, True, False), (key, message[key])
    for call in message["tool_calls"]:
        assert tuple(call) == ("id", "name", "arguments")
        assert call["id"] is None or isinstance(call["id"], str)
        assert isinstance(call["name"], str)
    for count in (message.get("usage") or {}).values():
        assert isinstance(count, (int, float)), message["usage"]
    line = encoded(message)
    assert b"\n" not in line
    json_of(line)
    clamped(message, 40)
    passages(message)
    searched(message)
    assert b"\x1b" not in b"".join(rendered([line], Page(False, 80, {}, False)))


def check_row(row: dict) -> None:
    for key in ("start_time", "end_time"):
        assert row[key] is None or MOMENT.match(row[key]), row[key]
    for key in ("title", "directory", "parent_session_id", "git_branch", "model", "origin"):
        assert row.get(key) is None or isinstance(row[key], str), (key, row[key])
    for key in ("file_size", "line_count", "user_count", "assistant_count", "tool_count", "child_session_count"):
        assert isinstance(row[key], int), (key, row[key])
        assert row[key] >= 0
    assert row["title"] is None or row["title"].isprintable()
    line = encoded(row)
    list(rendered([line], Page(False, 80, {}, False)))


def check_session(store: Store, session: Reference, chance: Chance) -> None:
    """Everything that is made of a session can be made of it, and agrees with itself."""
    entries, states = [], []
    state: dict = {}
    for entry in store.entries(session, state):
        entries.append(entry)
        states.append(packed(state) if chance.random() < 0.1 else None)
    messages = [message for entry in entries for message in entry.messages]
    for entry in entries:
        line = entry.line()
        assert b"\n" not in line, line[:200]
        json_of(line)
        assert entry.raw_type() in ("tool", "user", "assistant", "thinking", "system")
        assert entry.ts is None or MOMENT.match(entry.ts)
    for message in messages:
        check_message(message)
    ids = [message["id"] for message in messages]
    assert ids == sorted(set(ids)) or session.harness == "opencode", ids

    # Vibe's unified store gives late results for entries that stand in it again: a walk that goes on tells more.
    unified = session.harness == "vibe" and session.key["layout"] == "unified"
    for place, kept in enumerate(states):
        if kept is not None and not unified:
            rest = [m for entry in store.entries(session, unpacked(kept)) for m in entry.messages]
            assert rest == [m for entry in entries[place + 1 :] for m in entry.messages], (
                f"walked on from entry {place}"
            )
    if messages:
        first = chance.choice(ids)
        assert [m["id"] for m in store.messages_from(session, first)] == [i for i in ids if i >= first]
        message = chance.choice(messages)
        ref = message.get("ref")
        # There an entry is known by its id, and what stands in one file again with another text is told by the last.
        if ref and not (unified and sum(other.get("ref") == ref for other in messages) > 1):
            found = store.entry_at(session, {"id": message["id"], **ref})
            texts = [m["content"] for m in found.messages] if found else [message["content"]]
            assert message["content"] in texts, (message["content"][:200], [text[:200] for text in texts])
    list(store.since_compaction(session))
    list(store.marked(store.messages(session), store.branches(session, look=True)))
    list(store.history(session))
    derived(store, messages, entries)


def derived(store: Store, messages: list[dict], entries: list[Any]) -> None:
    """The derived streams take any messages."""
    row = {"harness": store.harness, "session_id": "s", "file_size": 0, "line_count": 0, "start_time": None}
    encoded(profiled(numbered(entries), row | {"end_time": None, "has_tantivy_index": False}, Notices()))
    for pair in pairs(messages, replayed=True):
        assert isinstance(pair["question"], str)
        assert all(isinstance(answer, str) for answer in pair["answers"])
        encoded(pair)
    for hit in said(messages, ["e"]):
        assert isinstance(hit["text"], str)
        encoded(hit)
    try:
        for event in events(messages, store.harness, Notices()):
            assert isinstance(event["todo"], str)
            encoded(event)
    except NoTodoTool:
        pass


def check_store(laid: Laid, chance: Chance) -> None:
    """What holds of every session of a store."""
    store = laid.store()
    sessions = store.sessions()
    assert len({session.session_id for session in sessions}) == len(sessions)
    for session in sessions:
        row = store.row(session, 1796073638.0)
        check_row(row)
        store.parent(session)
        store.resume(row)
        try:
            check_session(store, session, chance)
        except Unreadable:
            pass


def trial(name: str, seed: int, folder: Path) -> None:
    """One layout with one seed's mutations, examined."""
    chance = random.Random(f"{name} {seed}")
    laid = LAYOUTS[name](folder)
    laid.put(mutated(laid.units(), chance, whole_file=laid.lines))
    check_store(laid, chance)


def main() -> None:
    """Try one seed after the other in every layout, and print what fails."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    names = sys.argv[2:] or list(LAYOUTS)
    seen = set()
    while True:
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    trial(name, seed, Path(folder) / "store")
                except Exception as error:
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    key = (where.filename, where.lineno, type(error), name if "fuzz" in where.filename else "")
                    if key not in seen:
                        seen.add(key)
                        sys.stdout.write(f"=== {name} {seed}\n{traceback.format_exc(limit=-4)}\n")
                        sys.stdout.flush()
        seed += 1


if __name__ == "__main__":
    main()
