// SPDX-License-Identifier: BSD-2-Clause
// Of the form for a patch: only tests are offered whose results have the origin of the chosen testbed's.
"use strict";

(() => {
  const testbed = document.querySelector("select[name=testbed]");
  const tests = document.querySelector("select[name=matrix]");

  function origin(select) {
    return select.selectedOptions[0]?.parentElement.label;
  }

  function offer() {
    const wanted = origin(testbed);
    for (const group of tests.querySelectorAll("optgroup")) group.hidden = group.disabled = group.label !== wanted;
    if (origin(tests) !== wanted) tests.value = tests.querySelector("optgroup:not([hidden]) option")?.value;
  }

  testbed.addEventListener("change", offer);
  offer();
})();
