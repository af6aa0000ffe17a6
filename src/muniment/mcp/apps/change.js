const plain = (value) => value === null || value === undefined || value === "" ? "nothing"
  : Array.isArray(value) ? value.map(plain).join(", ")
  : typeof value === "object" ? Object.entries(value).map(([name, each]) => `${name}: ${plain(each)}`).join(", ")
  : String(value);
const rows = (mark, values) => (values ?? []).map((each) => el(mark, plain(each), " "));
const change = ([field, { before, after, added, removed, changed, ...rest }]) => {
  const isList = added || removed || changed;
  const shown = isList ? [...rows("del", removed), ...rows("ins", added), ...rows("ins", changed)]
    : before === undefined && after === undefined ? [plain(rest)]
    : [el("del", plain(before)), " → ", el("ins", plain(after))];
  return el("tr", el("th", field), el("td", ...shown));
};
const difference = (diff) => Object.keys(diff ?? {}).length
  ? [el("table", el("tbody", ...Object.entries(diff).map(change)))] : [];
const KNOWN = ["message", "confirm", "hint", "reason", "expiresAt"];

function show({ data, error }) {
  const question = data?.confirmation;
  if (question?.confirm) return confirmation(question);
  if (question?.reason) return view.replaceChildren(el("h1", "Not done"), ...fault(question));
  if (error) return view.replaceChildren(el("h1", "Not done"), ...fault(error));
  const { applied = [], awaitingReview = [], withdrawn = [], state, dryRun, diff } = data ?? {};
  view.replaceChildren(
    el("h1", dryRun ? "What would change" : "Done"),
    facts([["Changed", dryRun ? "" : applied.join(", ")], ["Awaiting review", awaitingReview.join(", ")],
      ["Withdrawn", withdrawn.join(", ")], ["State", state]]),
    ...difference(diff),
  );
}

function confirmation(question) {
  const more = Object.entries(question).filter(([name]) => !KNOWN.includes(name));
  const canAct = host.serverTools && tool;
  const act = async () => {
    for (const each of view.querySelectorAll("button")) each.disabled = true;
    const { dryRun, confirm, ...rest } = input;
    try {
      const result = answerOf(await ask("tools/call", { name: tool, arguments: { ...rest, confirm: question.confirm } }));
      show(result);
      tell(result.error ? `The user confirmed ${tool}, but it failed: ${result.error.message}`
        : `The user confirmed ${tool} and it is done. Do not repeat it.`);
    } catch (failed) {
      view.append(...fault(failed));
    }
  };
  const leave = () => {
    view.replaceChildren(el("h1", "Cancelled"), el("p", "Nothing was changed."));
    tell(`The user cancelled ${tool}. Nothing was changed; do not repeat it unless they ask.`);
  };
  view.replaceChildren(
    el("h1", "Confirm"),
    el("p", question.message),
    facts(more),
    canAct ? classed("row", el("div", button("Confirm", act, "main"), button("Cancel", leave)))
      : el("p", "Answer in the chat."),
  );
}
