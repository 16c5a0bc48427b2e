"""An SVG picture as a part of an HTML page: fluid, described, with ids of its own and nothing superfluous."""

from __future__ import annotations

from xml.etree import ElementTree

SUPERFLUOUS = {
    "class",
    "role",
    "aria-hidden",
    "aria-label",
    "aria-roledescription",
    "pointer-events",
    "font-family",
    "stroke-miterlimit",
    "version",
    "width",
    "height",
}
"""Attributes that repeat the defaults, belong to an interactive picture, or that the page sets itself; width and
height only of the picture as a whole."""

SMALLEST = 0.8
"""The picture is never shown smaller than this share of its natural size; its box scrolls instead."""


def tidy(svg: str, anchor: str, title: str, description: str) -> str:
    """The picture for use inside HTML.

    Parameters
    ----------
    svg : str
        A whole SVG document.
    anchor : str
        Prefix that makes its ids unique in the page.
    title, description : str
        Read out in place of the picture.
    """
    root = ElementTree.fromstring(svg)
    width = float(root.get("width", "0"))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in list(element.attrib):
            if name in SUPERFLUOUS and (name not in ("width", "height") or element is root):
                if name == "class" and element.get("class") in ("background", "foreground"):
                    element.set("data-frame", "")
                del element.attrib[name]
        for name, value in element.attrib.items():
            if name == "id":
                element.set("id", f"{anchor}-{value}")
            elif value.startswith("url(#"):
                element.set(name, f"url(#{anchor}-{value[5:]}")
        if element.get("opacity") == "1":
            del element.attrib["opacity"]
    _drop_frames(root)
    for name, text, position in (("title", title, 0), ("desc", description, 1)):
        child = ElementTree.Element(name, {"id": f"{anchor}-{name}"})
        child.text = text
        root.insert(position, child)
    root.set("role", "img")
    root.set("aria-labelledby", f"{anchor}-title {anchor}-desc")
    root.set("style", f"max-width:{width:.0f}px;min-width:{width * SMALLEST:.0f}px")
    return ElementTree.tostring(root, encoding="unicode")


def _drop_frames(root: ElementTree.Element) -> None:
    """Leave out the invisible paths around groups."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.get("data-frame") is None:
                continue
            del child.attrib["data-frame"]
            if child.get("fill") is None and child.get("stroke") is None:
                parent.remove(child)
