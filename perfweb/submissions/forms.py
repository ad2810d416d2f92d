# SPDX-License-Identifier: BSD-2-Clause
"""The form in which a patch is submitted."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from perfweb.builds.models import Mirror
from perfweb.inputlimits import PATCH_BYTES
from perfweb.lab.models import Testbed
from perfweb.submissions.plans import MATRICES
from perfweb.submissions.services import LONGEST_TITLE, SubmissionRequest


class SubmissionForm(forms.Form):
    """A patch, pasted or as a file, and its measurement."""

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
    repository = forms.ChoiceField(label="in repository", required=False)
    matrix = forms.ChoiceField(label="Tests")
    knobs = forms.CharField(
        required=False, max_length=8000, widget=forms.Textarea({"rows": 3, "spellcheck": "false"}),
        help_text="tunables of both base and patch, one on each line: net.isr.dispatch=direct",
    )  # fmt: skip
    each = forms.BooleanField(label="Measure a series patch by patch", required=False)
    testbed = forms.ChoiceField()
    GROUPS = (
        ("Patch", ("text", "file", "ref", "repository", "base", "title")),
        ("Measurement", ("matrix", "testbed", "each", "knobs")),
    )

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        testbeds = Testbed.objects.exclude(inventory="").values_list("name", "name")
        repositories = Mirror.objects.values_list("name", "name")
        for name, choices in (
            ("matrix", [matrix.choice for matrix in MATRICES.values()]),
            ("testbed", testbeds),
            ("repository", [("", "the service's own"), *repositories]),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101
            field.choices = list(choices)

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
