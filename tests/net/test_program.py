"""What every command line has in common: one line for whatever goes wrong, in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

import analyst.cli
import dealer.cli
import fss_ecdf.cli.server
from fss_ecdf.campaign.errors import InvalidInput
from fss_ecdf.cli import common
from fss_ecdf.net import https
from tests.commands import Done, call
from tests.harness.server_pair import ROOT
from tools.site import reference

ADDRESSES = [f"https://{host}.example/v1/campaigns/{'A' * 43}" for host in "ab"]
MAINS = {"fss-dealer": dealer.cli.main, "fss-analyst": analyst.cli.main, "fss-server": fss_ecdf.cli.server.main}


@pytest.mark.parametrize("name", MAINS)
def test_every_program_tells_its_version(name: str) -> None:
    done = call(MAINS[name], "--version")
    assert (done.returncode, done.stdout) == (0, f"{name} {version('fss-ecdf')}\n")


def test_a_closed_pipe_is_one_line(tmp_path: Path) -> None:
    """More than a pipe holds, to a reader that leaves after one line."""
    code = "from fss_ecdf.cli import common\nimport sys\n"
    code += "def work():\n    for i in range(100_000): print(i)\n    return 0\n"
    code += "sys.exit(common.run_command('fss-x', 'x', work))"
    reader = f'{sys.executable} -c "{code}" 2>err | head -1; echo ${{PIPESTATUS[0]}}'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", reader], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "74"]
    told = (tmp_path / "err").read_text()
    assert told == "fss-x: the output was closed before its end; what was done is done\n"


def test_errors_without_a_file_are_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise ConnectionResetError(104, "Connection reset by peer")

    assert common.run_command("fss-x", "x", work) == common.USAGE
    assert capsys.readouterr().err == "fss-x: Connection reset by peer\n"


def send(*args: str, **env: str) -> Done:
    command = ["upload", "--campaign", *ADDRESSES, "--value", "3", "--yes", *args]
    return call(
        dealer.cli.main, *command, env={"FSS_UPLOAD_TOKEN": "x", "FSS_CA0": "", "FSS_CAMPAIGN_DIGEST": "A" * 43, **env}
    )


def ask(*args: str, **env: str) -> Done:
    return call(
        analyst.cli.main,
        "quantile",
        ADDRESSES[0],
        *args,
        env={"FSS_ANALYST_TOKEN": "x", "FSS_CA0": "", "FSS_CAMPAIGN_DIGEST": "A" * 43, **env},
    )


@pytest.mark.parametrize("run", [send, ask])
def test_authorities_that_cannot_be_used_are_one_line(run: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "text.pem").write_text("no certificate")
    for ca, message in (
        (tmp_path / "none.pem", "there is no such file with a certificate authority"),
        (tmp_path, "there is no such file with a certificate authority"),
        (tmp_path / "text.pem", "this is not a certificate authority in PEM"),
    ):
        for done in (run("--ca", str(ca)), run(FSS_CA0=str(ca))):
            assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)
            assert f"{ca}: {message}" in done.stderr


def test_an_authority_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "ca.pem").write_text("x")
    monkeypatch.setattr("ssl.create_default_context", refuse)
    with pytest.raises(InvalidInput, match=r"cannot be read \(Permission denied\)"):
        https.trust(tmp_path / "ca.pem")


def test_each_role_has_a_token_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both in one shell, as the printed next steps leave them."""
    for run, variable, other in ((send, "FSS_UPLOAD_TOKEN", "FSS_ANALYST_TOKEN"), (ask, "FSS_ANALYST_TOKEN", "x")):
        done = run(**{variable: "", other: "of another role"})
        assert done.returncode == 65
        assert f"--token-file FILE, or the environment variable {variable}" in done.stderr


@pytest.mark.parametrize("question", [common.ask, common.ask_yes_no])
def test_nobody_to_ask_is_one_line(question: Callable[[str, str], object]) -> None:
    done = call(lambda _: common.run_command("fss-x", "x", lambda: bool(question("really?", "say --yes"))))
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("really?")
    assert done.stderr.endswith("\nfss-x: nobody is there to be asked: say --yes\n")


def test_answers() -> None:
    assert call(lambda _: int(common.ask_yes_no("really?", "")), stdin="Yes\n").returncode == 1
    assert call(lambda _: int(common.ask_yes_no("really?", "")), stdin="\n").returncode == 0


@pytest.mark.parametrize("digest", ["-" + "z" * 42, "--" + "z" * 41])
def test_a_digest_may_begin_with_a_dash(tmp_path: Path, digest: str) -> None:
    """One of 64 does. What is said of it is about the folders, not about options."""
    words = ["audit", "verify", "--digest", digest, "--keys", str(tmp_path), "--evidence", str(tmp_path)]
    done = call(fss_ecdf.cli.server.main, *words)
    assert (done.returncode, "expected one argument" in done.stderr) == (64, False)
    assert f"{tmp_path}/campaign.json: No such file" in done.stderr
    assert common.normalise_argv(["seal", digest, "--yes"]) == ["seal", digest, "--yes"]
    assert common.normalise_argv(["--digest=x", digest]) == ["--digest=x", digest]
    assert common.normalise_argv(["--yes", "--", digest, "-1.csv"]) == ["--yes", "--", digest, "-1.csv"]
    options = {option for _, parser in reference.parsers() for a in parser._actions for option in a.option_strings}
    assert max(map(len, options)) < 43


def test_what_argparse_understands_is_left_alone() -> None:
    for first, second in (("-1", "1"), ("-5 to 0", "0 to 5"), ("-.5", "-2.5")):
        typed = ["compare-auc", "--first", first, second]
        assert common.normalise_argv(typed) == typed


@pytest.mark.parametrize("at", ["-1,2", "-.5,0", "-3", "-1e3", "-0.5", "-2026-01-01"])
def test_a_list_of_numbers_may_begin_with_a_negative_one(at: str) -> None:
    done = call(analyst.cli.main, "ecdf", ADDRESSES[0], "--at", at, env={"FSS_ANALYST_TOKEN": ""})
    assert (done.returncode, "a token is needed" in done.stderr) == (65, True)
