"""What a word is: the same for documents and queries, whatever the script and the spelling."""

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st
from total_recall import analysis


@pytest.fixture
def found():
    """Whether a text is found by terms in a row, through a real index."""

    def find(text, terms):
        schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name=analysis.NAME).build()
        index = tantivy.Index(schema)
        index.register_tokenizer(analysis.NAME, analysis.analyzer())
        with index.writer(15_000_000, 1) as writer:
            writer.add_document(tantivy.Document(text=analysis.prepared(text)))
        index.reload()
        query = (
            tantivy.Query.term_query(schema, "text", terms[0])
            if len(terms) == 1
            else tantivy.Query.phrase_query(schema, "text", list(terms))
        )
        return index.searcher().search(query, 1).count == 1

    return find


SPELLINGS = ["fetchMessagePage", "FetchMessagePage", "fetch_message_page", "fetch-message-page", "fetch message page"]


@pytest.mark.parametrize("written", SPELLINGS)
@pytest.mark.parametrize("asked", SPELLINGS)
def test_every_spelling_of_an_identifier_finds_every_other_by_its_pieces(found, written, asked):
    assert found(f"calls {written}(thread)", analysis.split_terms(asked))


@pytest.mark.parametrize(
    ("identifier", "pieces"),
    [
        ("fetchMessagePage", "fetch Message Page"),
        ("XMLParser", "XML Parser"),
        ("JSONDecodeError", "JSON Decode Error"),
        ("Base64Encoder", "Base64 Encoder"),
        ("GitHub", "Git Hub"),
    ],
)
def test_camel_case_falls_into_its_pieces(identifier, pieces):
    assert analysis.pieces(identifier) == pieces


@pytest.mark.parametrize("word", ["ECONNREFUSED", "K8S", "timeout", "SHA256", "utf8"])
def test_what_has_no_seam_stays_whole(word):
    assert analysis.identifiers(word) == []
    assert analysis.terms(word) == [word.lower()]


def test_an_identifier_is_found_whole_as_well(found):
    assert found("opened on GitHub today", ["github"])
    assert found("opened on GitHub today", ["on", "github", "today"])


def test_a_path_finds_its_base_name_and_its_own_end(found):
    text = "see /srv/app/src/thread/pager_view.spec.ts:31"

    assert found(text, analysis.terms("pager_view.spec.ts"))
    assert found(text, analysis.terms("thread/pager_view.spec.ts:31"))
    assert not found(text, analysis.terms("pager_view.ts"))


@pytest.mark.parametrize("asked", ["检", "检索", "连接池", "テスト", "日本語"])
def test_words_of_scripts_without_spaces_are_found_at_any_length(found, asked):
    assert found("请检索连接池。日本語のテストです", analysis.terms(asked))


def test_the_order_of_characters_counts(found):
    assert not found("请检索", analysis.terms("索检"))


def test_ascii_glued_to_cjk_is_a_word_of_its_own(found):
    assert found("使用Redis缓存", ["redis"])
    assert found("使用Redis缓存", analysis.terms("缓存"))


@pytest.mark.parametrize("asked", ["café", "cafe", "CAFÉ", "cafe\u0301"])
@pytest.mark.parametrize("written", ["café", "cafe", "cafe\u0301"])
def test_accents_are_folded_however_they_are_written(found, written, asked):
    assert found(f"au {written} du coin", analysis.terms(asked))


def test_sharp_s_meets_ss(found):
    assert found("Straße", analysis.terms("strasse"))


def test_a_line_of_base64_leaves_no_word():
    line = "aGVsbG8gd29ybGQgdGhpcyBpcyBhIGxpbmUgb2YgYmFzZTY0IHRoYXQgaXMgbG9uZyBlbm91Z2g"

    assert analysis.terms(line) == []
    assert analysis.prepared(line).split() == [line]


def test_a_short_run_of_random_letters_is_no_identifier():
    assert analysis.pieces("aGVsbG8gd29ybGQgZm9vYmFy") == ""


@given(st.text(max_size=200))
def test_places_of_words_are_where_they_stand(text):
    """The slice of the text at a word's place gives that word again."""
    text = analysis.composed(text)

    for tokens in analysis.tokens(text):
        for token in tokens:
            assert 0 <= token.start < token.end <= len(text)
            assert token.term in analysis.terms(text[token.start : token.end])


@given(st.text(alphabet=st.sampled_from("abAB1_ -语言é.Z"), max_size=80))
def test_documents_and_queries_agree_on_words(text):
    """Every word of a query is a word of the document that says the same."""
    document = analysis.analyzer().analyze(analysis.prepared(text))

    assert set(analysis.terms(text)) <= set(document)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("retry", "retries"),
        ("retrying", "retry"),
        ("retries", "retried"),
        ("run", "running"),
        ("stopped", "stop"),
        ("cache", "caching"),
        ("thermostats", "thermostat"),
        ("messung", "messungen"),
    ],
)
def test_forms_of_a_word_meet(word, other):
    assert other in analysis.forms(word)
    assert word not in analysis.forms(word)


@pytest.mark.parametrize(("word", "other"), [("listen", "list"), ("server", "serve"), ("token", "toke")])
def test_different_words_are_no_forms_of_each_other(word, other):
    assert other not in analysis.forms(word)


@pytest.mark.parametrize("typo", ["certifcate", "certificatte", "cretificate", "certificaye"])
def test_one_edit_leads_back_to_the_word(typo):
    assert "certificate" in analysis.misspelt(typo)


def test_short_words_are_not_corrected():
    assert analysis.misspelt("cafe") == ()
