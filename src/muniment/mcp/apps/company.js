function show({ data, error }) {
  if (!data) return view.replaceChildren(...fault(error ?? {}));
  // A call may ask for parts without the facts, such as the history, which are for the model.
  if (!data.company?.name) return view.replaceChildren(classed("quiet", el("p", "The assistant has read a part of it.")));
  const { company, positions = [], positionsTotal } = data;
  const pending = Object.keys(data.pendingChanges ?? {});
  const people = positions.slice(0, 5).map(({ title, person, name }) =>
    el("li", [person?.name ?? name, title].filter(Boolean).join(", ") || "Not specified"));
  const rest = (positionsTotal ?? positions.length) - people.length;
  const isPublic = data.state === undefined || data.publicUrl;
  const page = data.publicUrl ?? `${view.dataset.base}/companies/${encodeURIComponent(company.id)}`;
  view.replaceChildren(
    el("h1", company.name, company.symbol ? ` (${company.symbol})` : ""),
    classed("quiet", el("p", [company.type, company.industry, company.status].filter(Boolean).join(" · "))),
    el("p", company.description),
    facts([
      ["Treasury", company.treasury],
      ["Team", company.teamSize],
      ["Listed", company.createdAt],
      ["Raising", company.raising ? "yes" : ""],
      ["Website", company.website],
      ["Listing", data.state],
      ["Pending review", pending.join(", ")],
    ]),
    ...(people.length ? [el("h2", "People"), el("ul", ...people)] : []),
    rest > 0 ? classed("quiet", el("p", `and ${rest} more`)) : "",
    classed("row", el("div", isPublic ? link("Open the page", page) : "")),
  );
}
