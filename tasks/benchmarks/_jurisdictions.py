"""Jurisdictions by code: countries, the states of the United States, and what is above countries."""

from importlib.resources import files

_STATES = """
AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI
SC SD TN TX UT VT VA WA WV WI WY
"""


def _countries() -> dict[str, str]:
    """Country codes (ISO 3166-1 alpha-2) with names, as the time zone database lists them."""
    text = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {code: name for code, name, *_ in rows}


JURISDICTIONS = {
    **_countries(),
    **{f"US-{state}": f"the state {state} of the United States" for state in _STATES.split()},
    "EU": "law of the European Union",
    "INT": "international law and standards",
    "NONE": "no place, or none that can be known",
}
