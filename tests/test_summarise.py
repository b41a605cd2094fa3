"""tr-summarise: the rest of a session becomes a block, or nothing changes."""

import pytest
from total_recall.ledger import Ledger, Locked
from total_recall.llm import ServiceFailed
from total_recall.notices import Notices
from total_recall.record import message, tool_call
from total_recall.stores.registry import Refused
from total_recall.summarise import preview, rest, summarise

KEY = "sk-abcdefghijklmnop"


def records(last):
    """Prompts and answers in turn."""
    made = []
    for number in range(1, last + 1):
        role, author = ("user", "human") if number % 2 else ("assistant", "model")
        ts = f"2026-11-30T21:{number:02}:00.000Z"
        made.append(message("vibe", "ses_1", number, role, ts, f"text {number}", authorship=author))
    return made


class Session:
    """A session of some records, its ledger, and a model that answers what it is told to."""

    def __init__(self, folder, last):
        self.folder = folder
        self.records = records(last)
        self.asked = []
        self.notices = Notices()

    def messages(self, first):
        return (record for record in self.records if record["id"] >= first)

    def ledger(self):
        return Ledger(str(self.folder), "vibe", "ses_1", self.notices)

    def ask(self, questions):
        self.asked += questions
        return [f"\nsummary {len(self.asked)}\n"]

    def summarise(self, from_id=None, ask=None):
        return summarise(self.ledger(), self.messages, ask or self.ask, from_id)

    def files(self):
        return {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path, 4)


def test_the_records_to_the_end_become_a_block_and_the_next_ones_the_next(session):
    first = session.summarise()
    session.records = records(7)
    second = session.summarise(5)

    assert [(block.from_id, block.to_id) for block in (first, second)] == [(1, 4), (5, 7)]
    assert session.ledger().blocks == [first, second]
    assert session.ledger().tail(session.messages(1)) is None
    assert "| text 4" in session.asked[0][1]
    assert "| text 4" not in session.asked[1][1]
    assert "| text 7" in session.asked[1][1]


def test_a_part_is_the_models_text_and_beside_it_the_persons_last_words(session):
    session.records[0]["content"] = f"the goal\n# is {KEY}"
    session.summarise()

    assert session.files()["part_001_004.md"].decode() == (
        "summary 1\n\n#### What the person typed last, verbatim\n\n"
        "- #1 2026-11-30T21:01:00.000Z\n  > the goal\n  > # is [REDACTED:vendor-key]\n"
        "- #3 2026-11-30T21:03:00.000Z\n  > text 3\n"
    )
    assert KEY not in session.asked[0][1]


@pytest.mark.parametrize("wrong", [1, 4, 6, 0, -1])
def test_another_from_id_is_refused_naming_the_expected_one(session, wrong):
    session.summarise()
    session.records = records(7)
    before = session.files()
    with pytest.raises(Refused, match=rf"--from-id {wrong} is not the first unsummarised record .* - pass 5"):
        session.summarise(wrong)

    assert session.files() == before
    assert len(session.asked) == 1


def test_nothing_left_is_refused_naming_the_state(session):
    session.summarise()
    for from_id in (None, 5):
        with pytest.raises(Refused, match=r"nothing is left to summarise in session ses_1: ids 1\.\.4 are summarised"):
            session.summarise(from_id)
    assert len(session.asked) == 1


def test_a_session_without_records_is_refused(session):
    session.records = []
    with pytest.raises(Refused, match="it has no records"):
        session.summarise()


def test_records_without_text_are_refused(session):
    session.records = [records(1)[0] | {"content": "", "thinking": "hm"}]
    with pytest.raises(Refused, match="hold no text or call to summarise"):
        session.summarise()
    assert session.asked == []


def test_a_model_that_fails_changes_nothing(session):
    session.summarise()
    session.records = records(7)
    before = session.files()

    def broken(questions):
        raise ServiceFailed("no answer")

    with pytest.raises(ServiceFailed):
        session.summarise(ask=broken)
    assert session.files() == before
    assert session.summarise().from_id == 5


def test_a_failure_leaves_a_doubtful_ledger_where_it_is(session):
    session.summarise()
    (session.folder / "tr_ses_1_summary.csv").write_text("nonsense\n")
    before = session.files()

    def broken(questions):
        raise ServiceFailed("no answer")

    with pytest.raises(ServiceFailed):
        session.summarise(ask=broken)
    assert session.files() == before


def test_after_a_rewrite_of_the_store_everything_is_summarised_anew(session):
    session.summarise()
    session.records = [record | {"content": record["content"] + "!"} for record in records(6)]
    with pytest.raises(Refused, match="pass 1"):
        session.summarise(5)
    block = session.summarise()

    assert (block.from_id, block.to_id) == (1, 6)
    assert any("does not describe the session" in said for said in session.notices.said)
    assert "tr_ses_1_summary.csv.bad" in session.files()


def test_of_two_summarisers_at_once_only_one_adds_a_block(session):
    """The second begins while the first waits for its model."""

    def ask(questions):
        with pytest.raises(Locked):
            session.summarise()
        return ["first"]

    session.summarise(ask=ask)
    assert session.asked == []
    assert len(session.ledger().blocks) == 1


def test_what_is_counted_is_what_was_sent_though_the_session_grows_meanwhile(session):
    def growing(first):
        yield from session.messages(first)
        session.records = records(len(session.records) + 1)

    block = summarise(session.ledger(), growing, session.ask)

    assert (block.to_id, block.user + block.assistant) == (5, 5)
    assert "| text 5" in session.asked[0][1]
    assert session.ledger().tail(session.messages(1))["from_id"] == 6


def test_a_preview_shows_what_would_be_sent_with_its_figures_and_changes_nothing(session):
    session.records[0]["tool_calls"] = [tool_call("c", "bash", {"command": f"echo {KEY}"})]
    left = rest(session.ledger(), session.messages)
    text = preview(left.prompt)

    assert text.startswith(f"--- system\n{left.prompt.system}\n--- user\n{left.prompt.user}\n--- ")
    assert text.endswith(
        f"--- {len(left.prompt.user.encode())} bytes, about {left.prompt.bytes // 4} tokens;"
        " 4 records in full, 0 not in full, 0 bytes of them dropped\n"
    )
    assert KEY not in text
    assert session.files() == {}
