"""`prbench certify` and `prbench verify`: their messages and exit codes."""

import json
from pathlib import Path

from tasks.config.job import Job
from tests.flows.conftest import Run
from tests.tasks.certify.conftest import forged, with_row


def test_a_certificate_is_written_and_verified(sample_job: Job, tmp_path: Path, run: Run) -> None:
    file = str(tmp_path / "figures.zip")
    first, second = run("certify", file, "--warehouse", str(sample_job.warehouse)).splitlines()
    assert first.startswith(f"certify: 46 verdicts on 4 responses, in {file} (")
    digest = second.removeprefix("digest: ")
    assert digest.encode() == Path(file).read_bytes()[-64:]

    output = run("verify", file, "--digest", digest)
    figures = "5156 figures in 124 rows of 3 leaderboards recomputed"
    assert f"certificate, {figures}; all equal\nids: of 4 responses and 0 " in output
    assert output.endswith(f"(--texts)\ndigest: {digest}\n")
    output = run("certify", file, "--warehouse", sample_job.warehouse, code=2)
    assert f"prbench: {file}: exists already; name a new file\n" == output


def test_a_differing_figure_is_shown_with_both_values(
    certificate: Path, tmp_path: Path, run: Run
) -> None:
    other = forged(
        certificate,
        tmp_path / "other.zip",
        with_row("figures/leaderboard.jsonl", 0, mean_score=0.5),
    )

    run("verify", other, code=1)
    table, line = run.out.split("verify: ")
    assert "mean_score  0.5 " in table
    assert line.startswith(
        "certificate, 5156 figures in 124 rows of 3 leaderboards recomputed; 1 differ\n"
    )

    run("verify", other, "--json", code=1)
    result = json.loads(run.out)
    assert not result["is_confirmed"]
    assert len(result["differences"]) == 1
    assert result["texts"] is None
    assert result["leaderboards"]["leaderboard"] == {
        "rows": 4,
        "figures": 164,
        "differing": 1,
    }
