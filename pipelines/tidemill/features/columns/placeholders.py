"""What stands for the placeholders of an aggregate's expressions where a view uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.features.feature import Feature, known

Types = Mapping[str, str]


def placed(text: str, places: Mapping[str, Any]) -> str:
    """Return a text with its placeholders filled in, those that stand in others' values too; others
    stay."""
    for _ in range(3):
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", str(value))
    return text


def places_of(feature: Feature, types: Types) -> dict[str, Any]:
    """Return what stands for the placeholders of an aggregate that the view decides."""
    declared = known(feature.aggregate)
    given = feature.given
    places: dict[str, Any] = {**feature.inputs, **given}
    places |= {f"{role}_type": types[column] for role, column in feature.inputs.items()}
    if "number" in declared.inputs.values():
        places |= _exact(types[feature.inputs["of"]], given.get("scale"))
    return {**places, **(declared.derived(given) if declared.derived else {})}


def _exact(type_: str, scale: int | None) -> dict[str, str]:
    """Return the types in which a number adds up without rounding."""
    if type_ == "BIGINT":
        return {"exact": "BIGINT", "units": "CAST({of} AS DECIMAL(19, 0))", "unit": "1"}
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").split(",")[1])
    digits = scale or 0
    unit = f"{10**digits}"
    units = f"CAST(CAST({{of}} AS DECIMAL(18, {digits})) * {unit} AS DECIMAL(18, 0))"
    return {"exact": f"DECIMAL(38, {digits})", "units": units, "unit": unit}
