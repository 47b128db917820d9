"""The command line where no server is asked."""

import json

import pytest

from analyst.cli import main


def test_no_token_and_no_server(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FSS_ANALYST_TOKEN", raising=False)
    assert main(["ecdf", "https://127.0.0.1:1/v1/campaigns/x"]) == 65
    assert "a token is needed" in capsys.readouterr().err
    monkeypatch.setenv("FSS_ANALYST_TOKEN", "x")
    monkeypatch.setattr("analyst.queries.ATTEMPTS", 1)
    assert main(["ecdf", "https://127.0.0.1:1/v1/campaigns/x"]) == 75
    assert "cannot be reached" in capsys.readouterr().err


def test_plan_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "--thresholds", "1000", "--n", "5000", "--epsilon", "1", "--target-error", "0.01"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "2114" in text
    assert "with n = 5000: epsilon 0.42" in text
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parties_needed"] == [2114]
    assert main(["plan", "--epsilon", "100"]) == 65
