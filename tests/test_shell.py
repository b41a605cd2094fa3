"""The simple commands of a shell text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from total_recall.shell import commands, quoted


def run(text: str) -> list[list[str]]:
    return [list(command) for command in commands(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git push", [["git", "push"]]),
        ("a && b || c; d & e | f |& g\nh", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]),
        ("", []),
        ("# git push\n  # more\n", []),
        ("echo a#b # c", [["echo", "a#b"]]),
        ("git \\\n  push\\\r\n origin", [["git", "push", "origin"]]),
        ("git push\r\ngit tag v1\r\n", [["git", "push"], ["git", "tag", "v1"]]),
    ],
)
def test_lists_and_pipelines(text: str, expected: list[list[str]]) -> None:
    """Operators, newlines, comments and line continuations part the commands as in the shell."""
    assert run(text) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("'a b'", "a b"),
        ('"a \\"b\\" \\$x \\n"', 'a "b" $x \\n'),
        ("a\\ b", "a b"),
        ("'it'\\''s'", "it's"),
        ("$'a\\tb\\'c\\x41\\u00e9\\101\\q'", "a\tb'cA\u00e9A\\q"),
        ('$"hello"', "hello"),
        ("a'b'\"c\"d", "abcd"),
        ("''", ""),
        ("$HOME/${x:-a b}", "$HOME/${x:-a b}"),
        ("$((1 + (2)))", "$((1 + (2)))"),
        ("a\u00a0b\u2028c", "a\u00a0b\u2028c"),
        ("'never closed; git push", "never closed; git push"),
        ('"never closed', "never closed"),
    ],
)
def test_quoting(text: str, word: str) -> None:
    """A word is what the shell would hand to the program, expansions left as written."""
    assert run(f"echo {text}") == [["echo", word]]


@pytest.mark.parametrize(
    "text",
    [
        "(git push)",
        "{ git push; }",
        "if true; then git push; fi",
        "[[ a < b && c =~ ^(x|y)$ ]] && git push",
        "(( n > 1 )) && git push",
        "for x in a b; do git push; done > log",
        "for ((i = 0; i < 3; i++)); do git push; done",
        "case $x in (a|b) ;; *) git push;; esac",
        "! git push",
        "A=1 B='x y' git push",
        "a=(1 2 3) git push",
        "git push >log 2>&1 </dev/null &>x {fd}>y >|z",
        "2>&1 git push",
        "time -p git push",
        "sudo -u root -E git push",
        "env -i -u B A=1 /usr/bin/env git push",
        "timeout -s KILL 5m nice -n 5 nohup git push",
        "command git push",
        "find . | xargs -0 -n 1 git push",
        "bash -c 'git push'",
        "sh -euo pipefail -lc 'git push' name",
        "bash <<'EOF'\ngit push\nEOF",
        "bash <<< 'git push'",
        'eval "git push"',
        "deploy() { git push; }\ndeploy; deploy",
        "function deploy {\n git push\n}\ndeploy",
    ],
)
def test_what_runs_inside(text: str) -> None:
    """Compound commands, assignments, redirections, wrappers and inner shells do not hide a command."""
    assert run(text).count(["git", "push"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "echo git push",
        "grep 'git push' notes.md",
        'echo "run git push now; git push"',
        "cat <<EOF\ngit push\nEOF",
        "cat <<-'EOF' > script.sh\n\tgit push\n\tEOF",
        "# git push",
        "command -v git push",
        "for git in push; do :; done",
        "deploy() { git push; }",
        "case git in push) ;; esac",
        "x='git push'",
        "files=(git push)",
    ],
)
def test_what_does_not_run(text: str) -> None:
    """A command that is only quoted, documented, listed or defined is not run."""
    assert ["git", "push"] not in run(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo $(git push)",
        'echo "now: $(git push) and"',
        "echo `git push`",
        "echo ${x:-$(git push)}",
        "diff <(git push) b",
        "cat <<EOF\n$(git push)\nEOF",
        "x=$(git push)",
        "x=($(git push))",
        'echo "$( (git push) )"',
        "for x in $(git push); do :; done",
    ],
)
def test_substitutions(text: str) -> None:
    """The commands in `$(...)`, backquotes, `<(...)` and unquoted here-documents run too."""
    assert ["git", "push"] in run(text)


def test_here_documents_are_kept_for_their_command() -> None:
    """The text that a command is fed is known where it stands in the script."""
    script = "git commit -F - <<'A' && git tag v1\nSubject $x\n\nbody\nA\necho hi | git commit -F -\ngit push"

    found = list(commands(script))

    assert [list(command) for command in found[:2]] == [["git", "commit", "-F", "-"], ["git", "tag", "v1"]]
    assert found[0].stdin == "Subject $x\n\nbody\n"
    assert found[3].stdin == "hi\n"
    assert found[4].stdin is None


@pytest.mark.parametrize(
    "message",
    [
        "$(cat <<'EOF'\nSubject ) \" line\n\nbody\nEOF\n)",
        "$(printf 'Subject ) \\\" line\\n\\nbody\\n')",
        '$(cat <<EOF\nSubject ) " line\n\nbody\nEOF)',
    ],
)
def test_a_message_by_substitution_is_known(message: str) -> None:
    """`git commit -m "$(cat <<EOF ...)"`, as agents write it, gives the message itself."""
    assert run(f'git commit -m "{message}" && git push')[-2:] == [
        ["git", "commit", "-m", 'Subject ) " line\n\nbody'],
        ["git", "push"],
    ]


_WORDS = st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")), min_size=1)


@given(_WORDS)
def test_quoted_words_come_back(words: list[str]) -> None:
    """What `quoted` writes is read as the same words."""
    assert run(quoted(["git", *words])) == [["git", *words]]


_PIECES = st.sampled_from(
    [
        *"'\"\\$`(){}<>|&;#!=\n\t a",
        *("<<E", "<<-'E'", "E\n", "$(", "$((", "${", "$'", "case x in ", "esac", "if ", "f()"),
        *(
            "for ",
            "done",
            "[[",
            "]]",
            "bash -c ",
            "eval ",
            "sudo ",
            "xargs ",
            "a=(",
            ";;",
            "function ",
            "time ",
            "env ",
        ),
    ]
)


@given(st.lists(_PIECES, max_size=60).map("".join))
def test_any_text_is_read(text: str) -> None:
    """No text, however broken, raises; every command has words."""
    assert all(run(text))


@pytest.mark.parametrize(
    "piece", ["(", "$(", "`", "${", "{ ", "a=(", "case x in x) ", '"$(', "f() { ", "<(", "$((", "eval "]
)
def test_deep_nesting_is_not_followed_for_ever(piece: str) -> None:
    """Nesting far past what anyone writes ends in fewer commands, not in an error."""
    run(piece * 5000)


def test_functions_that_call_each_other_are_entered_once() -> None:
    """A chain of functions that each call the next one twice does not multiply."""
    chain = "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}\n" for n in range(1000))

    assert len(run(chain + "f0")) < 1000
