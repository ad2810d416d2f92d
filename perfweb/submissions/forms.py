# SPDX-License-Identifier: BSD-2-Clause
"""The form in which a patch is submitted."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from perfweb.builds.mirrors import OWN
from perfweb.builds.models import Mirror
from perfweb.inputlimits import PATCH_BYTES
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.parameters import choice_in, flag_in, text_in
from perfweb.submissions.plans import MATRICES
from perfweb.submissions.services import LONGEST_TITLE, SubmissionRequest

Choices = list[tuple[str, list[tuple[str, str]]]]


def _by_origin(known: Iterable[tuple[Origin, tuple[str, str]]]) -> Choices:
    """Return choices in groups with the origins as headings, in the order of Origin."""
    order = list(Origin)
    ordered = sorted(known, key=lambda one: order.index(one[0]))
    return [
        (origin.value, [choice for _, choice in group]) for origin, group in groupby(ordered, key=lambda one: one[0])
    ]


class SubmissionForm(forms.Form):
    """A patch, pasted or as a file, and its measurement. Tests and testbeds are in groups, of which a script shows only
    tests that suit the testbed.
    """

    text = forms.CharField(
        label="Patch", required=False, strip=False, max_length=PATCH_BYTES,
        widget=forms.Textarea({"rows": 12, "spellcheck": "false", "class": "patch"}),
        help_text="output of git format-patch --stdout or git diff",
    )  # fmt: skip
    file = forms.FileField(label="or a file", required=False, widget=forms.FileInput)
    ref = forms.CharField(
        label="or a branch, tag or commit", required=False, max_length=100,
        help_text="such as topic/locks or refs/pull/7/head; its changes since the base are the patch",
    )  # fmt: skip
    title = forms.CharField(required=False, max_length=LONGEST_TITLE, help_text="default: the subject of the patch")
    base = forms.CharField(
        required=False, max_length=100,
        help_text="branch, tag or commit; default: the line base-commit, else the main branch",
    )  # fmt: skip
    repository = forms.ChoiceField(required=False, help_text="of the patch, or of that branch, tag or commit")
    matrix = forms.ChoiceField(label="Tests")
    knobs = forms.CharField(
        required=False, max_length=8000, widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
        help_text="tunables of both base and patch, one on each line: net.isr.dispatch=direct",
    )  # fmt: skip
    each = forms.BooleanField(label="Measure a series patch by patch", required=False)
    testbed = forms.ChoiceField()
    GROUPS = (
        ("Patch", ("text", "file", "ref", "repository", "base", "title")),
        ("Measurement", ("testbed", "matrix", "each", "knobs")),
    )
    IN_ADDRESSES = ("ref", "repository", "base", "title", "testbed", "matrix", "each", "knobs")
    """What an address of the form can set: all but the patch."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        testbeds = list(Testbed.objects.filter(sample="").exclude(inventory="").order_by("name"))
        origins = {testbed.origin for testbed in testbeds}
        matrices = [matrix for matrix in MATRICES.values() if matrix.origin in origins]
        repositories = list(Mirror.objects.values_list("name", flat=True))
        self._possible = {
            "testbed": [testbed.name for testbed in testbeds],
            "matrix": [matrix.name for matrix in matrices],
            "repository": repositories,
        }
        for name, choices in (
            ("testbed", _by_origin((Origin(one.origin), (one.name, one.name)) for one in testbeds)),
            ("matrix", _by_origin((one.origin, one.choice) for one in matrices)),
            ("repository", [("", OWN), *((one, one) for one in repositories)]),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101
            field.choices = choices

    @classmethod
    def of_address(cls, request: HttpRequest) -> "SubmissionForm":
        """Return the form with the values of the address. Raises ParameterError."""
        form = cls()
        for name in cls.IN_ADDRESSES:
            field = form.fields[name]
            if name in form._possible:
                field.initial = choice_in(request, name, form._possible[name]) or None
            elif isinstance(field, forms.BooleanField):
                field.initial = flag_in(request, name)
            elif isinstance(field, forms.CharField):
                field.initial = text_in(request, name, most=field.max_length or 0)
        return form

    @property
    def query(self) -> str:
        """The query that sets this form's values, but for the patch."""
        values = {name: self.cleaned_data.get(name) for name in self.IN_ADDRESSES}
        return urlencode({name: "" if value is True else value for name, value in values.items() if value})

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields under their headings."""
        return [(heading, [self[name] for name in names]) for heading, names in self.GROUPS]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        file: UploadedFile[bytes] | None = values.get("file")
        if [bool(file), bool(values.get("text", "").strip()), bool(values.get("ref"))].count(True) != 1:
            raise forms.ValidationError("Give exactly one: a pasted patch, a file, or a commit.")
        if file and (file.size or 0) > PATCH_BYTES:
            raise forms.ValidationError(f"The file has {file.size} bytes; the max is {PATCH_BYTES}.")
        return values

    @property
    def patch(self) -> bytes:
        """The patch as it was sent, which has CR LF at the end of each pasted line; empty where a commit is named."""
        file: UploadedFile[bytes] | None = self.cleaned_data["file"]
        if file is None:
            return str(self.cleaned_data["text"]).encode()
        file.seek(0)
        return bytes(file.read())

    @property
    def wanted(self) -> SubmissionRequest:
        """The fields about the measurement."""
        names = ("testbed", "matrix", "knobs", "each", "base", "title", "ref")
        return SubmissionRequest(
            mirror=self.cleaned_data["repository"], **{name: self.cleaned_data[name] for name in names}
        )

    def with_file_as_text(self) -> "SubmissionForm":
        """The same form with the file in the place to paste, since a browser forgets which file was chosen."""
        if b"\r" in self.patch:  # a browser would change it
            return self
        try:
            text = self.patch.decode()
        except UnicodeDecodeError:  # it has to be chosen again
            return self
        return SubmissionForm({**dict(self.data.items()), "text": text})
