# SPDX-License-Identifier: MIT
"""Sphinx's settings for scripts/html."""

import re
from pathlib import Path

here = Path(__file__).parent
project = "Iris in C"
version = re.search(r"\[iris\], \[([^]]*)\]", (here / "../configure.ac").read_text())[1]
extensions = ["myst_parser"]
root_doc = "README"
myst_heading_anchors = 4
highlight_language = "none"
exclude_patterns = ["device", "examples", "include"]  # sources that pages link to
suppress_warnings = ["misc.highlighting_failure"]  # tables in comments are not C
html_theme = "furo"
html_title = f"{project} {version}"
html_show_copyright = False
html_copy_source = False
html_static_path = ["html.css", "site.js"]
html_js_files = ["site.js"]
html_search_scorer = str(here / "scorer.js")
html_css_files = ["html.css"]
# Debian's package of the theme has no dark colours of its own.
html_theme_options = {
    "dark_css_variables": {
        "color-foreground-primary": "#e6e6e6",
        "color-foreground-secondary": "#9ca0a5",
        "color-foreground-muted": "#81868d",
        "color-foreground-border": "#666666",
        "color-background-primary": "#131416",
        "color-background-secondary": "#1a1c1e",
        "color-background-hover": "#1e2124",
        "color-background-border": "#303335",
        "color-brand-primary": "#6ea8fe",
        "color-brand-content": "#6ea8fe",
        "color-highlighted-background": "#083563",
    }
}
