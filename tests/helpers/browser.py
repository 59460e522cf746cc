"""Pages in headless Chromium: what they measure and contain after their scripts have run."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# The page is in a frame, because a window cannot be as narrow as a phone.
FRAME = """<!DOCTYPE html><iframe id="page" src="{src}" width="{width}" height="900"></iframe>
<script>
page.onload = () => {{
  const window = page.contentWindow, document = page.contentDocument;
  document.title = "";
  globalThis.document.body.textContent = JSON.stringify((() => {{ {script} }})());
}};
</script>"""
OVERFLOW = """
  const root = document.documentElement;
  return root.scrollWidth - root.clientWidth;
"""


def evaluate(page: Path, script: str, width: int = 1400):
    """The value that a script returns in a page; it sees the page's `window` and `document`."""
    frame = page.with_name(f"frame-of-{page.name}")
    frame.write_text(FRAME.format(src=page.name, width=width, script=script))
    command = [str(CHROMIUM), "--headless", "--disable-gpu", "--allow-file-access-from-files"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")
    command += ["--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    match = re.search(r"<body[^>]*>(.*?)</body>", dom, re.DOTALL)
    return json.loads(html.unescape(match.group(1)))
