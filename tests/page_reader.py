"""Writes a page with walkthrough.main and reads it back, for the tests of the page."""

import dataclasses
import xml.etree.ElementTree as ElementTree

import walkthrough


def text_of(element):
    return "".join(element.itertext())


@dataclasses.dataclass
class Page:
    """A page that walkthrough.main wrote, and its elements."""

    source: str
    root: ElementTree.Element

    def chapter(self, id):
        return self.root.find(f".//*[@id='{id}']")

    def all(self, path, class_):
        found = self.root.findall(f".//{path}") if isinstance(path, str) else path
        return [element for element in found if class_ in element.get("class", "").split()]

    def value(self, function, name, step):
        """What the listing says of the first value with this name in a function and a step."""
        columns = [e for e in self.chapter(function).iter("div") if e.get("class") == "seen"]
        for element in (e for column in columns[step::2] for e in column.iter("div")):
            if element.get("class", "").startswith("value") and element[0].text == name:
                return text_of(element)

    def rows(self, caption):
        """The cells of the table with this caption, each row a list of text."""
        for table in self.root.iter("table"):
            if text_of(table.find("caption")) == caption:
                return [
                    [text_of(cell) for cell in row]
                    for row in table.find("tbody")
                    if text_of(row[0]) != "⋮"  # which stands for rows that are left out
                ]


def write(folder, prompt, **options):
    path = folder / "page.html"
    walkthrough.main(prompt, output=str(path), **options)
    source = path.read_text(encoding="utf-8")
    return Page(source, ElementTree.fromstring(source))
