"""`prbench certify` and `prbench verify`: their messages and exit codes."""

import json

from tests.tasks.certify.conftest import forged, with_row

FIGURES = "5156 figures in 124 rows of 3 leaderboards recomputed"
"""Of the sample's certificate."""


def test_a_certificate_is_written_and_verified(sample_job, tmp_path, run):
    file = tmp_path / "figures.zip"

    content, digest_line = run(
        "certify",
        file,
        "--warehouse",
        sample_job.warehouse,
    ).splitlines()
    digest = digest_line.removeprefix("digest: ")
    output = run("verify", file, "--digest", digest)

    assert content.startswith(f"certify: 46 verdicts on 4 responses, in {file} (")
    assert file.read_bytes().endswith(digest.encode())
    assert output.splitlines() == [
        f"verify: certificate, {FIGURES}; all equal",
        "ids of 4 responses and 0 verdicts recomputed; all equal",
        "ids of 46 verdicts not recomputed: that needs their responses (--texts)",
        f"digest: {digest}",
    ]


def test_a_certificate_replaces_no_file(sample_job, tmp_path, run):
    file = tmp_path / "figures.zip"
    file.touch()

    error = run.refusal("certify", file, "--warehouse", sample_job.warehouse)

    assert error == f"prbench: {file}: exists already; name a new file\n"
    assert file.read_bytes() == b""


def test_a_differing_figure_is_shown_with_both_values(certificate, tmp_path, run):
    change = with_row("figures/leaderboard.jsonl", 0, mean_score=0.5)
    forgery = forged(certificate, tmp_path / "other.zip", change)

    run("verify", forgery, code=1)
    # The table, and the lines after it.
    table, _, line = run.out.partition("verify: ")
    run("verify", forgery, "--json", code=1)
    result = json.loads(run.out)

    assert "mean_score  0.5 " in table
    assert line.startswith(f"certificate, {FIGURES}; 1 differ\n")
    assert not result["is_confirmed"]
    assert len(result["differences"]) == 1
    assert result["texts"] is None
    differing = {
        "rows": 4,
        "figures": 164,
        "differing": 1,
    }
    assert result["leaderboards"]["leaderboard"] == differing
