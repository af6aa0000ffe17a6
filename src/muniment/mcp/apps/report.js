const words = { met: "met", partial: "partial", not_met: "not met", insufficient: "too little evidence",
  not_applicable: "not applicable" };
const counted = (criteria) => {
  if (!Array.isArray(criteria)) return criteria ?? {};
  const counts = {};
  for (const { status } of criteria) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
const score = (value) => value === null || value === undefined ? "none" : String(Math.round(value * 10) / 10);

function show({ data, error }) {
  if (!data) return view.replaceChildren(...fault(error ?? {}));
  if (data.markdown) {
    return view.replaceChildren(el("h1", "Report"), el("p", "The whole report was given to the assistant."),
      classed("row", el("div", link("Open the report", data.url))));
  }
  const { overall = {}, sections = [], next = [] } = data;
  const rows = sections.map(({ title, score: of, criteria }) => el("tr", el("td", title), el("td", score(of)),
    el("td", Object.entries(counted(criteria)).map(([key, n]) => `${n} ${words[key] ?? key}`).join(", "))));
  const steps = next.slice(0, 5).map(({ title, remediation }) => el("li", title, remediation ? `: ${remediation}` : ""));
  const heads = ["Section", "Score", "Criteria"].map((text) => Object.assign(el("th", text), { scope: "col" }));
  view.replaceChildren(
    el("h1", [data.companyName, data.frameworkName].filter(Boolean).join(" · ") || "Report"),
    ...(data.overall ? [
      el("p", classed("big", el("span", score(overall.score))), overall.band ? ` ${overall.band}` : ""),
      classed("quiet", el("p", `${Math.round(100 * (overall.coverage ?? 0))} % of the criteria have evidence`)),
    ] : []),
    ...(rows.length ? [el("table", el("thead", el("tr", ...heads)), el("tbody", ...rows))] : []),
    ...(steps.length ? [el("h2", "Do first"), el("ul", ...steps)] : []),
    data.url ? classed("row", el("div", link("Open the report", data.url))) : "",
  );
}
