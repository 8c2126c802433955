"""Rubrics: one question with levels, loaded from YAML, and the place that finds shipped files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from isograde.errors import RubricError

__all__ = ["ITEM_FIELDS", "Level", "Rubric", "load_rubric", "rubric_names", "shipped_path"]

ITEM_FIELDS = ("input", "output", "expected", "context")
"""The item's own texts; a rubric may name others, which are then read from an item's metadata."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def shipped_path(*parts: str) -> Path:
    """Find a file that ships with isograde, in a wheel as in an editable install.

    Parameters
    ----------
    *parts : str
        Path below the project's top level, such as ``"rubrics", "relevance.yaml"``.

    Returns
    -------
    pathlib.Path
        Where the file lies; it is not checked that it exists.

    Examples
    --------
    >>> shipped_path("rubrics", "relevance.yaml").is_file()
    True
    """
    package = Path(__file__).resolve().parent
    wheel = package / "_shipped"
    return (wheel if wheel.is_dir() else package.parents[1]).joinpath(*parts)


def _label_text(value: Any) -> Any:
    """Read a YAML integer as the label it spells; leave the rest to validation."""
    if isinstance(value, bool):
        raise ValueError(f"label {value!r} was read as true or false; put it in quotes")
    return str(value) if isinstance(value, int) else value


class Level(BaseModel):
    """One level (or, in an unordered rubric, one choice) of a rubric.

    Attributes
    ----------
    label : str
        What the model answers: short, without surrounding blanks.
    description : str
        When this level is given.
    credit : float or None
        Score in [0, 1] of this choice; only in an unordered rubric.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Annotated[str, BeforeValidator(_label_text), Field(min_length=1, max_length=20)]
    description: Annotated[str, Field(min_length=1)]
    credit: Annotated[float, Field(ge=0, le=1)] | None = None

    @field_validator("label")
    @classmethod
    def _no_blanks(cls, label: str) -> str:
        if label.split() != [label]:
            raise ValueError(f"label {label!r} holds blanks; a label is one word, digit or letter")
        return label


class Rubric(BaseModel):
    """One question with levels about an item.

    Attributes
    ----------
    name : str
        Lower-case letters, digits and underscores.
    description : str
        One line for people; never sent to a model.
    scale : {"ordered", "choice"}
        Whether the levels run from worst to best, or are choices without an order.
    fields : dict of str to str
        The item's fields that are sent, each with the tag that fences it. A list in the file stands for tags of the same names.
    instructions : str
        What the model is told before the levels.
    levels : tuple of Level
        2 to 10, from worst to best.
    item : str
        The text that holds the item; ``{output}`` is filled in for a declared field, every other brace is literal.
    blank_output : {"level_0", "ask", "fail"}
        What an output without any visible character gets.
    pass_at : float
        Score from which an item passes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: Annotated[str, Field(min_length=1)]
    scale: Literal["ordered", "choice"] = "ordered"
    fields: dict[str, str]
    instructions: Annotated[str, Field(min_length=1)]
    levels: tuple[Level, ...]
    item: str
    blank_output: Literal["level_0", "ask", "fail"]
    pass_at: Annotated[float, Field(ge=0, le=1)] = 0.75

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a name is made of lower-case letters, digits and underscores, and begins with a letter")
        return name

    @field_validator("fields", mode="before")
    @classmethod
    def _tags_of_a_list(cls, fields: Any) -> Any:
        return {name: name for name in fields} if isinstance(fields, list) and all(isinstance(f, str) for f in fields) else fields

    @field_validator("fields")
    @classmethod
    def _plain_fields(cls, fields: dict[str, str]) -> dict[str, str]:
        if not fields:
            raise ValueError("at least one field of the item must be sent")
        for name in (*fields, *fields.values()):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no field or tag name: lower-case letters, digits and underscores")
        if len(set(fields.values())) < len(fields):
            raise ValueError("two fields share one tag")
        return fields

    @field_validator("levels")
    @classmethod
    def _distinct_levels(cls, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        if not 2 <= len(levels) <= 10:
            raise ValueError(f"{len(levels)} level(s); a rubric has 2 to 10")
        labels = [level.label for level in levels]
        for i, label in enumerate(labels):
            for j, other in enumerate(labels):
                if i < j and label == other:
                    raise ValueError(f"label {label!r} stands twice")
                if i != j and other.startswith(label):
                    raise ValueError(f"label {label!r} begins label {other!r}: one token could be either")
        return levels

    @model_validator(mode="after")
    def _whole(self) -> Rubric:
        for name in self.fields:
            if name not in self.placeholders.findall(self.item):
                raise ValueError(f"field {name!r} is declared but the item text never uses it; write {{{name}}} where it belongs")
        credits_given = [level.label for level in self.levels if level.credit is not None]
        if self.scale == "ordered" and credits_given:
            raise ValueError("credit belongs to a choice; an ordered rubric's score is its expected level")
        if credits_given and len(credits_given) < len(self.levels):
            missing = [level.label for level in self.levels if level.credit is None]
            raise ValueError(f"credit is given for some choices and not for {', '.join(missing)}; give all or none")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with changes, which are validated; nothing that was derived from the old content is kept."""
        del deep  # a validated copy shares nothing that can change
        return type(self).model_validate({**self.model_dump(), **(update or {})})

    @cached_property
    def placeholders(self) -> re.Pattern[str]:
        """The pattern that finds declared fields in the item text, in single braces."""
        return re.compile(r"(?<!\{)\{(" + "|".join(map(re.escape, self.fields)) + r")\}(?!\})")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The levels' labels, from worst to best."""
        return tuple(level.label for level in self.levels)

    @cached_property
    def values(self) -> tuple[float, ...] | None:
        """The labels as numbers where an ordered rubric has numbers for labels, else None."""
        try:
            return tuple(float(label) for label in self.labels) if self.scale == "ordered" else None
        except ValueError:
            return None

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over all that shapes the question; names and thresholds do not."""
        asked = self.model_dump(mode="json", include={"scale", "fields", "instructions", "item"})
        asked["levels"] = [[level.label, level.description] for level in self.levels]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def rubric_names() -> list[str]:
    """Names of the shipped rubrics.

    Examples
    --------
    >>> rubric_names()
    ['answer_correctness', 'factuality', 'faithfulness', 'relevance']
    """
    return sorted(path.stem for path in shipped_path("rubrics").glob("*.yaml"))


def load_rubric(source: str | Path | Rubric) -> Rubric:
    """Load a rubric by its shipped name or from a YAML file.

    Parameters
    ----------
    source : str, pathlib.Path or Rubric
        A shipped name, or a path (anything with a slash or ending in .yaml or .yml). A rubric is returned as it is.

    Returns
    -------
    Rubric

    Raises
    ------
    RubricError
        If there is no such rubric or the file breaks a rule; the message names the file and the rule.

    Examples
    --------
    >>> load_rubric("answer_correctness").labels
    ('0', '1', '2', '3', '4')
    """
    if isinstance(source, Rubric):
        return source
    if not isinstance(source, str | Path):
        raise RubricError(f"a rubric is given by its name or its path, not by {type(source).__name__}")
    path = Path(source)
    if isinstance(source, str) and path.suffix not in {".yaml", ".yml"} and "/" not in source and "\\" not in source:
        if source not in rubric_names():
            known = ", ".join(rubric_names())
            raise RubricError(f"no rubric named {source!r}; shipped are {known}; your own is given as a path to a .yaml file")
        path = shipped_path("rubrics", f"{source}.yaml")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RubricError(f"rubric {path}: {error.strerror or error}") from None
    try:
        return _parse(content)
    except ValueError as error:
        raise RubricError(f"rubric {path}: {' '.join(str(error).split())}") from None


@lru_cache(maxsize=64)
def _parse(content: bytes) -> Rubric:
    """Parse and validate a file's content; a ValueError says what is wrong."""
    import yaml

    try:
        parsed = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise ValueError(f"not YAML{where}: {getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise ValueError("not a rubric: nested too deep") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"must be a mapping with the keys {', '.join(Rubric.model_fields)}")
    try:
        return Rubric.model_validate(parsed)
    except ValidationError as error:
        raise ValueError(_first_problem(error.errors())) from None


def _first_problem(problems: Sequence[Any]) -> str:
    """Say the first problem in one line, and how many more there are."""
    first = problems[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        said = "unknown key"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}: {said}{more}" if where else f"{said}{more}"
