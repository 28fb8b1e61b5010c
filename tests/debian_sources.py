"""Sources of Debian packages, fetched with apt-get into a folder; the lists of the system are not touched."""

import re
import subprocess
from pathlib import Path

def source_lists():
    """The machine's own lists of Debian packages, by file name, turned into lists of their sources."""
    parts = sorted(Path("/etc/apt/sources.list.d").glob("*"))
    places = [Path("/etc/apt/sources.list"), *parts]
    texts = {place: place.read_text() for place in places if place.suffix in (".list", ".sources") and place.exists()}
    form = {".list": (r"^deb ", "deb-src "), ".sources": (r"^Types:.*", "Types: deb-src")}
    return {place.name: re.sub(*form[place.suffix], text, flags=re.M) for place, text in texts.items()}


class Sources:
    """Sources of Debian packages, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        (folder / "sources").mkdir(exist_ok=True)
        for name, text in source_lists().items():
            (folder / "sources" / name).write_text(text)
        if not any((folder / "lists").glob("*Sources*")):
            self.apt("update")

    def apt(self, *words):
        options = ["Dir::Etc::sourcelist=/dev/null", f"Dir::Etc::sourceparts={self.folder}/sources",
                   f"Dir::State::lists={self.folder}/lists", "APT::Get::List-Cleanup=0"]
        flags = [part for option in options for part in ("-o", option)]
        subprocess.run(["apt-get", "-qq", *flags, *words], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def of(self, package):
        found = [path for path in self.folder.glob(f"{package}-*") if path.is_dir()]
        if not found:
            self.apt("source", package)
            found = [path for path in self.folder.glob(f"{package}-*") if path.is_dir()]
        return found[0]
