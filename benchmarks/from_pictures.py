"""Accuracy of a reader on an expression's symbols, on raw strokes, and on pictures of it.

    python benchmarks/from_pictures.py --crohme ink [--reader FILE] [--pens 1 2 4 9] [--json PATH]

A found symbol matches the gold symbol whose box overlaps its own by more than half. A head is right if symbol and head
were found and are joined as in the gold tree, so errors of segmentation and order count as errors of heads and names.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.crohme import read_folder
from aggrevated.parsing.pages.page import compute_boxes
from aggrevated.parsing.splits import find_evaluation_folder
from aggrevated_reader import load_reader
from aggrevated_reader.pictures.segmentation import SegmentedPage, group_into_symbols, segment_page, to_unlabeled_page

# pixels of a symbol and around the page; and how much finer it is drawn first
SIZE = 60
MARGIN = 50
FINE = 4


def from_strokes(page):
    """Return the page from its strokes alone, in the order of writing."""
    return SegmentedPage(
        to_unlabeled_page(page.name, group_into_symbols([stroke for strokes in page.ink for stroke in strokes]))
    )


def drawn(page, pen, path):
    """Draw the page with a pen of `pen` pixels; return the scale and corner of the picture."""
    boxes = page.boxes
    scale = SIZE / max(float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))), 1e-9)
    low = boxes[:, :2].min(axis=0)
    width, height = ((boxes[:, 2:].max(axis=0) - low) * scale + 2 * MARGIN).astype(int) * FINE
    picture = Image.new("L", (int(width), int(height)), 255)
    draw = ImageDraw.Draw(picture)
    half = pen * FINE / 2
    for stroke in (stroke for strokes in page.ink for stroke in strokes):
        points = [tuple(map(float, point)) for point in ((stroke - low) * scale + MARGIN + 0.5) * FINE]
        if len(points) > 1:
            draw.line(points, 20, max(1, round(2 * half)))
        for x, y in points:
            draw.ellipse((x - half, y - half, x + half, y + half), 20)
    picture.reduce(FINE).save(path)
    return scale, low


def right(page, parsed, scale=1.0, low=(0.0, 0.0), margin=0.0):
    """Return the numbers of correct heads and names among all symbols of the page."""
    gold = (page.boxes - np.tile(low, 2)) * scale + margin
    found = compute_boxes([parsed.seen.map_to_picture(np.concatenate(strokes)) for strokes in parsed.seen.page.ink])
    partner = {-1: -1} | matched(gold, found)
    of_gold = {g: f for f, g in partner.items()}
    heads = names = 0
    for i, head in enumerate(page.heads):
        mine = of_gold.get(i)
        if mine is None:
            continue
        names += parsed.reading.labels[mine] == page.symbols[i]
        heads += partner.get(parsed.heads[mine] - 1) == head - 1
    return heads, names


def matched(gold, found):
    """Return the gold symbol of each found symbol: their boxes share more than half of their union."""
    pad = 0.05 * float(np.median((gold[:, 2:] - gold[:, :2]).max(axis=1)))  # flat symbols have almost no area
    grow = np.array([-pad, -pad, pad, pad])
    pairs = {}
    for f, box in enumerate(found + grow):
        low = np.maximum(gold[:, :2] - pad, box[:2])
        high = np.minimum(gold[:, 2:] + pad, box[2:])
        shared = np.maximum(high - low, 0).prod(axis=1)
        areas = (gold[:, 2:] - gold[:, :2] + 2 * pad).prod(axis=1) + (box[2:] - box[:2]).prod()
        ratio = shared / (areas - shared)
        if ratio.max(initial=0) > 0.5:
            pairs[f] = int(ratio.argmax())
    return pairs


def measured(reader, pages, way, folder):
    """Return the correct heads [P] and names [P] of pages read in one way."""
    scores = []
    for page in pages:
        try:
            if way == "symbols":
                scores.append(right(page, reader.parse_segmented(Path(page.name), SegmentedPage(page))))
            elif way == "strokes":
                scores.append(right(page, reader.parse_segmented(Path(page.name), from_strokes(page))))
            else:
                path = folder / "page.png"
                scale, low = drawn(page, float(way), path)
                scores.append(right(page, reader.parse_segmented(path, segment_page(path)), scale, low, MARGIN))
        except DataError as error:
            print(f"{page.name}, {way}: {error}", flush=True)
            scores.append((0, 0))
    return np.array(scores)


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crohme", type=Path, required=True)
    parser.add_argument("--reader", type=Path)
    parser.add_argument("--pens", nargs="*", default=["1", "2", "4", "9"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reader = load_reader(options.reader)
    found = read_folder(find_evaluation_folder(options.crohme))
    lengths = np.array([len(page) for page in found.pages])
    core = np.array(found.core, bool)
    rows = []
    with TemporaryDirectory() as folder:
        for way in ("symbols", "strokes", *options.pens):
            scores = measured(reader, found.pages, way, Path(folder))
            for name, which in (("core", core), ("others", ~core)):
                total = int(lengths[which].sum())
                heads, names = (scores[which].sum(axis=0) / max(total, 1)).tolist()
                whole = float((scores[which, 0] == lengths[which]).mean())
                row = {"from": way if way in ("symbols", "strokes") else f"{way} px", "pages": name, "uas": heads}
                rows.append(row | {"names": names, "whole": whole, "expressions": int(which.sum()), "symbols": total})
                print(json.dumps(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
