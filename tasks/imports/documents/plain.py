"""Markdown and text files, taken as they are."""

from tasks.imports.documents.converted import Converted, DocumentRefused


def read_plain(content: bytes) -> Converted:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        DocumentRefused: the file is in another encoding; which one cannot be known.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentRefused(f"not UTF-8 ({error.reason} at byte {error.start}); save it in UTF-8") from error
    if "\0" in text:
        raise DocumentRefused("not text (it has NUL characters, as UTF-16 without its mark has); save it in UTF-8")
    return Converted(text)
