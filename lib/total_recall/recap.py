"""tr-recap: where the work of a session stands since its last compaction, in the order in which a model reads.

Facts first, each with the number of its record; then what a model made of them, if one was asked; then what to do, and
a warning. What sessions recorded is text from strangers: it is put on one line, or quoted, and cannot make a heading.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import Template
from time import monotonic
from typing import NamedTuple

from . import prompts
from .calls import answered
from .git import events
from .notices import Notices
from .output import encoded
from .prompts import Goals, Prompt, Verbatim, is_typed
from .record import Record
from .redact import redacted
from .stores.base import Entry
from .stores.tools import TOOLS, kind_of
from .terminal import flat
from .times import epoch, from_epoch
from .todos import History, is_todo

MAX_ROWS = 200
_LISTED = 100  # todo items, git events
_PLANS = 50  # files of one folder
_STEERS = 5
_POINTS = 5
_CLOSED = ("completed", "cancelled", "canceled", "done", "removed")

Ask = Callable[[Sequence[tuple[str, str]]], list[str]]


class Sources(NamedTuple):
    """What a recap is made of.

    `row` is the session's, `recent` are the rows of the window of `hours`, most recent first. `messages` starts the
    messages since the last compaction, `entries` the stored records of the whole session. `folders` are where plan
    files are looked for (see `plan_folders`).
    """

    row: Record
    recent: Sequence[Record]
    hours: float
    messages: Callable[[], Iterable[Record]]
    entries: Callable[[], Iterable[Entry]]
    folders: Sequence[str]
    notices: Notices


def recap(
    sources: Sources,
    now: float,
    ask: Ask | None = None,
    model: str | None = None,
    clock: Callable[[], float] = monotonic,
) -> str:
    """The whole text. `ask` puts both questions to the model called `model`; None leaves that part out."""
    moments = [clock()]
    period, session = _Period(), _Session(str(sources.row["harness"]), sources.notices)
    noted = period.noted(sources.messages())
    questions = [prompts.state(noted)] if ask else []
    deque(noted, maxlen=0)
    session.read(sources.entries())
    questions += [session.goals.prompt()] if ask else []
    moments.append(clock())
    state, goals = _answers(questions, ask)
    moments.append(clock())
    git = [event for event in session.git if period.holds(event)]
    said_last = session.verbatim.section("### What the person typed last, verbatim")
    sections = {
        "Recent sessions": _recent(sources),
        "Plan and todo files": _plans(sources.folders),
        "Todo log": _todos(session.todos, period, session.harness),
        "Commits": _commits(git),
        "Current state": state,
        "Goals, tasks, steers": f"{goals}\n\n{said_last}",
        "Compaction points": _points(session.points(), period),
        "Instructions": _fixed("instructions", sources.row),
        "Before you trust this": _fixed("warning", sources.row),
    }
    moments.append(clock())
    facts = {
        **{key: sources.row[key] for key in ("session_id", "harness")},
        "made": from_epoch(now),
        "seconds": _seconds(*moments),
        "hours": sources.hours,
        "recent_sessions": len(sources.recent),
        "recent_rows": min(len(sources.recent), MAX_ROWS),
        "first_id": period.first_id,
        "records": period.count,
        "user_messages": period.typed,
        "todo_events": None if session.todos is None else sum(map(period.holds, session.todos)),
        "git_events": len(git),
        "model": model if ask else None,
        **_figures(questions),
    }
    comment = encoded(facts).decode().replace("<", "\\u003c").replace(">", "\\u003e")
    body = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in sections.items())
    return f"<!-- {comment} -->\n\n{body}\n"


def _answers(questions: Sequence[Prompt], ask: Ask | None) -> list[str]:
    if ask is None:
        return ["Left out: no model was asked (--no-llm). Everything else here is read off the store."] * 2
    worth = [(prompt.system, prompt.user) for prompt in questions if not prompt.empty]
    answers = iter(ask(worth) if worth else ())
    return ["Nothing is recorded to ask about." if prompt.empty else _nested(next(answers)) for prompt in questions]


def _seconds(started: float, read: float, asked: float, ended: float) -> dict[str, float]:
    spans = {"total": ended - started, "reading": read - started, "model": asked - read}
    return {key: round(value, 3) for key, value in spans.items()}


def _figures(questions: Sequence[Prompt]) -> Record:
    """`state_prompt_bytes` and the like; null where nobody was asked."""
    names = ("bytes", "records", "dropped_records", "dropped_bytes")
    pairs = zip(("state", "goals"), questions or (None, None), strict=True)
    return {f"{kind}_prompt_{name}": prompt and getattr(prompt, name) for kind, prompt in pairs for name in names}


class _Period:
    """The stretch that is recapped: counted, and its prompts remembered, as its messages pass."""

    def __init__(self) -> None:
        self.first_id: int | None = None
        self.first_ts: str | None = None
        self.count = self.typed = 0
        self.prompts: deque[Record] = deque(maxlen=1000)  # id, ts and the beginning of the text

    def noted(self, messages: Iterable[Record]) -> Iterator[Record]:
        for message in messages:
            if self.first_id is None:
                self.first_id = message["id"]
            self.first_ts = self.first_ts or message["ts"]
            self.count += 1
            if is_typed(message):
                self.typed += 1
                self.prompts.append({"id": message["id"], "ts": message["ts"], "text": message["content"][:2000]})
            yield message

    def holds(self, event: Record) -> bool:
        """Whether an event of the session is of this stretch."""
        return self.first_id is not None and event["id"] >= self.first_id

    def prompt_before(self, record_id: int) -> Record | None:
        """What the person said last before a record."""
        return next((prompt for prompt in reversed(self.prompts) if prompt["id"] < record_id), None)


class _Session:
    """The whole session, in one pass: prompts, todo events (None: no todo tool), git events, compactions."""

    def __init__(self, harness: str, notices: Notices) -> None:
        self.harness = harness
        self.goals, self.verbatim = Goals(), Verbatim()
        self.todos: list[Record] | None = [] if any(is_todo(harness, name) for name in TOOLS.get(harness, ())) else None
        self.git: list[Record] = []
        self._history = History(notices)
        self._points: deque[Record] = deque(maxlen=_POINTS)
        self._records = self._lines = 0

    def read(self, entries: Iterable[Entry]) -> None:
        messages = self.goals.noted(self.verbatim.noted(self._counted(entries)))
        for call in answered(messages, lambda harness, name: kind_of(harness, name) in ("todo", "shell")):
            if self.todos is not None and is_todo(self.harness, call.name):
                self.todos += self._history.edits(call)
            if not call.record.get("replayed"):
                place = {key: call.record[key] for key in ("id", "ts")}
                self.git += [{"event_type": event.type, "summary": event.summary} | place for event in events(call)]

    def _counted(self, entries: Iterable[Entry]) -> Iterator[Record]:
        for entry in entries:
            self._lines += 1
            for message in entry.messages:
                self._records += 1
                if message["class"] == "compaction":
                    place = {key: message[key] for key in ("id", "ts")}
                    self._points.append(place | {"records": self._records, "lines": self._lines})
                yield message

    def points(self) -> list[Record]:
        """The last compactions: `id`, `ts`, and the `records` and `lines` (stored records) since each."""
        return [
            point | {"records": self._records - point["records"], "lines": self._lines - point["lines"]}
            for point in self._points
        ]


# -- text from sessions and models -----------------------------------------------------------------------------

_SPECIAL = re.compile(r"[\\`*{}\[\]<>|~]|(?<!\w)_|_(?!\w)")
_HEADING = re.compile(r"^ {0,3}#{1,2}(?=\s|$)", re.MULTILINE)
_UNDERLINE = re.compile(r"^(?= {0,3}(?:=+|-+)[ \t]*$)", re.MULTILINE)


def _inline(value: object, width: int = 200) -> str:
    """A value on one line, as Markdown that shows it as it is; without credentials."""
    text = redacted(flat(value))
    text = text if len(text) <= width else text[: width - 1] + "…"
    return _SPECIAL.sub(r"\\\g<0>", text)


def _nested(text: str) -> str:
    """A model's text, its headings below ours and its comments visible."""
    text = _HEADING.sub("###", text.replace("<!--", "&lt;!--"))
    return _UNDERLINE.sub(r"\\", text)


def _at(record: Record) -> str:
    return f"{record['ts']} (#{record['id']})" if record["ts"] else f"(#{record['id']})"


def _fixed(name: str, row: Record) -> str:
    session = shlex.quote(flat(row["session_id"]))
    return Template(prompts.wording(name)).substitute(session=session, harness=flat(row["harness"]))


# -- sections --------------------------------------------------------------------------------------------------


def _recent(sources: Sources) -> str:
    window = f"in the last {sources.hours:g} hours" if sources.hours else "in the stores"
    if not sources.recent:
        return f"No session was active {window}."
    lines = [
        "| Session | Title | Ended | Size | Lines | User | Assistant | Tool | Compaction | Note |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sources.recent[:MAX_ROWS]:
        cells = [_inline(row["session_id"]), _inline(row["title"], 80), row["end_time"] or "-", _size(row["file_size"])]
        cells += [str(row[key]) for key in ("line_count", "user_count", "assistant_count", "tool_count")]
        cells += ["yes" if row["has_compaction"] else "no", _note(row, sources.row)]
        lines.append(f"| {' | '.join(cells)} |")
    if (older := len(sources.recent) - MAX_ROWS) > 0:
        lines.append(f"\n{older} older sessions of this window are not listed.")
    if not any(_same(row, sources.row) for row in sources.recent):
        lines.append(f"\nThis session, {_inline(sources.row['session_id'])}, was not active {window}.")
    return "\n".join(lines)


def _same(row: Record, other: Record) -> bool:
    return (row["harness"], row["session_id"]) == (other["harness"], other["session_id"])


def _note(row: Record, summarised: Record) -> str:
    words = ["SUMMARISED"] if _same(row, summarised) else []
    words += [f"unreadable: {_inline(row['read_error'], 80)}"] if row.get("read_error") else []
    return ", ".join(words) or "-"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{-(-count // 1000)} kB"


def plan_folders(directory: str | None, environ: Mapping[str, str]) -> list[str]:
    """Where plan and todo files are looked for: in the session's own directory, and in the harnesses' folders."""
    home = environ.get("HOME", "")
    vibe = environ.get("VIBE_HOME", "").strip() or (os.path.join(home, ".vibe") if home else "")
    claude = environ.get("CLAUDE_CONFIG_DIR", "").strip() or (os.path.join(home, ".claude") if home else "")
    own = [os.path.join(directory, ".tmp", "delegation")] if directory and os.path.isabs(directory) else []
    return own + [os.path.join(root, "plans") for root in (vibe, claude) if root]


def _plans(folders: Sequence[str]) -> str:
    lines = []
    for folder in folders:
        files, trouble = _plan_files(folder)
        if trouble:
            lines.append(f"- {_inline(folder, 1000)} cannot be read: {trouble}")
        for path, size, seconds in files[:_PLANS]:
            lines.append(f"- {_inline(path, 1000)} ({size} bytes, {from_epoch(seconds) or 'at an unknown time'})")
        if len(files) > _PLANS:
            lines.append(f"- {len(files) - _PLANS} older files in {_inline(folder, 1000)} are not listed")
    return (
        "\n".join(lines) or f"None in {', '.join(_inline(folder, 1000) for folder in folders) or 'any known folder'}."
    )


def _plan_files(folder: str) -> tuple[list[tuple[str, int, float]], str | None]:
    """(path, bytes, time) of the Markdown files in a folder, newest first; and why it cannot be read."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return [], None
    except OSError as error:
        return [], error.strerror or type(error).__name__
    files = []
    for path in (os.path.join(folder, name) for name in names if name.endswith(".md")):
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            files.append((path, found.st_size, found.st_mtime))
    return sorted(files, key=lambda file: -file[2]), None


def _todos(events: Sequence[Record] | None, period: _Period, harness: str) -> str:
    if events is None:
        return (
            f"{_inline(harness)} keeps no todo list that can be read, so there is no todo log."
            " That is neither a failure nor an empty list."
        )
    items: dict[str, list[Record]] = {}
    for event in events:
        items.setdefault(event.get("item") or event["todo"], []).append(event)
    touched = [log for log in items.values() if period.holds(log[-1])]
    if not touched:
        return "No todo item changed in this period."
    touched.sort(key=lambda log: log[-1]["id"])
    opened = [event for log in touched for event in log if event["action"] == "added" and period.holds(event)]
    closed = sum(period.holds(event) for log in touched for event in _closings(log))
    still = sum(_state(log[-1]) not in _CLOSED for log in touched)
    lines = [f"{len(opened)} opened, {closed} closed, {still} of these open at the end."]
    if len(touched) > _LISTED:
        lines[0] += f" The {len(touched) - _LISTED} that changed longest ago are not listed."
    lines += ["", *map(_item, touched[-_LISTED:])]
    if len(opened) > closed:
        lines += ["", *_churn(opened, closed, period)]
    return "\n".join(lines)


def _state(event: Record) -> str:
    return "removed" if event["action"] == "removed" else str(event["status"] or event["action"])


def _closings(log: Sequence[Record]) -> Iterator[Record]:
    """The events that closed an open item."""
    is_open = True
    for event in log:
        if is_open and _state(event) in _CLOSED:
            yield event
        is_open = _state(event) not in _CLOSED


def _item(log: Sequence[Record]) -> str:
    shown = log if len(log) <= 8 else [*log[:2], *log[-6:]]
    steps = [f"{_step(event)} {_at(event)}" for event in shown]
    if len(shown) < len(log):
        steps.insert(2, f"{len(log) - len(shown)} more changes")
    if _state(log[-1]) not in _CLOSED:
        steps.append("still open")
    elif log[0]["action"] == "added":
        *_, closing = _closings(log)
        begun, ended = epoch(log[0]["ts"]), epoch(closing["ts"])
        if begun is not None and ended is not None:
            steps.append(f"closed after {_duration(ended - begun)}")
    return f"- {_inline(log[-1]['todo'])}: {', '.join(steps)}"


def _step(event: Record) -> str:
    if event["action"] == "added":
        return "opened" if event["status"] in (None, "pending") else f"opened as {_inline(event['status'], 40)}"
    return "reworded" if event["action"] == "updated" else _inline(_state(event), 40)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if not hours else 0, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _churn(opened: Sequence[Record], closed: int, period: _Period) -> Iterator[str]:
    yield f"Churn: items open faster than they close ({len(opened)} opened, {closed} closed in this period)."
    steers = {}
    for event in opened:
        if prompt := period.prompt_before(event["id"]):
            steers[prompt["id"]] = prompt
    if steers:
        yield "What the person had said before items were opened:"
        yield ""
    for prompt in list(steers.values())[-_STEERS:]:
        yield f"- {_at(prompt)}: {_inline(prompt['text'])}"


def _commits(events: Sequence[Record]) -> str:
    lines = [f"- {event['event_type']} {_at(event)}: {_inline(event['summary'])}" for event in events[-_LISTED:]]
    if len(events) > _LISTED:
        lines.insert(0, f"- {len(events) - _LISTED} earlier ones are not listed")
    return "\n".join(lines) or "No git commit, push or tag was made by a tool call in this period."


def _points(points: Sequence[Record], period: _Period) -> str:
    begin = f"from record #{period.first_id} ({period.first_ts or 'without a time'}) on" if period.count else "empty"
    if not points:
        return f"None: the session was not compacted, and the period is all of it, {begin}. For information only."
    lines = [f"- {_at(point)}: {point['records']} records and {point['lines']} lines since" for point in points]
    return "\n".join([f"For information only. The period is {begin}.", "", *lines])
