"""python -m tools.gallery: make the pictures of docs/gallery.md again, and the page. `make gallery` calls it."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from tests.harness.browser import MISSING, chromium, programs, trusting
from tests.harness.server_pair import LivePair
from tools.gallery.pictures import IMAGES, MOST_BYTES, PAGE, PICTURES, Picture, page
from tools.gallery.screens import Screens
from tools.gallery.studies import Studies

COLOURS = 256
DRAWN = {"communication": "communication-queries.png"}  # where a command names its files itself


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gallery", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[p.name for p in PICTURES], help="some of them")
    parser.add_argument("--out", type=Path, default=IMAGES, metavar="FOLDER", help="for pictures")
    args = parser.parse_args(argv)
    wanted = [picture for picture in PICTURES if not args.only or picture.name in args.only]
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, LivePair(Path(folder)) as pair:
        studies = Studies(pair, Path(folder))
        for picture in wanted:
            if not picture.screen:
                studies.run(picture.study, picture.command)
                _keep(studies.folder / DRAWN.get(picture.name, f"{picture.name}.png"), args.out, picture)
        _look([picture for picture in wanted if picture.screen], studies, pair, args.out)
    if args.out == IMAGES:
        PAGE.write_text(page())
        total = sum(path.stat().st_size for path in IMAGES.iterdir())
        print(f"wrote {PAGE.name}; all pictures have {total / 1e3:.0f} kB")
        return int(total > MOST_BYTES)
    return 0


def _look(wanted: list[Picture], studies: Studies, pair: LivePair, out: Path) -> None:
    if not wanted:
        return
    if programs() is None:
        raise SystemExit(MISSING)
    with chromium([trusting(pair), "--lang=en-US"]) as driver:
        screens = Screens(driver, studies)
        for picture in wanted:
            screens.look(picture, studies.folder / f"{picture.name}.png")
            _keep(studies.folder / f"{picture.name}.png", out, picture)


def _keep(made: Path, out: Path, picture: Picture) -> None:
    """With few colours, which is a third of the bytes."""
    target = out / f"{picture.name}.png"
    whole = Image.open(made).convert("RGB")
    few = whole.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)
    print(f"{picture.name:<18} {target.stat().st_size / 1e3:5.0f} kB  {picture.command}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
