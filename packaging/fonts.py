"""Makes resources/fonts from the fonts' own files: `python packaging/fonts.py FOLDER`, needed only for newer ones.

FOLDER has Inter-Regular.ttf, Inter-SemiBold.ttf, JetBrainsMono-Regular.ttf (static, with TrueType outlines) and
NotoEmoji-Regular.ttf. resources/fonts/README.md says where the present ones are from. Needs fontTools, which nothing
else does: `pip install fonttools`.

The text fonts keep Latin, Greek, Cyrillic and signs, and get a family name of their own: Qt prefers a font that is
installed on the system to one of the application's with the same name, and the two differ in glyphs and widths.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FONTS = Path(__file__).resolve().parent.parent / "resources" / "fonts"
RANGES = ((0x20, 0x24F), (0x2B0, 0x52F), (0x1E00, 0x2BFF), (0xFB00, 0xFB06), (0xFEFF, 0xFEFF), (0xFFFD, 0xFFFD))
"""Code points that are kept, first and last of each range."""
MARKS = ["ccmp", "locl", "mark", "mkmk"]
MADE = {
    "Inter-Regular": ("kvdesk Text", [*MARKS, "kern", "tnum"]),
    "Inter-SemiBold": ("kvdesk Text", [*MARKS, "kern", "tnum"]),
    "JetBrainsMono-Regular": ("kvdesk Mono", MARKS),
}
"""File: the family it becomes, and the OpenType features that stay."""
FAMILY, STYLE, IDENTIFIER, FULL, POSTSCRIPT, TYPOGRAPHIC_FAMILY, TYPOGRAPHIC_STYLE = 1, 2, 3, 4, 6, 16, 17


def make(source: Path, target: Path, family: str, features: list[str]) -> None:
    """One font with the glyphs, the features and the name that are wanted."""
    options = subset.Options(layout_features=features, hinting=False, glyph_names=False, name_IDs=["*"])
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in RANGES for code in range(first, last + 1)])
    subsetter.subset(font)
    keep_digits_only(font)
    rename(font, family)
    subset.save_font(font, str(target), options)


def keep_digits_only(font: TTFont) -> None:
    """Digits of one width, and nothing else: Inter's `tnum` widens hyphens and other signs too, which tears words."""
    table = font["GSUB"].table
    digits = {font.getBestCmap()[code] for code in range(ord("0"), ord("9") + 1)}
    lookups = {
        index
        for record in table.FeatureList.FeatureRecord
        if record.FeatureTag == "tnum"
        for index in record.Feature.LookupListIndex
    }
    for index in lookups:
        for single in table.LookupList.Lookup[index].SubTable:
            single = getattr(single, "ExtSubTable", single)
            single.mapping = {glyph: wide for glyph, wide in single.mapping.items() if glyph in digits}


def rename(font: TTFont, family: str) -> None:
    """The family's name; copyright, version and licence stay as they are."""
    names = font["name"]
    style = names.getDebugName(TYPOGRAPHIC_STYLE) or names.getDebugName(STYLE)
    plain = style in ("Regular", "Bold")
    new = {
        FAMILY: family if plain else f"{family} {style}",
        STYLE: style if plain else "Regular",
        IDENTIFIER: f"{family} {style}",
        FULL: f"{family} {style}",
        POSTSCRIPT: f"{family}-{style}".replace(" ", ""),
        TYPOGRAPHIC_FAMILY: None if plain else family,
        TYPOGRAPHIC_STYLE: None if plain else style,
    }
    for name, text in new.items():
        names.removeNames(nameID=name)
        if text:
            names.setName(text, name, 3, 1, 0x409)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, (made, kept) in MADE.items():
        make(folder / f"{name}.ttf", FONTS / f"{name}.ttf", made, kept)
    shutil.copyfile(folder / "NotoEmoji-Regular.ttf", FONTS / "NotoEmoji-Regular.ttf")
