"""The index: what is in it, that it costs what changed, and that nothing can break it for long."""

import os
import signal
import stat
import subprocess
import sys
import textwrap

import orjson
import pytest
from linestore import LineStore, write_session
from total_recall import index as module
from total_recall.index import Index, Locked
from total_recall.indexed import number_of
from total_recall.indexing import UNTIMED
from total_recall.notices import Notices, Unreadable
from total_recall.passages import OUTPUT_HEAD, OUTPUT_TAIL, passages
from total_recall.record import message, tool_call


def record(number, role="user", content="", **extra):
    authors = {"user": "human", "assistant": "model", "tool": "tool"}
    extra.setdefault("authorship", authors[role])
    moment = extra.pop("ts", f"2026-09-01T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z")
    return message("lines", "s", number, role, moment, content, **extra)


class World:
    """A store, its shadow folder and its index."""

    def __init__(self, folder):
        self.root = folder / "store"
        self.shadow = folder / "shadow"
        self.root.mkdir()
        self.shadow.mkdir()
        self.notices = Notices()

    def write(self, session_id, records, **about):
        return write_session(self.root, session_id, records, about)

    def grow(self, session_id, records):
        with open(self.root / f"{session_id}.jsonl", "ab") as file:
            file.writelines(orjson.dumps(one) + b"\n" for one in records)

    @property
    def store(self):
        return LineStore(self.root, notices=self.notices)

    def open(self):
        return Index.open(str(self.shadow), self.notices)

    def refresh(self, store=None, index=None, **options):
        store = store or self.store
        sessions = store.sessions()
        index = index or self.open()
        options.setdefault("alive", [session.session_id for session in sessions])
        return list(index.refresh(store, sessions, **options))

    def texts(self, term, field="text"):
        """How many texts hold a term."""
        import tantivy

        index = self.open()
        return index.count(tantivy.Query.term_query(index.schema, field, term))


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def statuses(rows):
    return {row["session_id"]: row["status"] for row in rows}


# -- what is in it ---------------------------------------------------------------------------------------------


def test_one_text_for_each_class_of_a_record():
    whole = record(
        1, "assistant", "an answer", thinking="a thought", tool_calls=[tool_call("1", "Bash", {"command": "ls"})]
    )

    assert [(p.kind, p.text) for p in passages(whole)] == [
        ("model-text", "an answer"),
        ("reasoning", "a thought"),
        ("tool-input", "Bash\nls"),
    ]


def test_arguments_are_searched_as_decoded_values_without_their_keys():
    call = tool_call("1", "Edit", {"path": "a.py", "edits": [{"old": 'say "x"\nend', "count": 3, "all": True}]})

    (passage,) = passages(record(1, "assistant", tool_calls=[call]))

    assert passage.text == 'Edit\na.py\nsay "x"\nend\n3'


def test_our_own_tools_are_never_indexed():
    calls = [tool_call("1", "Bash", {"command": "tr-search foo"}), tool_call("2", "Bash", {"command": "make"})]

    (passage,) = passages(message("claude", "s", 1, "assistant", None, tool_calls=calls, authorship="model"))

    assert passage.text == "Bash\nmake"
    assert passages(record(2, "tool", "what it printed", kind="self")) == []


def test_copied_records_are_indexed_once():
    assert passages(record(1, content="said before", replayed=True)) == []


def test_of_a_long_tool_output_beginning_and_end_are_kept_and_the_cut_is_counted(world):
    size = OUTPUT_HEAD + OUTPUT_TAIL
    (whole,) = passages(record(1, "tool", "x" * size))
    (cut,) = passages(record(1, "tool", "a" * OUTPUT_HEAD + "lost" + "z" * OUTPUT_TAIL))

    assert (len(whole.text), whole.cut) == (size, False)
    assert "lost" not in cut.text
    assert cut.text.startswith("a")
    assert cut.text.endswith("z")
    assert cut.cut

    world.write("long", [record(1, "tool", "word " * 40_000)])
    world.refresh()
    index = world.open()
    assert index.stored(index.sessions()[number_of("long")].address)["cut"] == 1


def test_a_prompt_is_never_cut():
    assert passages(record(1, content="word " * 40_000))[0].cut is False


def test_titles_are_documents_of_their_own(world):
    world.write("titled", [record(1, content="hello")], title="Quokka census")
    world.write("untitled", [record(1, content="numbat census")])
    world.refresh()

    assert world.texts("quokka") == 1
    assert world.texts("numbat") == 1


def test_a_record_without_a_time_is_marked_as_such(world):
    world.write("s", [record(1, content="timeless", ts=None)])
    world.refresh()
    index = world.open()
    import tantivy

    ((_, address),) = index.best(tantivy.Query.term_query(index.schema, "text", "timeless"), 1)
    assert index.column("ts", [address]) == [UNTIMED]


# -- it costs what changed -------------------------------------------------------------------------------------


def test_an_unchanged_store_is_neither_read_nor_committed(world):
    world.write("s", [record(1, content="one")])
    world.refresh()
    before = (world.shadow / "index" / "meta.json").stat()
    store = world.store

    assert world.refresh(store) == []
    assert store.walked == []
    assert (world.shadow / "index" / "meta.json").stat().st_mtime_ns == before.st_mtime_ns


def test_a_grown_session_is_read_from_where_it_was_read_to(world):
    path = world.write("s", [record(1, content="alpha")])
    world.refresh()
    size = os.path.getsize(path)
    world.grow("s", [record(2, content="beta")])
    store = world.store

    (row,) = world.refresh(store)

    assert (row["status"], row["docs"], row["added"]) == ("appended", 2, 1)
    assert store.walked == [("s", size)]
    assert world.texts("alpha") == world.texts("beta") == 1


def test_a_rewritten_session_is_replaced_as_a_whole(world):
    world.write("s", [record(1, content="alpha"), record(2, content="beta")])
    world.refresh()
    world.write("s", [record(1, content="gamma, a longer text than before"), record(2, content="delta")])

    (row,) = world.refresh()

    assert (row["status"], row["docs"]) == ("indexed", 2)
    assert world.texts("alpha") == world.texts("beta") == 0
    assert world.texts("gamma") == 1


def test_indexing_twice_makes_no_second_copy(world):
    world.write("s", [record(1, content="alpha")])
    world.refresh()

    (row,) = world.refresh(again=True)

    assert row["docs"] == 1
    assert world.texts("alpha") == 1


def test_a_session_gone_from_the_store_leaves_the_index(world):
    world.write("one", [record(1, content="alpha")])
    world.write("two", [record(1, content="beta")])
    world.refresh()
    os.unlink(world.root / "one.jsonl")

    assert statuses(world.refresh()) == {"one": "removed"}
    assert (world.texts("alpha"), world.texts("beta")) == (0, 1)


def test_without_a_full_listing_nothing_is_taken_for_gone(world):
    world.write("one", [record(1, content="alpha")])
    world.refresh()
    os.unlink(world.root / "one.jsonl")

    assert world.refresh(alive=None) == []
    assert world.texts("alpha") == 1


def test_a_session_is_dropped_on_request(world):
    world.write("one", [record(1, content="alpha")])
    world.refresh()

    assert [row["status"] for row in world.open().drop("lines", ["one"])] == ["removed"]
    assert world.texts("alpha") == 0


def test_a_session_being_written_is_indexed_up_to_its_last_whole_record(world):
    world.write("s", [record(1, content="alpha")])
    with open(world.root / "s.jsonl", "ab") as file:
        file.write(orjson.dumps(record(2, content="beta"))[:40])
    world.refresh()
    assert (world.texts("alpha"), world.texts("beta")) == (1, 0)

    with open(world.root / "s.jsonl", "ab") as file:
        file.write(orjson.dumps(record(2, content="beta"))[40:] + b"\n")
    (row,) = world.refresh()
    assert row["status"] == "appended"
    assert (world.texts("alpha"), world.texts("beta")) == (1, 1)


def count_commits(monkeypatch, world):
    commits = []
    index = world.open()
    plain = index.writing

    class Counting:
        def __init__(self, writer):
            self._writer = writer

        def commit(self):
            commits.append(1)
            return self._writer.commit()

        def __getattr__(self, name):
            return getattr(self._writer, name)

    from contextlib import contextmanager

    @contextmanager
    def writing(wait=0.0, *, threads=1):
        with plain(wait, threads=threads) as writer:
            yield Counting(writer)

    monkeypatch.setattr(index, "writing", writing)
    return index, commits


def test_a_small_refresh_is_one_commit(world, monkeypatch):
    for number in range(20):
        world.write(f"s{number}", [record(1, content="alpha")])
    index, commits = count_commits(monkeypatch, world)

    world.refresh(index=index)

    assert len(commits) == 1


def test_a_large_refresh_is_committed_as_it_goes_and_never_within_a_session(world, monkeypatch):
    monkeypatch.setattr(module, "_COMMIT_BYTES", 1000)
    for number in range(6):
        world.write(f"s{number}", [record(1, content="x" * 400), record(2, content="y" * 400)])
    index, commits = count_commits(monkeypatch, world)

    world.refresh(index=index)

    assert len(commits) == 3


def test_a_bounded_refresh_leaves_the_rest_stale(world, monkeypatch):
    for number in range(5):
        world.write(f"s{number}", [record(1, content="alpha")])
    ticks = iter(range(1000))
    monkeypatch.setattr(module, "monotonic", lambda: float(next(ticks)))

    rows = world.refresh(seconds=8)

    assert 0 < len(rows) < 5
    store = world.store
    assert len(world.open().stale(store, store.sessions())) == 5 - len(rows)
    assert world.texts("alpha") == len(rows)


def test_progress_is_told(world):
    for number in range(3):
        world.write(f"s{number}", [record(1, content="alpha")])
    told = []

    world.refresh(progress=lambda done, total: told.append((done, total)))

    assert told == [(1, 3), (2, 3), (3, 3)]


# -- damage ----------------------------------------------------------------------------------------------------


class Failing(LineStore):
    """Reads one record of the session `bad`, then fails."""

    def entries(self, session, state, *, whole=False):
        for number, entry in enumerate(super().entries(session, state, whole=whole)):
            if session.session_id == "bad" and number == self.readable:
                raise Unreadable(session.path, "input/output error")
            yield entry


def test_one_failing_session_is_reported_and_the_others_are_indexed(world):
    world.write("good", [record(1, content="alpha")])
    world.write("bad", [record(1, content="beta"), record(2, content="gamma")])
    store = Failing(world.root, notices=world.notices)
    store.readable = 1

    rows = world.refresh(store)

    assert statuses(rows) == {"good": "indexed", "bad": "failed"}
    assert next(row for row in rows if row["status"] == "failed")["error"] == "input/output error"
    assert (world.texts("alpha"), world.texts("beta"), world.texts("gamma")) == (1, 1, 0)


def test_a_fault_in_one_session_does_not_hide_the_others(world):
    class Faulty(LineStore):
        def entries(self, session, state, *, whole=False):
            if session.session_id == "bad":
                raise KeyError("kind")
            return super().entries(session, state, whole=whole)

    world.write("good", [record(1, content="alpha")])
    world.write("bad", [record(1, content="beta")])

    rows = world.refresh(Faulty(world.root, notices=world.notices))

    assert statuses(rows) == {"good": "indexed", "bad": "failed"}
    assert "unexpected KeyError" in next(row["error"] for row in rows if row["status"] == "failed")
    assert world.texts("alpha") == 1


def test_what_the_walk_tells_is_kept_for_listings(world):
    world.write("s", [record(1, content="alpha"), record(2, "assistant", "beta")])
    store = world.store
    world.refresh(store)
    walks = len(store.walked)

    row = store.row(store.sessions()[0])

    assert (row["user_count"], row["assistant_count"]) == (1, 1)
    assert len(store.walked) == walks


def test_names_that_are_no_utf8_are_indexed(world):
    path = world.write("s", [record(1, content="alpha")])
    os.rename(path, os.fsencode(world.root) + b"/\xff\xfe.jsonl")

    assert [row["status"] for row in world.refresh()] == ["indexed"]
    index = world.open()
    assert [index.stored(known.address)["session_id"] for known in index.sessions().values()] == ["\udcff\udcfe"]


def test_a_failed_session_is_tried_again_each_time(world):
    world.write("bad", [record(1, content="beta"), record(2, content="gamma")])
    store = Failing(world.root, notices=world.notices)
    store.readable = 1
    world.refresh(store)

    assert statuses(world.refresh()) == {"bad": "indexed"}
    assert (world.texts("beta"), world.texts("gamma")) == (1, 1)


def test_what_is_indexed_of_a_session_that_cannot_be_opened_now_is_kept(world):
    world.write("bad", [record(1, content="beta")])
    world.refresh()
    world.grow("bad", [record(2, content="gamma")])
    store = Failing(world.root, notices=world.notices)
    store.readable = 0

    assert statuses(world.refresh(store)) == {"bad": "failed"}
    assert world.texts("beta") == 1


@pytest.mark.parametrize("damage", ["meta.json", "stamp.json"])
@pytest.mark.parametrize("content", [b"", b"{", b'"x"', b"\0" * 100])
def test_a_damaged_index_is_rebuilt_and_said(world, damage, content):
    world.write("s", [record(1, content="alpha")])
    world.refresh()
    (world.shadow / "index" / damage).write_bytes(content)

    assert statuses(world.refresh()) == {"s": "indexed"}
    assert world.texts("alpha") == 1
    assert any("rebuilt" in text for text in world.notices.said)


def test_a_file_in_the_place_of_the_index_is_replaced(world):
    (world.shadow / "index").write_text("not a folder")
    world.write("s", [record(1, content="alpha")])

    assert statuses(world.refresh()) == {"s": "indexed"}


def test_an_older_index_is_rebuilt_and_a_newer_one_left_alone(world):
    world.write("s", [record(1, content="alpha")])
    world.refresh()
    stamp = world.shadow / "index" / "stamp.json"
    written = orjson.loads(stamp.read_bytes())

    stamp.write_bytes(orjson.dumps({**written, "version": written["version"] + 1}))
    assert world.open() is None
    assert any("newer version" in text for text in world.notices.said)
    assert stamp.exists()

    stamp.write_bytes(orjson.dumps({**written, "version": 0}))
    assert statuses(world.refresh()) == {"s": "indexed"}
    assert orjson.loads(stamp.read_bytes()) == written


def test_what_a_killed_writer_left_is_not_in_the_way_of_the_next(world):
    """A commit that was cut off before its last step left files that the same commit would make again."""
    for name in ("changed", "kept"):
        world.write(name, [record(1, content="alpha")])
    world.refresh()
    committed = world.shadow / "index" / "meta.json"
    before = committed.read_bytes()
    world.write("changed", [record(1, content="beta and more")])
    world.refresh()
    assert list(committed.parent.glob("*.del"))
    committed.write_bytes(before)

    assert statuses(world.refresh()) == {"changed": "indexed"}
    assert (world.texts("alpha"), world.texts("beta")) == (1, 1)


def test_clearing_begins_anew_and_a_reader_reads_on(world):
    world.write("s", [record(1, content="alpha")])
    world.refresh()
    reader = world.open()
    reader.sessions()

    world.open().clear()

    assert world.open().sessions() == {}
    assert [reader.stored(known.address)["session_id"] for known in reader.sessions().values()] == ["s"]
    assert statuses(world.refresh()) == {"s": "indexed"}


def test_a_deleted_index_comes_back(world):
    import shutil

    world.write("s", [record(1, content="alpha")])
    world.refresh()
    shutil.rmtree(world.shadow / "index")

    assert statuses(world.refresh()) == {"s": "indexed"}


def test_the_index_is_the_users_alone(world):
    world.write("s", [record(1, content="alpha")])
    mask = os.umask(0o022)
    try:
        world.refresh()
    finally:
        os.umask(mask)

    folder = world.shadow / "index"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.iterdir()} == {0}


# -- other processes -------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_by_name_and_readers_go_on(world):
    world.write("s", [record(1, content="alpha")])
    world.refresh()
    world.write("t", [record(1, content="beta")])
    holder, other = world.open(), world.open()

    with holder.writing():
        with pytest.raises(Locked, match=f"process {os.getpid()}"):
            world.refresh(index=other)
        assert set(other.sessions()) == {number_of("s")}

    assert statuses(world.refresh(index=other)) == {"t": "indexed"}


CHILD = """
    import os, sys
    sys.path[:0] = {path!r}
    from linestore import LineStore
    from total_recall import index as module
    from total_recall.index import Index
    from total_recall.notices import Notices

    module._COMMIT_BYTES = 4000
    store = LineStore({root!r}, notices=Notices())
    sessions = store.sessions()
    index = Index.open({shadow!r}, Notices())
    for number, row in enumerate(index.refresh(store, sessions, alive=[s.session_id for s in sessions]), 1):
        print(row["session_id"], flush=True)
        if number == {kill}:
            os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("kill", [1, 3, 7, 12])
def test_killed_at_any_session_the_index_opens_and_the_next_run_completes_it(world, kill):
    for number in range(12):
        world.write(f"s{number:02d}", [record(n, content=f"common word{number} {'x' * 500}") for n in range(1, 4)])
    paths = [path for path in sys.path if path]
    code = textwrap.dedent(CHILD).format(path=paths, root=str(world.root), shadow=str(world.shadow), kill=kill)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL

    index = world.open()
    for known in index.sessions().values():
        facts = index.stored(known.address)
        assert facts["documents"] == 3 == world.texts(f"word{int(facts['session_id'][1:])}")
    before = len(index.sessions())
    rows = world.refresh()

    assert len(rows) == 12 - before
    assert world.texts("common") == 36
    assert not [text for text in world.notices.said if "damaged" in text]
