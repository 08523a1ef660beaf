"""Sphinx: `make docs` builds the site into build/docs, without network."""

from __future__ import annotations

import sys
from pathlib import Path

import slimsvm

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "slimsvm"
author = "the slimsvm developers"
release = version = slimsvm.__version__
copyright = "the slimsvm developers, BSD-3-Clause"

templates_path = ["_templates"]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "repository_pages",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
exclude_patterns = ["_ext", "_templates", "auto_examples/**/*.ipynb", "auto_examples/*.py", "**/sg_execution_times.rst"]
highlight_language = "none"
default_role = "code"
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"inherited-members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 10,
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "backreferences_dir": None,
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "slimsvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "use_edit_page_button": False,
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
