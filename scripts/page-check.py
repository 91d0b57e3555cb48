#!/usr/bin/env python3
"""Looks at a page of `quorate lab run` with a headless Chromium, at 390 and 1440 pixels, light and dark.

Nothing may overlap or stick out, every chart must have data points, and every number a unit.

    scripts/page-check.py REPORT.html SCREENSHOTS_DIR
"""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = [390, 1440]

# Runs in a page that holds the report in a frame of the width in question.
LOOK = """
const frame = document.getElementById("report");
const wrong = [];
function box(element) { const r = element.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }
function meet(a, b) { return a[0] + 1 < b[2] && b[0] + 1 < a[2] && a[1] + 1 < b[3] && b[1] + 1 < a[3]; }
function inside(a, b) { return a[0] >= b[0] - 1 && a[2] <= b[2] + 1 && a[1] >= b[1] - 1 && a[3] <= b[3] + 1; }
const counts = { figures: 0, points: 0, numbers: 0, texts: 0 };
function look() {
  const page = frame.contentDocument;
  if (page.scrollingElement.scrollWidth > WIDTH + 1) wrong.push(`the page is ${page.scrollingElement.scrollWidth} pixels wide`);
  const figures = [...page.querySelectorAll("figure")];
  for (const [index, figure] of figures.entries()) {
    const title = figure.querySelector("h3").textContent, frameBox = box(figure);
    counts.figures += 1;
    for (const other of figures.slice(index + 1)) if (meet(frameBox, box(other))) wrong.push(`${title} meets ${other.querySelector("h3").textContent}`);
    const points = [...figure.querySelectorAll("svg [aria-label=bar] rect, svg [aria-label=dot] circle, svg [aria-label=line] path")];
    if (!points.length) wrong.push(`${title}: no data points`);
    counts.points += points.length;
    const blocks = [...figure.querySelectorAll("h3, h4, .legend span, svg, summary")];
    for (const [at, block] of blocks.entries()) {
      if (!inside(box(block), frameBox)) wrong.push(`${title}: ${block.tagName} sticks out`);
      for (const other of blocks.slice(at + 1)) if (meet(box(block), box(other))) wrong.push(`${title}: ${block.tagName} ${block.textContent.slice(0, 30)} meets ${other.tagName} ${other.textContent.slice(0, 30)}`);
    }
    for (const svg of figure.querySelectorAll("svg")) {
      const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim());
      for (const [at, text] of texts.entries()) {
        counts.texts += 1;
        if (!inside(box(text), frameBox)) wrong.push(`${title}: "${text.textContent}" sticks out`);
        for (const other of texts.slice(at + 1)) if (meet(box(text), box(other))) wrong.push(`${title}: "${text.textContent}" meets "${other.textContent}"`);
      }
    }
    for (const text of figure.querySelectorAll("svg text, td")) {
      const said = text.textContent.trim();
      if (/^-?[0-9][0-9.,]*$/.test(said)) wrong.push(`${title}: ${said} has no unit`);
      if (/[0-9]/.test(said)) counts.numbers += 1;
    }
  }
  if (!figures.length) wrong.push("no charts");
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ wrong, counts, height: Math.ceil(page.querySelector("footer").getBoundingClientRect().bottom) + 40 });
  document.body.append(result);
}
frame.addEventListener("load", () => setTimeout(look, 2000));
"""


def chromium():
    for name in ["chromium", "chromium-browser", "google-chrome"]:
        if shutil.which(name):
            return name
    sys.exit("no Chromium; try: apt-get install chromium")


def run(arguments):
    base = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=8000"]
    return subprocess.run(base + arguments, capture_output=True, text=True, timeout=240).stdout


def main():
    report, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    failed = False
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as scratch:
            wrapper = pathlib.Path(scratch) / "look.html"
            wrapper.write_text(
                f'<!doctype html><body style="margin:0"><iframe id="report" src="file://{report}" '
                f'style="border:0;width:{width}px;height:20000px"></iframe>'
                f"<script>const WIDTH = {width};{LOOK}</script></body>"
            )
            size = f"--window-size={max(width, 600)},2000"
            dom = run([size, "--dump-dom", f"file://{wrapper}"])
            found = re.search(r'<pre id="result">(.*?)</pre>', dom, re.S)
            if not found:
                sys.exit(f"{width}: the page said nothing")
            result = json.loads(html.unescape(found.group(1)))
            print(f"{width} pixels: {result['counts']}")
            for wrong in result["wrong"]:
                failed = True
                print(f"  {wrong}")
            plain = pathlib.Path(scratch) / "plain.html"
            height = min(result["height"], 15000)
            plain.write_text(
                f'<!doctype html><body style="margin:0"><iframe src="file://{report}" '
                f'style="border:0;width:{width}px;height:{height}px"></iframe></body>'
            )
            for theme, flags in [("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])]:
                picture = out / f"{width}-{theme}.png"
                run(flags + [f"--window-size={width},{height}", f"--screenshot={picture}", f"file://{plain}"])
    sys.exit(1 if failed else 0)


main()
