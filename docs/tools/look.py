"""Open the built site in headless Chromium: assert what is visible, keep screenshots of it.

    python docs/tools/look.py docs/_build/html /somewhere/screenshots

Every page is opened 390 and 1,280 pixels wide, in light and in dark. Asserted: one heading of the
first level, visible; nothing wider than the window; every picture loaded; text that stands out from
its paper by a contrast of at least 4.5; the expected paper. Needs Chromium, and no network.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

AT_ONCE = 6
WIDTHS = {"narrow": 390, "wide": 1280}
SHOWN = ("index.html", "tour/gan.html", "reading-a-ledger.html", "architecture.html",
         "reference/contract.html")  # fmt: skip
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip
DARK = "--blink-settings=preferredColorScheme=0"

HARNESS = """<!doctype html><body><script>
const wanted = %s, found = [];
const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => { x /= 255;
  return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const soon = wait => Promise.race([wait, new Promise(done => setTimeout(done, 9000))]);
async function look([page, width]) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.src = "/" + page;
  document.body.append(frame);
  await soon(new Promise(done => frame.onload = done));
  const doc = frame.contentDocument, view = frame.contentWindow;
  await soon(Promise.all([...doc.images].map(i => {
    i.loading = "eager"; return i.decode().catch(() => 0); })));
  const heading = [...doc.querySelectorAll("h1")].filter(h => h.getClientRects().length);
  const style = view.getComputedStyle(doc.querySelector("article p") || doc.body);
  const paper = view.getComputedStyle(doc.body).backgroundColor;
  const [a, b] = [light(style.color), light(paper)].sort((x, y) => y - x);
  found.push({page, width, headings: heading.map(h => h.innerText.trim()),
    overflow: doc.documentElement.scrollWidth - width,
    broken: [...doc.images].filter(i => !i.naturalWidth).map(i => i.src),
    contrast: (a + 0.05) / (b + 0.05), paper: light(paper)});
  frame.remove();
}
(async () => { let fault = "";
  try { for (const one of wanted) await look(one); } catch (error) { fault = `${error}`; }
  if (fault) found.push({fault});
  const said = document.createElement("pre"); said.id = "found";
  said.textContent = JSON.stringify(found); document.body.replaceChildren(said); })();
</script></body>"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(site: Path, shots: Path) -> int:
    """Look at every page; 0 where all is well."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    pages = sorted(p.relative_to(site).as_posix() for p in site.rglob("*.html"))
    pages = [page for page in pages if not re.match(r"_|genindex|py-modindex|search", page)]
    shots.mkdir(parents=True, exist_ok=True)
    harness = site / "_harness.html"
    wanted = [[page, width] for page in pages for width in WIDTHS.values()]
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    faults = []
    try:
        for scheme in ("light", "dark"):
            looked = []
            for start in range(0, len(wanted), AT_ONCE):
                harness.write_text(HARNESS % json.dumps(wanted[start : start + AT_ONCE]))
                dom = _open(browser, scheme, "--virtual-time-budget=600000", "--dump-dom",
                            f"{address}/_harness.html")  # fmt: skip
                said = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
                if said is None:
                    raise SystemExit(
                        f"the browser did not finish {wanted[start][0]} and what follows"
                    )
                looked += json.loads(html.unescape(said[1]))
            for one in looked:
                faults += [
                    f"{scheme} {one.get('page')} {one.get('width')}: {f}"
                    for f in _faults(one, scheme)
                ]
            print(f"{scheme}: {len(looked)} views of {len(pages)} pages")
            for page in SHOWN:
                for name, width in WIDTHS.items():
                    # a window is at least 500 wide; narrower pages are what the harness measures
                    stem = page.replace("/", "-").removesuffix(".html")
                    file = shots / f"{stem}-{name}-{scheme}.png"
                    _open(browser, scheme, f"--window-size={max(width, 500)},2400",
                          f"--screenshot={file}", f"{address}/{page}")  # fmt: skip
    finally:
        server.shutdown()
        harness.unlink()
    print("\n".join(faults) or "nothing is wrong")
    return 1 if faults else 0


def _faults(one: dict, scheme: str) -> list[str]:
    if "fault" in one:
        return [one["fault"]]
    found = []
    if len(one["headings"]) != 1 or not one["headings"][0]:
        found.append(f"headings {one['headings']}")
    if one["overflow"] > 0:
        found.append(f"{one['overflow']} pixels too wide")
    if one["broken"]:
        found.append(f"pictures that did not load: {one['broken']}")
    if one["contrast"] < 4.5:
        found.append(f"contrast {one['contrast']:.2f}")
    if (one["paper"] > 0.5) != (scheme == "light"):
        found.append(f"paper of lightness {one['paper']:.2f}")
    return found


def _open(browser: str, scheme: str, *words: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        extra = [DARK] if scheme == "dark" else []
        command = [browser, *FLAGS, *extra, f"--user-data-dir={profile}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
