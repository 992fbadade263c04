"""A hook of mkdocs: the page of changes is CHANGELOG.md itself, with links that hold inside the site."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add ``changelog.md``; paths are counted from docs/ there, and from the root in the file."""
    root = Path(config.config_file_path).parent
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=text))
    return files
